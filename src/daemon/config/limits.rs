//! `[limits]`: what one client may ask for, and what is kept in memory.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use super::values::{Size, Span};
use crate::transport;

/// Deeper JSON is refused by the parser in any case.
const DEEPEST: usize = 128;

/// `[limits]`; what is absent stays as the transport has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Longest message taken in, in bytes.
    pub message_bytes: Option<NonZeroUsize>,
    /// Deepest nesting of a call's parameters; 128 at most.
    #[serde(deserialize_with = "nesting")]
    pub nesting: Option<NonZeroUsize>,
    /// Most calls in one batch.
    pub batch: Option<NonZeroUsize>,
    /// Most connections at once.
    pub connections: Option<NonZeroUsize>,
    /// Most calls that run at once on one connection.
    pub in_flight: Option<NonZeroUsize>,
    /// Most subscriptions on one connection.
    pub subscriptions: Option<NonZeroUsize>,
    /// Whether root may connect to a daemon of another user.
    pub allow_root: bool,
    /// How long a session that nobody uses stays in memory.
    #[serde(deserialize_with = "some_time")]
    pub idle_unload: Option<Span>,
    /// Sessions in memory; beyond that, those that were not used for longest leave at once.
    pub loaded_sessions: Option<NonZeroUsize>,
    /// How much the journal may hold.
    pub journal_size: Option<Size>,
    /// How long sessions that have ended are kept.
    #[serde(deserialize_with = "some_time")]
    pub keep_ended: Option<Span>,
}

/// A session that nobody uses is in memory for so long.
const IDLE_UNLOAD: Duration = Duration::from_secs(600);
/// So many sessions are in memory, unless more are used.
const LOADED_SESSIONS: usize = 1_000;

/// The journal may hold so much.
const JOURNAL_SIZE: u64 = 32 << 30;

impl Limits {
    /// How much the journal may hold, in bytes.
    #[must_use]
    pub fn journal_size(&self) -> u64 {
        self.journal_size.map_or(JOURNAL_SIZE, |size| size.0)
    }

    /// How long a session that nobody uses stays in memory.
    #[must_use]
    pub fn idle_unload(&self) -> Duration {
        self.idle_unload.map_or(IDLE_UNLOAD, |span| span.0)
    }

    /// Sessions in memory, unless more are used.
    #[must_use]
    pub fn loaded_sessions(&self) -> usize {
        self.loaded_sessions.map_or(LOADED_SESSIONS, NonZeroUsize::get)
    }

    /// The same in the transport's words.
    #[must_use]
    pub fn of_transport(&self) -> transport::Limits {
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

fn nesting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroUsize>, D::Error> {
    let given = NonZeroUsize::deserialize(deserializer)?;
    if given.get() > DEEPEST {
        return Err(de::Error::custom(format!("{given} is too deep: {DEEPEST} at most")));
    }
    Ok(Some(given))
}

fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    let given = Span::deserialize(deserializer)?;
    if given.0.is_zero() {
        return Err(de::Error::custom("0 is no time: 1ms at least"));
    }
    Ok(Some(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limits_are_read_with_defaults() {
        let kept = |text: &str| {
            let limits = toml::from_str::<Limits>(text).map_err(|error| error.to_string());
            limits.map(|limits| (limits.idle_unload(), limits.loaded_sessions()))
        };
        assert_eq!(kept(""), Ok((IDLE_UNLOAD, LOADED_SESSIONS)));
        let given = kept("idle_unload = \"30s\"\nloaded_sessions = 5");
        assert_eq!(given, Ok((Duration::from_secs(30), 5)));
        for wrong in
            ["idle_unload = \"0s\"", "idle_unload = 30", "loaded_sessions = 0", "keep_ended = \"0d\""]
        {
            kept(wrong).expect_err(wrong);
        }
    }

    fn parse(text: &str) -> Result<transport::Limits, String> {
        toml::from_str::<Limits>(text).map(|limits| limits.of_transport()).map_err(|e| e.to_string())
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
