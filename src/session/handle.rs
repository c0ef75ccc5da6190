//! Messages to a session, and the handle that sends them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::{SetOnce, mpsc, oneshot};
use tokio::time::timeout;

use super::error::SessionError;
use super::registry::SessionSlot;
use crate::engine::{Busy, EditedCall, SessionRules};
use crate::session::lease::{Lease, LeaseCount};
use crate::session::stream::feed::Feed;
use crate::session::stream::follow::Follower;
use crate::store::{SessionKey, Store};
use crate::tools::SessionContext;
use crate::types::background::BackgroundCommand;
use crate::types::blob::Blob;
use crate::types::event::Origin;
use crate::types::ids::{CallId, PermissionId, QuestionId, Seq, SessionId, TurnId};
use crate::types::message::{InputBlock, ToolCall};
use crate::types::permission::{Decision, Mode, RuleKind, Scope};
use crate::types::question::Choice;
use crate::types::sampling::Sampling;
use crate::types::thinking::Thinking;
use crate::types::tool::ToolChoice;
use crate::types::usage::Budgets;

/// How long an attach waits for a session that is loading before it reads from the store. A short journal is
/// loaded within this time.
const LOAD_TIMEOUT: Duration = Duration::from_millis(10);

/// A caller's idempotency key with the digest of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key that the caller chose.
    pub key: String,
    /// Digest of the parameters.
    pub digest: String,
}

/// The parameters of a submit.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The user input.
    pub input: Vec<InputBlock>,
    /// Content of the images and documents in `input`, stored in the transaction of the input.
    pub blobs: Vec<Blob>,
    /// Policy for a session whose turn is running.
    pub when_busy: Busy,
    /// Refuse the input unless this is the current turn.
    pub expected_turn: Option<TurnId>,
    /// Limits of the turn.
    pub budgets: Option<Budgets>,
    /// Approval mode of the turn.
    pub mode: Option<Mode>,
    /// Model of the turn.
    pub model: Option<String>,
    /// Thinking setting of the turn.
    pub thinking: Option<Thinking>,
    /// Tools that the turn offers.
    pub tools: Option<ToolChoice>,
    /// Sampling settings of the turn.
    pub sampling: Sampling,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent it.
    pub origin: Origin,
}

/// The result of a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SubmitOutcome {
    /// The turn that answers the input.
    pub turn_id: TurnId,
    /// Whether the input runs, is queued or steers.
    pub state: SubmittedAs,
    /// Seq of the event that recorded the input.
    pub seq: Seq,
}

/// How a submit was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SubmittedAs {
    /// Its turn is running.
    Running,
    /// The input is queued.
    Queued,
    /// The running turn receives the input.
    Steered,
}

/// An answer to a permission request.
#[derive(Clone, Debug)]
pub struct PermissionAnswer {
    /// Id of the permission request.
    pub request_id: PermissionId,
    /// Allow or deny.
    pub decision: Decision,
    /// How long the answer applies.
    pub scope: Scope,
    /// The grant to store.
    pub grant: Option<String>,
    /// Feedback text for the model.
    pub feedback: Option<String>,
    /// Whether this denial ends the turn.
    pub stop: bool,
    /// Whether the client denied because it has no user to ask.
    pub no_approver: bool,
    /// Arguments that replace the model's.
    pub updated_input: Option<serde_json::Value>,
    /// Digest of the request that the user saw.
    pub digest: Option<String>,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent it.
    pub origin: Origin,
}

/// An accepted answer.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AnswerOutcome {
    /// Seq of the event that recorded the answer.
    pub seq: Seq,
    /// The stored grant.
    pub grant: Option<String>,
}

/// Changes of a session. Absent values stay unchanged.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Short title.
    pub title: Option<String>,
    /// Approval mode.
    pub mode: Option<Mode>,
    /// Limits of later turns.
    pub budgets: Option<Budgets>,
    /// Model of later turns.
    pub model: Option<String>,
    /// Tools of later turns.
    pub tools: Option<ToolChoice>,
    /// All additional folders of the workspace.
    pub additional_dirs: Option<Vec<String>>,
    /// Thinking setting of later turns.
    pub thinking: Option<Thinking>,
    /// Sampling settings of later turns.
    pub sampling: Sampling,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent it.
    pub origin: Origin,
}

/// The call of a pending request and its context, needed to check changed arguments.
pub(super) struct PendingCall {
    pub call: Arc<ToolCall>,
    pub session_context: Arc<SessionContext>,
}

/// An answer to a question.
#[derive(Clone, Debug)]
pub struct QuestionAnswer {
    /// Id of the question.
    pub request_id: QuestionId,
    /// The option that the user chose.
    pub choice: Choice,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent it.
    pub origin: Origin,
}

/// The work that an abort stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AbortOutcome {
    /// The turn, if it was stopped.
    pub turn: Option<TurnId>,
    /// The calls that were stopped.
    pub calls: Vec<CallId>,
    /// Ids of processes that could not be killed.
    pub survivors: Vec<i32>,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, SessionError>>;

/// A message to a session. It is boxed: a tokio queue allocates space for 32 entries, and most sessions receive
/// few messages.
pub(super) enum SessionCommand {
    Submit(Box<Submission>, Reply<SubmitOutcome>),
    /// The edited call describes the effect of changed arguments, if the answer changes them.
    Answer(Box<PermissionAnswer>, Option<Box<EditedCall>>, Reply<AnswerOutcome>),
    /// Returns the call of a pending request.
    PendingCall(PermissionId, Reply<PendingCall>),
    Update(Box<Changes>, Reply<()>),
    /// Adds or removes a rule of the session.
    Rule {
        add: bool,
        kind: RuleKind,
        rule: String,
        origin: Origin,
        reply: Reply<()>,
    },
    Rules(Reply<Arc<SessionRules>>),
    /// Replies with the seq of the event that recorded the answer.
    AnswerQuestion(Box<QuestionAnswer>, Reply<Seq>),
    Abort {
        turn_id: Option<TurnId>,
        call_id: Option<CallId>,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
        reply: Reply<AbortOutcome>,
    },
    Kill {
        keyed: Option<IdempotencyKey>,
        origin: Origin,
        reply: Reply<AbortOutcome>,
    },
    Attach(AttachGuard, Reply<AttachGuard>),
    /// The configuration was reloaded.
    Reloaded {
        changed: Vec<String>,
        needs_restart: Vec<String>,
    },
    /// Park the turn and end the task. With `patient`, running tools get some time to finish.
    Park {
        patient: bool,
        reply: oneshot::Sender<()>,
    },
    /// Unload the session if it has no work and no leases.
    Unload,
    /// Panic, for tests.
    #[cfg(test)]
    Panic,
}

/// A handle on a loaded session. It holds a lease, so the session stays loaded while a handle exists. Cheap to
/// clone.
#[derive(Clone)]
pub struct SessionHandle {
    at: LoadedSession,
    lease: Lease,
}

/// A loaded session in the registry. It holds no lease, so the session may be unloaded.
#[derive(Clone)]
pub(super) struct LoadedSession {
    pub(super) id: SessionId,
    pub(super) key: SessionKey,
    pub(super) store: Store,
    pub(super) mailbox: mpsc::Sender<Box<SessionCommand>>,
    /// Detach messages. They come from `Drop`, which cannot wait, so the queue is unbounded. Each attach adds
    /// at most one entry.
    pub(super) leaving: mpsc::UnboundedSender<Box<Origin>>,
    pub(super) feed: Arc<Feed>,
    pub(super) clients: Arc<AtomicU32>,
    pub(super) leases: Arc<LeaseCount>,
    /// Background tasks of the session.
    pub(super) commands: Arc<RwLock<Vec<BackgroundCommand>>>,
    /// Result of loading the session, set when it has ended.
    pub(super) loaded: Arc<SetOnce<Result<(), SessionError>>>,
}

/// Counts an attached client and holds a lease. Dropping it detaches the client.
pub struct AttachGuard {
    leaving: mpsc::UnboundedSender<Box<Origin>>,
    pub(super) origin: Origin,
    /// Whether the session has counted this client. Without that, dropping the guard sends no detach.
    pub(super) is_counted: bool,
    _visit: Lease,
}

/// An attached client, now or when the session is loaded. Dropping it detaches the client.
#[expect(dead_code, reason = "kept for what dropping it does")]
pub struct AttachReply(Stay);

#[expect(dead_code, reason = "kept for what dropping it does")]
enum Stay {
    Counted(AttachGuard),
    /// The session returns the guard once it has counted the client. If the receiver is gone, the guard is
    /// dropped then.
    Coming(oneshot::Receiver<Result<AttachGuard, SessionError>>),
}

impl Drop for AttachGuard {
    fn drop(&mut self) {
        if self.is_counted {
            // This fails only if the session has been unloaded, and then no count exists.
            let _ = self.leaving.send(Box::new(self.origin.clone()));
        }
    }
}

impl LoadedSession {
    /// Acquires a handle; `None` if the session is being unloaded. `tick` rises with each lease.
    pub fn enter(&self, tick: u64) -> Option<SessionHandle> {
        let lease = self.leases.acquire(tick)?;
        Some(SessionHandle { at: self.clone(), lease })
    }

    /// The current background tasks.
    pub fn commands(&self) -> Vec<BackgroundCommand> {
        self.commands.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the session's task panicked, so that the session must be loaded again.
    pub fn has_crashed(&self) -> bool {
        self.feed.has_crashed()
    }

    /// Waits until the session's task has ended.
    pub async fn gone(&self) {
        self.mailbox.closed().await;
    }

    pub async fn reloaded(&self, changed: Vec<String>, needs_restart: Vec<String>) {
        // An unloaded session reads the new configuration when it is loaded again.
        let _ = self.mailbox.send(Box::new(SessionCommand::Reloaded { changed, needs_restart })).await;
    }

    pub async fn park(&self, patient: bool) {
        let (reply, parked) = oneshot::channel();
        if self.mailbox.send(Box::new(SessionCommand::Park { patient, reply })).await.is_ok() {
            let _ = parked.await;
        }
    }
}

impl SessionHandle {
    /// The session's id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.at.id
    }

    /// The session's key in the store.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        self.at.key
    }

    /// Number of attached clients.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.at.clients.load(Ordering::Relaxed)
    }

    /// Seq of the newest published event.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.at.feed.last_seq()
    }

    /// Submits an input. It is on disk when this returns. A dropped call may still be accepted.
    ///
    /// # Errors
    /// The input was refused or the store failed. Nothing was recorded.
    pub async fn submit(&self, submission: Submission) -> Result<SubmitOutcome, SessionError> {
        self.ask(|reply| SessionCommand::Submit(Box::new(submission), reply)).await
    }

    /// Answers a permission request. The answer is on disk when this returns.
    ///
    /// # Errors
    /// The request is not pending, or the store failed.
    pub(super) async fn answer(
        &self,
        answer: PermissionAnswer,
        edited: Option<EditedCall>,
    ) -> Result<AnswerOutcome, SessionError> {
        self.ask(|reply| SessionCommand::Answer(Box::new(answer), edited.map(Box::new), reply)).await
    }

    /// The call of a pending request.
    pub(super) async fn pending_call(&self, request_id: PermissionId) -> Result<PendingCall, SessionError> {
        self.ask(|reply| SessionCommand::PendingCall(request_id, reply)).await
    }

    pub(super) async fn update(&self, changes: Changes) -> Result<(), SessionError> {
        self.ask(|reply| SessionCommand::Update(Box::new(changes), reply)).await
    }

    pub(super) async fn change_rule(
        &self,
        add: bool,
        kind: RuleKind,
        rule: String,
        origin: Origin,
    ) -> Result<(), SessionError> {
        self.ask(|reply| SessionCommand::Rule { add, kind, rule, origin, reply }).await
    }

    /// The rules and grants of this session only.
    pub(super) async fn rules(&self) -> Result<Arc<SessionRules>, SessionError> {
        self.ask(SessionCommand::Rules).await
    }

    /// Answers a question. The answer is on disk when this returns. Returns the seq of its event.
    ///
    /// # Errors
    /// The question is not pending, or the store failed.
    pub async fn answer_question(&self, chosen: QuestionAnswer) -> Result<Seq, SessionError> {
        self.ask(|reply| SessionCommand::AnswerQuestion(Box::new(chosen), reply)).await
    }

    /// Aborts the turn or one call. Returns when the work has stopped.
    ///
    /// # Errors
    /// The given turn is not the current one.
    pub async fn abort(
        &self,
        turn_id: Option<TurnId>,
        call_id: Option<CallId>,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<AbortOutcome, SessionError> {
        self.ask(|reply| SessionCommand::Abort { turn_id, call_id, keyed, origin, reply }).await
    }

    /// Stops the turn and ends the session.
    ///
    /// # Errors
    /// The store failed.
    pub async fn kill(
        &self,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<AbortOutcome, SessionError> {
        self.ask(|reply| SessionCommand::Kill { keyed, origin, reply }).await
    }

    /// Attaches a client and follows the journal from `after_seq`. A long journal is read from the store while
    /// its session is still loading. The client counts as attached when loading has ended.
    ///
    /// # Errors
    /// The cursor is beyond the end of the journal, or the session could not be loaded.
    pub async fn attach(
        &self,
        after_seq: Seq,
        origin: Origin,
    ) -> Result<(Follower, AttachReply), SessionError> {
        let LoadedSession { store, key, feed, leaving, .. } = &self.at;
        let follower = Follower::start(store.clone(), *key, Arc::clone(feed), after_seq).await?;
        let attachment =
            AttachGuard { leaving: leaving.clone(), origin, is_counted: false, _visit: self.lease.clone() };
        let (reply, mut answer) = oneshot::channel();
        let command = Box::new(SessionCommand::Attach(attachment, reply));
        self.at.mailbox.send(command).await.map_err(|_| self.gone())?;
        if timeout(LOAD_TIMEOUT, self.at.loaded.wait()).await.is_err() {
            return Ok((follower, AttachReply(Stay::Coming(answer))));
        }
        let attachment = (&mut answer).await.map_err(|_| self.gone())??;
        Ok((follower, AttachReply(Stay::Counted(attachment))))
    }

    /// Waits until the session's task has ended, then removes its slot from the map.
    pub(super) async fn wait_unloaded(&self, live: &DashMap<SessionId, SessionSlot>) {
        self.at.gone().await;
        let is_it =
            |slot: &SessionSlot| slot.get().is_some_and(|it| Arc::ptr_eq(&it.leases, &self.at.leases));
        live.remove_if(&self.at.id, |_, slot| is_it(slot));
    }

    /// Waits until the session is loaded.
    ///
    /// # Errors
    /// Loading failed.
    pub(super) async fn loaded(&self) -> Result<(), SessionError> {
        self.at.loaded.wait().await.clone()
    }

    pub(super) async fn park(&self, patient: bool) {
        self.at.park(patient).await;
    }

    fn gone(&self) -> SessionError {
        match self.at.loaded.get() {
            Some(Err(error)) => error.clone(),
            _ if self.at.has_crashed() => SessionError::Crashed,
            _ => SessionError::ShuttingDown,
        }
    }

    async fn ask<T>(&self, make: impl FnOnce(Reply<T>) -> SessionCommand) -> Result<T, SessionError> {
        let (reply, answer) = oneshot::channel();
        self.at.mailbox.send(Box::new(make(reply))).await.map_err(|_| self.gone())?;
        answer.await.map_err(|_| self.gone())?
    }
}
