//! The messages to a session's task.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::actor::effects::prompt::UnsentRequest;
use crate::attach::AttachGuard;
use crate::edit_context::EditContext;
use crate::error::SessionError;
use crate::idempotency::IdempotencyKey;
use crate::requests::{
    AbortOutcome, AnswerRequest, CommandSubmission, ParkPatience, QuestionAnswer, QueueChange, Reloaded,
    RewindOutcome, RewindRequest, SessionFacts, SettingsUpdate, Submission, SubmittedInput,
};
use engine::{OutsideUsage, SessionRules};
use types::compaction::CompactRequest;
use types::context_view::ContextView;
use types::event::Origin;
use types::hook::HookRun;
use types::ids::{CallId, PermissionId, Seq, TurnId};
use types::job::JobEvent;
use types::outcome::{AnswerOutcome, SubmitOutcome};
use types::permission::RuleKind;
use types::queue::QueuedTurn;

/// Sends the reply to the caller of a command.
pub(crate) type ReplyTo<T> = oneshot::Sender<Result<T, SessionError>>;

/// A message to a session. It is boxed: a tokio queue allocates space for 32 entries, and most sessions receive
/// few messages.
pub(crate) enum SessionCommand {
    Submit(Box<Submission>, SubmittedInput, ReplyTo<SubmitOutcome>),
    /// Compact the conversation.
    Compact(Box<CompactRequest>, Option<IdempotencyKey>, Origin, ReplyTo<SubmitOutcome>),
    /// The parts of the context window.
    Context(ReplyTo<ContextView>),
    /// The next model request.
    NextRequest(ReplyTo<UnsentRequest>),
    /// A model call about the index of the workspace.
    BookUsage(Box<OutsideUsage>, ReplyTo<()>),
    /// Events of the job that the session works on.
    JobEvents(Vec<JobEvent>, ReplyTo<()>),
    /// Hooks ran that belong to no call. The texts are the problems of all hooks, if they were read.
    HooksRan(Vec<HookRun>, Option<Vec<String>>, ReplyTo<()>),
    Command(Box<CommandSubmission>, ReplyTo<SubmitOutcome>),
    Facts(ReplyTo<SessionFacts>),
    /// Replies with the data that a caller needs to prepare changed arguments of a pending call.
    EditContext(PermissionId, ReplyTo<EditContext>),
    Answer(Box<AnswerRequest>, ReplyTo<AnswerOutcome>),
    Update(Box<SettingsUpdate>, ReplyTo<()>),
    /// Adds or removes a rule of the session.
    Rule {
        add: bool,
        kind: RuleKind,
        rule: String,
        origin: Origin,
        reply: ReplyTo<()>,
    },
    Rules(ReplyTo<Arc<SessionRules>>),
    Queue(ReplyTo<Vec<QueuedTurn>>),
    /// Changes the queue; replies with the queued turns afterwards.
    EditQueue(Box<QueueChange>, ReplyTo<Vec<QueuedTurn>>),
    Rewind(Box<RewindRequest>, ReplyTo<RewindOutcome>),
    /// Archives the session or restores it.
    Archive {
        archived: bool,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
        reply: ReplyTo<()>,
    },
    /// Replies with the seq of the event that recorded the answer.
    AnswerQuestion(Box<QuestionAnswer>, ReplyTo<Seq>),
    Abort {
        turn_id: Option<TurnId>,
        call_id: Option<CallId>,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
        reply: ReplyTo<AbortOutcome>,
    },
    Kill {
        keyed: Option<IdempotencyKey>,
        origin: Origin,
        reply: ReplyTo<AbortOutcome>,
    },
    Attach(AttachGuard, ReplyTo<AttachGuard>),
    /// The configuration or files that extend the session changed.
    Reloaded(Reloaded),
    /// Park the turn and end the task.
    Park {
        patience: ParkPatience,
        reply: oneshot::Sender<()>,
    },
    /// Unload the session if it has no work and no leases.
    Unload,
    /// Panic, for tests.
    #[cfg(test)]
    Panic,
}
