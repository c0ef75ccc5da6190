//! Imports that arrive in several parts. The parts are kept in memory until the last part arrives, but
//! only for a limited time.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::error::SessionError;
use base::sync::lock;

/// Maximum bytes of one import, and of all imports in progress together.
pub const MAX_IMPORT_BYTES: usize = 64 << 20;
/// Maximum number of imports in progress.
const MAX_IMPORTS: usize = 8;
/// Maximum time between two parts of an import.
const PART_TIMEOUT: Duration = Duration::from_secs(600);

/// Imports without their last part.
#[derive(Default)]
pub(crate) struct StagedImports(Mutex<HashMap<String, StagedImport>>);

struct StagedImport {
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
                let why = "there is no such import, or it took too long and others needed its place; begin again without import_id";
                let known = all.remove(&id).ok_or_else(|| SessionError::BadParam("import_id", why.into()))?;
                (id, known.data)
            }
            None => (format!("import_{}", uuid::Uuid::now_v7()), String::new()),
        };
        let size = known.len() + part.len();
        if size > MAX_IMPORT_BYTES {
            let why = format!("at most {} MiB can be imported; this one was dropped", MAX_IMPORT_BYTES >> 20);
            return Err(SessionError::BadParam("data", why));
        }
        // Drop the oldest import, because an abandoned import must not block new ones.
        let held =
            |all: &HashMap<String, StagedImport>| all.values().map(|staged| staged.data.len()).sum::<usize>();
        while held(&all) + size > MAX_IMPORT_BYTES || (!is_last && all.len() >= MAX_IMPORTS) {
            let oldest = all.iter().min_by_key(|(_, staged)| staged.touched).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { break };
            all.remove(&oldest);
        }
        let data = known + &part;
        if is_last {
            return Ok((id, Some(data)));
        }
        all.insert(id.clone(), StagedImport { data, touched: Instant::now() });
        Ok((id, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_import_replaces_oldest_one() {
        let staged = StagedImports::default();
        let begin = || staged.add(None, "a".into(), false).expect("staged").0;
        let ids: Vec<String> = (0..=MAX_IMPORTS).map(|_| begin()).collect();
        assert!(staged.add(Some(ids[0].clone()), "b".into(), true).is_err());
        let (_, whole) = staged.add(Some(ids[1].clone()), "b".into(), true).expect("known");
        assert_eq!(whole.as_deref(), Some("ab"));
    }
}
