//! Background tasks: commands that continue after their tool call returned.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::blob::{Blob, BlobRef};
use super::ids::CallId;
use super::time::Timestamp;

/// The name of a background command in its session: `bash_1`, `bash_2` and so on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BashId(pub u32);

impl fmt::Display for BashId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bash_{}", self.0)
    }
}

impl fmt::Debug for BashId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BashId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().strip_prefix("bash_").and_then(|number| number.parse().ok());
        number.map(Self).ok_or("expected an id like bash_1")
    }
}

impl Serialize for BashId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BashId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for BashId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BashId".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^bash_[0-9]+$" })
    }
}

/// State of a background command.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum BackgroundState {
    /// It runs.
    Running,
    /// It ended by itself.
    Exited,
    /// It was ended; `killed_by` gives the reason.
    Killed,
    /// It exceeded its time limit.
    TimedOut,
    /// The daemon died while it ran: its processes are gone, and its progress is unknown.
    Lost,
}

impl BackgroundState {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The cause that ended a background command with state `killed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KilledBy {
    /// The model, with KillBash.
    Tool,
    /// An abort of its turn, or of the call that started it.
    Abort,
    /// Its session was killed.
    Session,
    /// The daemon stopped.
    Shutdown,
}

/// A background command as the journal records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundCommand {
    /// Its name in the session.
    pub bash_id: BashId,
    /// The call that started it.
    pub call_id: CallId,
    /// The beginning of the command.
    pub command: String,
    /// Its state.
    pub state: BackgroundState,
    /// Time of its start.
    pub started_at_ms: Timestamp,
    /// Bytes of its output that the model has received.
    #[serde(default)]
    pub read_bytes: u64,
    /// How it ended.
    #[serde(flatten, skip_serializing_if = "Option::is_none", default)]
    pub end: Option<BackgroundEnd>,
}

/// How a background command ended.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundEnd {
    /// Exit code of the shell; after a signal 128 plus its number.
    pub exit_code: Option<i32>,
    /// Number of the signal that ended it.
    pub signal: Option<i32>,
    /// The cause of its end, with `killed`.
    pub killed_by: Option<KilledBy>,
    /// Total bytes of its output.
    pub output_bytes: u64,
    /// Its full output, as far as the daemon kept it; absent without output.
    pub output_blob: Option<BlobRef>,
    /// A note about its end, for example an exceeded limit, or output that could not be kept.
    pub note: Option<String>,
    /// Ids of its processes that could not be ended.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub survivors: Vec<i32>,
    /// Duration of the run, in milliseconds.
    pub duration_ms: u64,
}

/// An ended command that the journal does not record yet.
#[derive(Clone, Debug, PartialEq)]
pub struct UnrecordedEnd {
    /// Its final state, never `running`.
    pub state: BackgroundState,
    /// How it ended.
    pub end: BackgroundEnd,
    /// The content of `output_blob`, stored with the event that names it.
    pub blob: Option<Blob>,
}

/// How much of a background command's output the model has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundRead {
    /// Name of the command.
    pub bash_id: BashId,
    /// Bytes of its output, from its beginning.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_id_parses_its_own_text() {
        assert_eq!(BashId(12).to_string(), "bash_12");
        for (text, expected) in [
            ("bash_1", Some(1)),
            (" bash_7\n", Some(7)),
            ("1", None),
            ("bash_", None),
            ("bash_-1", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), expected.map(BashId), "{text:?}");
        }
    }
}
