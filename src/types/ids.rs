//! Identifiers. Each kind has its own type and prints with its prefix (`config.md`, "Ids").
//!
//! An id is a UUID (version 7, RFC 9562) after a prefix. The daemon generates ids from an input ([`Mint`]), so
//! that the engine stays a pure function.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// Position of an event in its session's journal: strictly increasing, never reused, from 1.
pub type Seq = u64;

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an id like {prefix}_0190f2a4-… (prefix and UUID)")]
pub struct BadId {
    /// The expected prefix, without the underscore.
    pub prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// The text before the underscore.
            pub const PREFIX: &'static str = $prefix;
            /// Sorts before all others. No object has it.
            pub const MIN: Self = Self(Uuid::nil());

            /// Wraps an existing UUID.
            #[must_use]
            pub const fn from_uuid(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.as_hyphenated())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(|rest| Uuid::try_parse(rest).ok())
                    .map(Self)
                    .ok_or(BadId { prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $prefix, "_[0-9a-fA-F-]{32,36}$"),
                })
            }
        }
    )*};
}

ids! {
    /// One conversation and its state.
    SessionId = "ses";
    /// One user message and all the work done to answer it.
    TurnId = "turn";
    /// One entry of the conversation: a message, a tool call, a notice.
    ItemId = "item";
    /// One tool call.
    CallId = "call";
    /// One question whether a tool call may run.
    PermissionId = "perm";
    /// One question to the user that is not about permission.
    QuestionId = "ask";
    /// Content of a session that is too large for an event. It is valid in that session only.
    BlobId = "blob";
    /// One piece of unattended work.
    JobId = "job";
    /// What creates jobs at given times.
    ScheduleId = "sched";
    /// One message about a job to one receiver.
    MessageId = "msg";
}

impl SessionId {
    /// An id that is always the same for one digest. Its time is 0, so it sorts before all others.
    #[must_use]
    pub fn from_digest(digest: &[u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(0, digest).into_uuid())
    }
}

impl CallId {
    /// An id that belongs to an item, for temporary files of work on that item.
    #[must_use]
    pub const fn of_item(item_id: ItemId) -> Self {
        Self(item_id.0)
    }
}

/// A request or question that waits for the user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// Whether a tool call may run.
    Permission(PermissionId),
    /// Any other decision.
    Question(QuestionId),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Permission(id) => id.fmt(f),
            RequestId::Question(id) => id.fmt(f),
        }
    }
}

/// Randomness as an input. 128 bits, taken from the operating system by [`Seed::random`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u128);

impl Seed {
    /// A fresh seed. Apart from the clock, this is the only impure function of this layer.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::now_v7().as_u128() ^ (Uuid::now_v7().as_u128() << 54))
    }
}

/// Seeds for one owner. It reads the operating system's randomness once, because one read per delta is too
/// slow.
#[derive(Clone, Debug)]
pub struct Seeds(Mint);

impl Seeds {
    /// A source that starts with a random seed.
    #[must_use]
    pub fn random() -> Self {
        Self(Mint::new(0, Seed::random()))
    }

    /// The next seed.
    pub fn next_seed(&mut self) -> Seed {
        Seed((u128::from(self.0.random()) << 64) | u128::from(self.0.random()))
    }
}

impl Default for Seeds {
    fn default() -> Self {
        Self::random()
    }
}

/// Generates ids and random numbers from a seed and a time: the same inputs give the same ids.
#[derive(Clone, Debug)]
pub struct Mint {
    at_ms: u64,
    state: u128,
    made: u16,
}

impl Mint {
    /// Ids generated here contain the time `at_ms` (milliseconds since the Unix epoch).
    #[must_use]
    pub fn new(at_ms: i64, seed: Seed) -> Self {
        Self { at_ms: u64::try_from(at_ms).unwrap_or(0), state: seed.0, made: 0 }
    }

    /// 64 pseudo-random bits (SplitMix64 over both halves of the seed).
    pub fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let mut z = (self.state ^ (self.state >> 64)) as u64;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn uuid(&mut self) -> Uuid {
        let mut random = [0u8; 10];
        random[..8].copy_from_slice(&self.random().to_le_bytes());
        random[8..].copy_from_slice(&self.random().to_le_bytes()[..2]);
        // A counter in `rand_a` (RFC 9562, 6.2, method 1): ids of one generator sort in the order of
        // generation.
        random[..2].copy_from_slice(&(self.made & 0x0fff).to_be_bytes());
        self.made = self.made.wrapping_add(1);
        uuid::Builder::from_unix_timestamp_millis(self.at_ms, &random).into_uuid()
    }

    /// A new session id.
    pub fn session(&mut self) -> SessionId {
        SessionId(self.uuid())
    }
    /// A new turn id.
    pub fn turn(&mut self) -> TurnId {
        TurnId(self.uuid())
    }
    /// A new item id.
    pub fn item(&mut self) -> ItemId {
        ItemId(self.uuid())
    }
    /// A new tool call id.
    pub fn call(&mut self) -> CallId {
        CallId(self.uuid())
    }
    /// A new permission request id.
    pub fn permission(&mut self) -> PermissionId {
        PermissionId(self.uuid())
    }
    /// A new job's id.
    pub fn job(&mut self) -> JobId {
        JobId(self.uuid())
    }
    /// A new schedule's id.
    pub fn schedule(&mut self) -> ScheduleId {
        ScheduleId(self.uuid())
    }
    /// A new message's id.
    pub fn message(&mut self) -> MessageId {
        MessageId(self.uuid())
    }
    /// A new question's id.
    pub fn question(&mut self) -> QuestionId {
        QuestionId(self.uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_round_trips_and_refuses_other_prefix() {
        let mut mint = Mint::new(1_700_000_000_000, Seed(7));
        let id = mint.session();
        assert_eq!(id.to_string().parse::<SessionId>(), Ok(id));
        assert!(id.to_string().starts_with("ses_"));
        assert!(id.to_string().parse::<TurnId>().is_err());
        assert!("ses_zz".parse::<SessionId>().is_err());
    }

    #[test]
    fn random_seeds_are_all_different() {
        let (mut a, mut b) = (Seeds::random(), Seeds::random());
        let seeds: std::collections::HashSet<_> =
            (0..1000).flat_map(|_| [a.next_seed().0, b.next_seed().0]).collect();
        assert_eq!(seeds.len(), 2000);
        let distinct: std::collections::HashSet<_> =
            seeds.into_iter().map(|seed| Mint::new(5, Seed(seed)).item()).collect();
        assert_eq!(distinct.len(), 2000);
    }

    #[test]
    fn same_seed_creates_same_unique_ids() {
        let (mut a, mut b) = (Mint::new(5, Seed(1)), Mint::new(5, Seed(1)));
        let first: Vec<_> = (0..1000).map(|_| a.item()).collect();
        let again: Vec<_> = (0..1000).map(|_| b.item()).collect();
        assert_eq!(first, again);
        assert!(first.is_sorted());
        let distinct: std::collections::HashSet<_> = first.into_iter().collect();
        assert_eq!(distinct.len(), 1000);
    }
}
