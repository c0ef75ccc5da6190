//! The client that caused an event, as other clients see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The client that caused an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// Name that the client gave in `daemon.hello`, or `client-N`.
    pub client: String,
    /// Its user id.
    pub uid: u32,
    /// Its process id when it connected; for display only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<i32>,
    /// The program it ran when it connected. Only the audit log contains it.
    #[serde(skip)]
    pub exe: Option<String>,
}
