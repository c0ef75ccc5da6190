//! The restrictions of a folder as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a text that restricts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestrictionKind {
    /// A rule that denies or asks.
    Rule,
    /// A hook that runs before calls, or on another event.
    Hook,
    /// An agent with a limited list of tools, a mode or a number of turns.
    Agent,
    /// A server with tools that it must not offer.
    Server,
}

/// One restriction.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restriction {
    /// Its kind.
    pub kind: RestrictionKind,
    /// The restriction in force, or why it could not be read.
    pub text: String,
    /// The file that holds it; absent for restrictions of a session.
    pub file: Option<String>,
    /// Its line in the file, from 1, if known.
    pub line: Option<u32>,
}

/// Everything that restricts calls in a folder: the reply of `workspace.restrictions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restrictions {
    /// The folder, absolute and free of links.
    pub cwd: String,
    /// Restrictions in force.
    pub in_force: Vec<Restriction>,
    /// Texts that could not be read, or that match nothing. The calls that they may concern ask.
    pub unread: Vec<Restriction>,
}
