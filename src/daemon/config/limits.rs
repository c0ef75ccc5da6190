//! `[limits]`: limits per client and limits of memory.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, de};

use types::config_values::{ConfigDuration, ConfigSize};

/// Maximum nesting of JSON. The parser refuses deeper JSON in any case.
const MAX_NESTING: usize = 128;

/// `[limits]`. Absent values use the defaults of the transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum size of a message in bytes.
    pub message_bytes: Option<NonZeroUsize>,
    /// Maximum nesting of a call's parameters, up to 128.
    #[serde(deserialize_with = "deserialize_nesting")]
    pub nesting: Option<NonZeroUsize>,
    /// Maximum number of calls in one batch.
    pub batch: Option<NonZeroUsize>,
    /// Maximum number of connections.
    pub connections: Option<NonZeroUsize>,
    /// Maximum number of running calls per connection.
    pub in_flight: Option<NonZeroUsize>,
    /// Maximum number of subscriptions per connection.
    pub subscriptions: Option<NonZeroUsize>,
    /// Whether root may connect to a daemon of another user.
    pub allow_root: bool,
    /// How long an unused session stays loaded.
    #[serde(deserialize_with = "deserialize_nonzero_span")]
    pub idle_unload: Option<ConfigDuration>,
    /// Maximum number of loaded sessions. Beyond it, the least recently used ones are unloaded.
    pub loaded_sessions: Option<NonZeroUsize>,
    /// Maximum depth of sub-agents: a sub-agent of a sub-agent has depth 2.
    pub subagent_depth: Option<u32>,
    /// Maximum number of sub-agents of a session, with those of its sub-agents, at once; 0 turns them off.
    pub subagents: Option<usize>,
    pub journal_size: Option<ConfigSize>,
    /// Age at which ended sessions are deleted.
    #[serde(deserialize_with = "deserialize_nonzero_span")]
    pub delete_ended_after: Option<ConfigDuration>,
}

/// Default time that an unused session stays loaded.
const DEFAULT_IDLE_UNLOAD: Duration = Duration::from_secs(600);
/// Default maximum number of loaded sessions, unless more are in use.
const DEFAULT_LOADED_SESSIONS: usize = 1_000;

/// Default size limit of the journal: 32 GiB.
const DEFAULT_JOURNAL_BYTES: u64 = 32 << 30;

/// Default depth and number of sub-agents.
const DEFAULT_SUBAGENT_DEPTH: u32 = 3;
const DEFAULT_SUBAGENTS: usize = 10;

impl Limits {
    /// Maximum depth of sub-agents.
    #[must_use]
    pub fn subagent_depth(&self) -> u32 {
        self.subagent_depth.unwrap_or(DEFAULT_SUBAGENT_DEPTH)
    }

    /// Maximum number of sub-agents of a tree at once.
    #[must_use]
    pub fn subagents(&self) -> usize {
        self.subagents.unwrap_or(DEFAULT_SUBAGENTS)
    }

    /// Size limit of the journal in bytes.
    #[must_use]
    pub fn journal_size(&self) -> u64 {
        self.journal_size.map_or(DEFAULT_JOURNAL_BYTES, |size| size.0)
    }

    /// How long an unused session stays loaded.
    #[must_use]
    pub fn idle_unload(&self) -> Duration {
        self.idle_unload.map_or(DEFAULT_IDLE_UNLOAD, |span| span.0)
    }

    /// Maximum number of loaded sessions, unless more are in use.
    #[must_use]
    pub fn loaded_sessions(&self) -> usize {
        self.loaded_sessions.map_or(DEFAULT_LOADED_SESSIONS, NonZeroUsize::get)
    }

    /// Converts the limits to those of the transport.
    #[must_use]
    pub fn transport_limits(&self) -> transport::Limits {
        let default = transport::Limits::default();
        let or = |given: Option<NonZeroUsize>, default: usize| given.map_or(default, NonZeroUsize::get);
        transport::Limits {
            max_message_bytes: or(self.message_bytes, default.max_message_bytes),
            max_depth: or(self.nesting, default.max_depth),
            max_batch: or(self.batch, default.max_batch),
            max_connections: or(self.connections, default.max_connections),
            max_in_flight: or(self.in_flight, default.max_in_flight),
            max_subscriptions: or(self.subscriptions, default.max_subscriptions),
            allow_root: self.allow_root,
            ..default
        }
    }
}

fn deserialize_nesting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroUsize>, D::Error> {
    let value = NonZeroUsize::deserialize(deserializer)?;
    if value.get() > MAX_NESTING {
        return Err(de::Error::custom(format!("{value} is too deep: {MAX_NESTING} at most")));
    }
    Ok(Some(value))
}

fn deserialize_nonzero_span<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ConfigDuration>, D::Error> {
    let value = ConfigDuration::deserialize(deserializer)?;
    if value.0.is_zero() {
        return Err(de::Error::custom("must be at least 1ms"));
    }
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limits_are_read_with_defaults() {
        let parse_limits = |text: &str| {
            let limits = toml::from_str::<Limits>(text).map_err(|error| error.to_string());
            limits.map(|limits| (limits.idle_unload(), limits.loaded_sessions()))
        };
        assert_eq!(parse_limits(""), Ok((DEFAULT_IDLE_UNLOAD, DEFAULT_LOADED_SESSIONS)));
        let parsed = parse_limits("idle_unload = \"30s\"\nloaded_sessions = 5");
        assert_eq!(parsed, Ok((Duration::from_secs(30), 5)));
        for wrong in
            ["idle_unload = \"0s\"", "idle_unload = 30", "loaded_sessions = 0", "delete_ended_after = \"0d\""]
        {
            parse_limits(wrong).expect_err(wrong);
        }
    }

    fn parse(text: &str) -> Result<transport::Limits, String> {
        toml::from_str::<Limits>(text).map(|limits| limits.transport_limits()).map_err(|e| e.to_string())
    }

    #[test]
    fn given_limits_override_defaults_individually() {
        assert_eq!(parse(""), Ok(transport::Limits::default()));
        let all = "message_bytes = 1\nnesting = 2\nbatch = 3\nconnections = 4\nin_flight = 5\n\
                   subscriptions = 6\nallow_root = true";
        let expected = transport::Limits {
            max_message_bytes: 1,
            max_depth: 2,
            max_batch: 3,
            max_connections: 4,
            max_in_flight: 5,
            max_subscriptions: 6,
            allow_root: true,
            ..transport::Limits::default()
        };
        assert_eq!(parse(all), Ok(expected));
    }

    #[test]
    fn invalid_and_unknown_limits_are_refused() {
        for key in ["message_bytes", "nesting", "batch", "connections", "in_flight", "subscriptions"] {
            parse(&format!("{key} = 0")).expect_err(key);
            parse(&format!("{key} = -1")).expect_err(key);
        }
        assert!(parse("nesting = 129").is_err_and(|why| why.contains("128 at most")));
        parse("nesting = 128").expect("as deep as can be");
        parse("mesage_bytes = 5").expect_err("a typo");
    }
}
