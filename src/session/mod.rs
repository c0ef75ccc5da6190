//! Layer 3: one task owns one session. It decides, writes, remembers, tells and acts, in that order;
//! everybody else holds a [`SessionHandle`], whose methods are messages.

mod actor;
mod changes;
mod effective_rules;
mod error;
mod handle;
mod lease;
mod metrics;
mod registry;
mod shared;
mod stream;

pub use actor::journal::summarise;
pub use changes::cumulative_diff as changes_of;
pub use error::SessionError;
pub use handle::{
    AbortOutcome, AnswerOutcome, AttachReply, Changes, IdempotencyKey, PermissionAnswer, QuestionAnswer,
    SessionHandle, Submission, SubmitOutcome, SubmittedAs,
};
pub use registry::create_request::NewSessionRequest;
pub use registry::explain::{Question, explain};
pub use registry::pending::PendingFollower;
pub use registry::rules::{KnownRule, RuleChange};
pub use registry::trust::TrustStatus;
pub use registry::{Pending, Registry};
pub use shared::{Components, ConfiguredRule, Observer, PendingChange, Settings, Shared};
pub use stream::follow::Follower;

// Words of the floors below that are part of this floor's language.
pub use crate::engine::{Busy, Refusal};
pub use crate::policy::PolicyError;
pub use crate::store::{
    AuditCheck, AuditQuery, LedgerQuery, Page, SessionQuery, StoreError, StoredItem, Sync, backups,
};
pub use crate::tools::{IngestedFile, InputFile, Source as GiftSource};
