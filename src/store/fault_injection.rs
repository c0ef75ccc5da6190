//! Simulated disk faults for tests: a commit succeeds, but the store reports that it failed. The check for
//! the commit's rows can fail too.

/// The faults to inject. Empty in a release.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Number of commits until one is reported as failed; 0 for none.
    #[cfg(any(test, debug_assertions))]
    pub commits: u32,
    /// Whether the check for the rows fails as well.
    #[cfg(any(test, debug_assertions))]
    pub blind: bool,
    /// While this is set, syncs of the database are reported as failed.
    #[cfg(any(test, debug_assertions))]
    pub unsynced: Option<&'static std::sync::atomic::AtomicBool>,
}

#[cfg(any(test, debug_assertions))]
impl Faults {
    /// Reads `AGENTD_COMMIT_LIES`: `3` reports the third commit as failed, `3!` also fails the check for its
    /// rows.
    pub fn from_environment() -> Self {
        let text = std::env::var("AGENTD_COMMIT_LIES").unwrap_or_default();
        Self {
            commits: text.trim_end_matches('!').parse().unwrap_or(0),
            blind: text.ends_with('!'),
            unsynced: None,
        }
    }

    /// Returns the result to report for a commit.
    pub fn report_commit<T>(
        &mut self,
        result: Result<T, crate::error::StoreError>,
    ) -> Result<T, crate::error::StoreError> {
        if result.is_ok() && self.commits > 0 {
            self.commits -= 1;
            if self.commits == 0 {
                return Err(crate::error::StoreError::Unwritable("a fault injected by a test".into()));
            }
        }
        result
    }

    /// Returns the result to report for a sync of the database.
    pub fn sync_result(&self, result: std::io::Result<()>) -> std::io::Result<()> {
        if self.unsynced.is_some_and(|unsynced| unsynced.load(std::sync::atomic::Ordering::SeqCst)) {
            return Err(std::io::Error::other("a fault injected by a test"));
        }
        result
    }

    /// Whether the next check for rows fails. Returns true once.
    pub fn blinds_next_check(&mut self) -> bool {
        self.commits == 0 && std::mem::take(&mut self.blind)
    }
}

#[cfg(not(any(test, debug_assertions)))]
impl Faults {
    pub fn from_environment() -> Self {
        Self {}
    }

    pub fn report_commit<T>(
        &mut self,
        result: Result<T, crate::error::StoreError>,
    ) -> Result<T, crate::error::StoreError> {
        result
    }

    pub fn sync_result(&self, result: std::io::Result<()>) -> std::io::Result<()> {
        result
    }

    pub fn blinds_next_check(&mut self) -> bool {
        false
    }
}
