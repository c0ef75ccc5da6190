//! Imports that arrive in several parts. They are kept in memory until the last part, and for a limited time.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::session::error::SessionError;
use crate::sync::lock;

/// Maximum bytes of an import, and of all imports in progress.
pub const MAX_IMPORT_BYTES: usize = 64 << 20;
/// Maximum number of imports that have not ended.
const MAX_IMPORTS: usize = 8;
/// How long an import may take between two parts.
const PART_TIMEOUT: Duration = Duration::from_secs(600);

/// Imports without their last part.
#[derive(Default)]
pub(in crate::session) struct StagedImports(Mutex<HashMap<String, Staged>>);

struct Staged {
    data: String,
    touched: Instant,
}

impl StagedImports {
    /// Adds a part. Returns the id of the import, and all parts if this was the last one.
    pub fn add(
        &self,
        id: Option<String>,
        part: String,
        is_last: bool,
    ) -> Result<(String, Option<String>), SessionError> {
        let mut all = lock(&self.0);
        all.retain(|_, staged| staged.touched.elapsed() < PART_TIMEOUT);
        let (id, known) = match id {
            Some(id) => {
                let why = "there is no such import, or it took too long; begin again without import_id";
                let known = all.remove(&id).ok_or_else(|| SessionError::BadParam("import_id", why.into()))?;
                (id, known.data)
            }
            None => (format!("import_{}", uuid::Uuid::now_v7()), String::new()),
        };
        let held: usize = all.values().map(|staged| staged.data.len()).sum();
        if held + known.len() + part.len() > MAX_IMPORT_BYTES || (!is_last && all.len() >= MAX_IMPORTS) {
            let why = format!(
                "imports in progress hold at most {} MiB and {MAX_IMPORTS} files; this one was dropped",
                MAX_IMPORT_BYTES >> 20
            );
            return Err(SessionError::BadParam("data", why));
        }
        let data = known + &part;
        if is_last {
            return Ok((id, Some(data)));
        }
        all.insert(id.clone(), Staged { data, touched: Instant::now() });
        Ok((id, None))
    }
}
