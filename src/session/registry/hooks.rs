//! `Registry::hooks_in_force`.

use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::hooks;
use crate::registry::Registry;
use project::hooks::HookFile;

impl Registry {
    /// Every hook that is in force in a folder, with its event, matcher, command, file and line, and every entry that
    /// cannot be used. Files of a folder without trust are not in force.
    pub async fn hooks_in_force(&self, folder: &Path) -> HookFile {
        let (shared, folder, runtime) =
            (Arc::clone(&self.inner.shared), folder.to_owned(), Handle::current());
        let read = tokio::task::spawn_blocking(move || hooks::in_force(&shared, &folder, &runtime));
        read.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}
