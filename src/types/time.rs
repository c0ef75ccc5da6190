//! Time as a value, and the seam where it comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch (`…_ms` on the wire).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Milliseconds from `earlier` to here; 0 if the clock went backwards.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.0 - earlier.0).unwrap_or(0)
    }
}

/// Where time comes from: the system in the daemon, a counter in tests.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}
