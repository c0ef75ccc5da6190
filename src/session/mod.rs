//! Floor 3: one task owns one session. It decides, writes, remembers, tells and acts, in that order;
//! everybody else holds a [`SessionHandle`], whose methods are messages.

mod actor;
mod audit;
mod blobs;
mod changes;
mod commands;
mod door;
mod error;
mod explain;
mod feed;
mod follow;
mod grants;
mod handle;
mod house;
mod jobs;
mod journal;
mod law;
mod loading;
mod making;
mod media;
mod metrics;
mod moments;
mod pace;
mod registry;
mod request;
mod rules;
mod trust;
mod vigil;

pub use changes::cumulative_diff as changes_of;
pub use error::SessionError;
pub use explain::{Question, explain};
pub use follow::Follower;
pub use handle::{
    AbortOutcome, AnswerOutcome, AttachReply, Changes, IdempotencyKey, PermissionAnswer, QuestionAnswer,
    SessionHandle, Submission, SubmitOutcome, SubmittedAs,
};
pub use house::{Components, ConfiguredRule, Observer, PendingChange, Settings, Shared};
pub use journal::summarise;
pub use registry::{Pending, Registry};
pub use request::NewSessionRequest;
pub use rules::{KnownRule, RuleChange};
pub use trust::TrustStatus;
pub use vigil::PendingFollower;

// Words of the floors below that are part of this floor's language.
pub use crate::engine::{Busy, Refusal};
pub use crate::policy::PolicyError;
pub use crate::store::{
    AuditCheck, AuditQuery, LedgerQuery, Page, SessionQuery, StoreError, StoredItem, Sync, backups,
};
pub use crate::tools::{IngestedFile, InputFile, Source as GiftSource};
