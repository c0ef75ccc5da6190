//! Floor 3: one task owns one session. It decides, writes, remembers, tells and acts, in that order;
//! everybody else holds a [`SessionHandle`], whose methods are messages.

mod actor;
mod audit;
mod commands;
mod door;
mod error;
mod explain;
mod feed;
mod follow;
mod handle;
mod house;
mod jobs;
mod journal;
mod loading;
mod moments;
mod registry;
mod request;

pub use error::SessionError;
pub use explain::{Question, explain};
pub use follow::Follower;
pub use handle::{
    Aborted, Answer, Answered, Attached, Chosen, Keyed, SessionHandle, Submission, Submitted, SubmittedAs,
};
pub use house::{House, Settings, Setup};
pub use journal::summarise;
pub use registry::Registry;
pub use request::NewSessionRequest;

// Words of the floors below that are part of this floor's language.
pub use crate::engine::{Busy, Refusal};
pub use crate::store::{AuditCheck, AuditQuery, Page, StoreError, StoredItem, Sync, backups};
