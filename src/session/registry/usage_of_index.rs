//! Books model calls about the index of a workspace. Each workspace has one hidden session whose
//! journal holds their usage, so that the ledger contains them.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::error::SessionError;
use crate::registry::Registry;
use crate::registry::new_session_request::NewSessionRequest;
use engine::OutsideUsage;
use types::ids::SessionId;

impl Registry {
    /// The id of the hidden session of a workspace.
    #[must_use]
    pub fn index_session(workspace: &Path) -> SessionId {
        let digest = Sha256::digest([b"index of ", workspace.as_os_str().as_encoded_bytes()].concat());
        let mut bytes = [0; 10];
        bytes.copy_from_slice(&digest[..10]);
        SessionId::from_digest(&bytes)
    }

    /// Records the usage of a model call about the index of a workspace. The usage is on disk when this returns.
    ///
    /// # Errors
    /// The session could not be created or written.
    pub async fn book_index_usage(&self, workspace: &Path, usage: OutsideUsage) -> Result<(), SessionError> {
        let id = Self::index_session(workspace);
        let session = match self.open_soon(id).await {
            Err(SessionError::NotFound) => {
                let request = NewSessionRequest {
                    session_id: Some(id),
                    cwd: workspace.to_string_lossy().into_owned(),
                    title: Some("Knowledge index".into()),
                    is_hidden: true,
                    ..NewSessionRequest::default()
                };
                self.create(request).await?;
                self.open_soon(id).await?
            }
            opened => opened?,
        };
        session.book_usage(usage).await
    }
}
