//! Disks that lie, for tests alone: a commit that comes through and is reported as failed, with or
//! without the chance to look whether it did.

/// What is lied about. Nothing in a release.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Commits until the one that is denied; 0 for none.
    #[cfg(any(test, feature = "failpoints"))]
    pub commits: u32,
    /// Whether the look that follows fails as well.
    #[cfg(any(test, feature = "failpoints"))]
    pub blind: bool,
    /// While it says so, syncs of the database are reported as failed.
    #[cfg(any(test, feature = "failpoints"))]
    pub unsynced: Option<&'static std::sync::atomic::AtomicBool>,
}

#[cfg(any(test, feature = "failpoints"))]
impl Faults {
    /// From the variable `AGENTD_COMMIT_LIES`: `3` denies the third commit, `3!` also fails to look.
    pub fn from_environment() -> Self {
        let text = std::env::var("AGENTD_COMMIT_LIES").unwrap_or_default();
        Self {
            commits: text.trim_end_matches('!').parse().unwrap_or(0),
            blind: text.ends_with('!'),
            unsynced: None,
        }
    }

    /// How a commit is reported to have ended.
    pub fn report_commit<T>(
        &mut self,
        result: Result<T, crate::store::error::StoreError>,
    ) -> Result<T, crate::store::error::StoreError> {
        if result.is_ok() && self.commits > 0 {
            self.commits -= 1;
            if self.commits == 0 {
                return Err(crate::store::error::StoreError::Unwritable("a lie told by a test".into()));
            }
        }
        result
    }

    /// How a sync of the database is reported to have ended.
    pub fn synced(&self, result: std::io::Result<()>) -> std::io::Result<()> {
        if self.unsynced.is_some_and(|unsynced| unsynced.load(std::sync::atomic::Ordering::SeqCst)) {
            return Err(std::io::Error::other("a lie told by a test"));
        }
        result
    }

    /// Whether a look fails; once.
    pub fn blinds(&mut self) -> bool {
        self.commits == 0 && std::mem::take(&mut self.blind)
    }
}

#[cfg(not(any(test, feature = "failpoints")))]
impl Faults {
    pub fn of_environment() -> Self {
        Self {}
    }

    pub fn told<T>(
        &mut self,
        result: Result<T, crate::store::error::StoreError>,
    ) -> Result<T, crate::store::error::StoreError> {
        result
    }

    pub fn synced(&self, result: std::io::Result<()>) -> std::io::Result<()> {
        result
    }

    pub fn blinds(&mut self) -> bool {
        false
    }
}
