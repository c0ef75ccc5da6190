//! Layer 0: plain values that every layer may use. No async, no I/O, no clock.

pub mod audit;
pub mod background;
pub mod blob;
pub mod credentials;
pub mod depth;
pub mod event;
pub mod hex;
pub mod history;
pub mod ids;
pub mod invisible_chars;
pub mod item;
mod kinds;
pub mod ledger;
pub mod message;
pub mod metrics;
pub mod model;
pub mod names;
pub mod origin;
pub mod outcome;
pub mod permission;
pub mod prepared_call;
pub mod question;
pub mod queue;
pub mod reason;
pub mod sampling;
pub mod secret_names;
pub mod session;
pub mod thinking;
pub mod time;
pub mod tool;
pub mod turn_options;
pub mod usage;
pub mod wire;

pub use event::{Envelope, Event, Origin};
pub use ids::{CallId, ItemId, Mint, PermissionId, Seed, Seq, SessionId, TurnId};
pub use time::{Clock, Timestamp};
