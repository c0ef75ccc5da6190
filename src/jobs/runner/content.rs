//! What a job is asked to do.

use crate::command::corrupt;
use crate::error::JobsError;
use crate::services::Services;
use types::ids::JobId;
use types::job_request::JobRequest;

/// The stored content of a job.
///
/// # Errors
/// The job does not exist, or its row cannot be read.
pub(super) async fn read_content(services: &Services, id: JobId) -> Result<JobRequest, JobsError> {
    let stored = services.store.job(id).await?.ok_or(JobsError::NotFound)?;
    serde_json::from_str(&stored.request).map_err(|error| corrupt(&error))
}
