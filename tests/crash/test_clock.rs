//! The clock of a daemon that a test sets. A release has no such clock: there it runs as the machine's does.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::daemon::TestDaemonBuilder;

/// The difference between a daemon's clock and the machine's, in a file.
pub struct TestClock {
    folder: tempfile::TempDir,
    offset_ms: i64,
}

impl TestClock {
    /// A clock that shows the machine's time.
    pub fn new() -> Self {
        let clock = Self { folder: tempfile::tempdir().expect("a folder"), offset_ms: 0 };
        clock.write();
        clock
    }

    /// Gives a daemon this clock.
    pub fn attach(&self, builder: TestDaemonBuilder) -> TestDaemonBuilder {
        builder.environment("AGENTD_TEST_CLOCK", self.file().to_str().expect("text"))
    }

    /// Moves the clock.
    pub fn advance(&mut self, by_ms: i64) {
        self.offset_ms += by_ms;
        self.write();
    }

    /// Sets the clock to this time in milliseconds since 1970.
    pub fn set(&mut self, to_ms: i64) {
        self.offset_ms = to_ms - machine_ms();
        self.write();
    }

    /// What the clock shows.
    pub fn now_ms(&self) -> i64 {
        machine_ms() + self.offset_ms
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("offset")
    }

    fn write(&self) {
        // A reader must never see a part of the number.
        let new = self.folder.path().join("new");
        std::fs::write(&new, self.offset_ms.to_string()).expect("written");
        std::fs::rename(&new, self.file()).expect("renamed");
    }
}

#[expect(clippy::disallowed_methods, reason = "the offset of a test clock is relative to the system's")]
fn machine_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("a time")
}
