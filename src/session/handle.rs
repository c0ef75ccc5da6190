//! The language in which the rest of the house speaks to a session.

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

/// How long an attach waits for a session that is being loaded, before it reads ahead: a short journal is
/// loaded by then.
const LOAD_TIMEOUT: Duration = Duration::from_millis(10);

/// A caller's idempotency key with the digest of what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key.
    pub key: String,
    /// Digest of the parameters.
    pub digest: String,
}

/// A submit.
#[derive(Clone, Debug)]
pub struct Submission {
    /// What to do.
    pub input: Vec<InputBlock>,
    /// Contents of the pictures and documents of `input`, stored in the transaction that takes it in.
    pub blobs: Vec<Blob>,
    /// While a turn runs.
    pub when_busy: Busy,
    /// Refuse unless this is the current turn.
    pub expected_turn: Option<TurnId>,
    /// Limits of the turn.
    pub budgets: Option<Budgets>,
    /// Approval mode of the turn.
    pub mode: Option<Mode>,
    /// Model of the turn.
    pub model: Option<String>,
    /// How much the model may think in the turn.
    pub thinking: Option<Thinking>,
    /// The tools that the turn offers.
    pub tools: Option<ToolChoice>,
    /// How freely it chooses its words in this turn.
    pub sampling: Sampling,
    /// Idempotency.
    pub keyed: Option<IdempotencyKey>,
    /// Who.
    pub origin: Origin,
}

/// What became of a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SubmitOutcome {
    /// The turn that answers it.
    pub turn_id: TurnId,
    /// Running, queued or steered.
    pub state: SubmittedAs,
    /// The event that took it in.
    pub seq: Seq,
}

/// How a submit was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SubmittedAs {
    /// Its turn runs.
    Running,
    /// It waits.
    Queued,
    /// The running turn takes it in.
    Steered,
}

/// An answer to a permission request.
#[derive(Clone, Debug)]
pub struct PermissionAnswer {
    /// The request.
    pub request_id: PermissionId,
    /// Allow or deny.
    pub decision: Decision,
    /// For how long.
    pub scope: Scope,
    /// The grant to remember.
    pub grant: Option<String>,
    /// Words for the model.
    pub feedback: Option<String>,
    /// Whether the turn ends with this denial.
    pub stop: bool,
    /// Whether this denial says that there is nobody to ask.
    pub nobody: bool,
    /// Other arguments than the model's.
    pub updated_input: Option<serde_json::Value>,
    /// The digest of the request that was seen.
    pub digest: Option<String>,
    /// Idempotency.
    pub keyed: Option<IdempotencyKey>,
    /// Who.
    pub origin: Origin,
}

/// An answer that was taken.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AnswerOutcome {
    /// The event that says so.
    pub seq: Seq,
    /// The grant that was given.
    pub grant: Option<String>,
}

/// What of a session is to change. What is absent stays.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Short name.
    pub title: Option<String>,
    /// Approval mode.
    pub mode: Option<Mode>,
    /// Limits of turns to come.
    pub budgets: Option<Budgets>,
    /// Model of turns to come.
    pub model: Option<String>,
    /// Tools of turns to come.
    pub tools: Option<ToolChoice>,
    /// All further folders that count as workspace.
    pub additional_dirs: Option<Vec<String>>,
    /// How much models may think in turns to come.
    pub thinking: Option<Thinking>,
    /// How freely models choose their words in turns to come.
    pub sampling: Sampling,
    /// Idempotency.
    pub keyed: Option<IdempotencyKey>,
    /// Who.
    pub origin: Origin,
}

/// What a request would run, and where: for whoever wants to change its arguments.
pub(super) struct PendingCall {
    pub call: Arc<ToolCall>,
    pub session_context: Arc<SessionContext>,
}

/// An answer to a question.
#[derive(Clone, Debug)]
pub struct QuestionAnswer {
    /// The question.
    pub request_id: QuestionId,
    /// What is to be done.
    pub choice: Choice,
    /// Idempotency.
    pub keyed: Option<IdempotencyKey>,
    /// Who.
    pub origin: Origin,
}

/// What an abort stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AbortOutcome {
    /// The turn, if it was stopped.
    pub turn: Option<TurnId>,
    /// The calls that were stopped.
    pub calls: Vec<CallId>,
    /// Processes that could not be stopped.
    pub survivors: Vec<i32>,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, SessionError>>;

/// What a session is told. It is boxed on its way: a queue keeps room for 32 entries, however few there
/// are, and most sessions are told nothing most of the time.
pub(super) enum SessionCommand {
    Submit(Box<Submission>, Reply<SubmitOutcome>),
    /// With what the changed arguments would do, if they were changed.
    Answer(Box<PermissionAnswer>, Option<Box<EditedCall>>, Reply<AnswerOutcome>),
    /// The call behind a pending request.
    PendingCall(PermissionId, Reply<PendingCall>),
    Update(Box<Changes>, Reply<()>),
    /// Adds a rule of the session, or takes it back.
    Rule {
        add: bool,
        kind: RuleKind,
        rule: String,
        origin: Origin,
        reply: Reply<()>,
    },
    Rules(Reply<Arc<SessionRules>>),
    /// Replies with the event that says so.
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
    /// The configuration was read again.
    Reloaded {
        changed: Vec<String>,
        needs_restart: Vec<String>,
    },
    /// Stop working and leave; `patient` gives running tools a while to end by themselves.
    Park {
        patient: bool,
        reply: oneshot::Sender<()>,
    },
    /// Leave memory, if there is nothing to do and nobody is inside.
    Unload,
    /// Fail in an unforeseen way.
    #[cfg(test)]
    Panic,
}

/// A handle on a living session, which stays in memory as long as there is one. Cheap to clone.
#[derive(Clone)]
pub struct SessionHandle {
    at: LoadedSession,
    lease: Lease,
}

/// A session in memory, as the registry keeps it: it may leave.
#[derive(Clone)]
pub(super) struct LoadedSession {
    pub(super) id: SessionId,
    pub(super) key: SessionKey,
    pub(super) store: Store,
    pub(super) mailbox: mpsc::Sender<Box<SessionCommand>>,
    /// Detaches come from `Drop`, which cannot wait. There is at most one for each attach, so the
    /// number of open subscriptions bounds this queue.
    pub(super) leaving: mpsc::UnboundedSender<Box<Origin>>,
    pub(super) feed: Arc<Feed>,
    pub(super) clients: Arc<AtomicU32>,
    pub(super) leases: Arc<LeaseCount>,
    /// Commands that run in the background.
    pub(super) commands: Arc<RwLock<Vec<BackgroundCommand>>>,
    /// How loading it ended, once it has.
    pub(super) loaded: Arc<SetOnce<Result<(), SessionError>>>,
}

/// Being attached; dropping it detaches. The session stays in memory meanwhile.
pub struct AttachGuard {
    leaving: mpsc::UnboundedSender<Box<Origin>>,
    pub(super) origin: Origin,
    /// Whether the session has counted it: one that it never heard of leaves no trace.
    pub(super) is_counted: bool,
    _visit: Lease,
}

/// Being attached, now or as soon as the session is loaded; dropping it detaches.
#[expect(dead_code, reason = "kept for what dropping it does")]
pub struct AttachReply(Stay);

#[expect(dead_code, reason = "kept for what dropping it does")]
enum Stay {
    Counted(AttachGuard),
    /// The session has it and gives it back once it has counted it. If nobody is there to take it, it is
    /// dropped then.
    Coming(oneshot::Receiver<Result<AttachGuard, SessionError>>),
}

impl Drop for AttachGuard {
    fn drop(&mut self) {
        if self.is_counted {
            // Fails only when the session is gone, and then nobody counts.
            let _ = self.leaving.send(Box::new(self.origin.clone()));
        }
    }
}

impl LoadedSession {
    /// A handle on it; `None` once it leaves. `tick` rises from visit to visit.
    pub fn enter(&self, tick: u64) -> Option<SessionHandle> {
        let lease = self.leases.acquire(tick)?;
        Some(SessionHandle { at: self.clone(), lease })
    }

    /// Commands that run in the background now.
    pub fn commands(&self) -> Vec<BackgroundCommand> {
        self.commands.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The session's task panicked; it must be loaded again.
    pub fn has_crashed(&self) -> bool {
        self.feed.has_crashed()
    }

    /// Waits until its task has ended.
    pub async fn gone(&self) {
        self.mailbox.closed().await;
    }

    pub async fn reloaded(&self, changed: Vec<String>, needs_restart: Vec<String>) {
        // One that is gone reads the new configuration when it is loaded again.
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
    /// The session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.at.id
    }

    /// Its key in the store.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        self.at.key
    }

    /// Clients attached now.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.at.clients.load(Ordering::Relaxed)
    }

    /// The newest published event.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.at.feed.last_seq()
    }

    /// Takes an input in. When this returns, it is on disk. A dropped call may still be taken in.
    ///
    /// # Errors
    /// Refused, or the store failed: nothing was taken in.
    pub async fn submit(&self, submission: Submission) -> Result<SubmitOutcome, SessionError> {
        self.ask(|reply| SessionCommand::Submit(Box::new(submission), reply)).await
    }

    /// Answers a permission request. When this returns, the answer is on disk.
    ///
    /// # Errors
    /// Not pending, or the store failed.
    pub(super) async fn answer(
        &self,
        answer: PermissionAnswer,
        edited: Option<EditedCall>,
    ) -> Result<AnswerOutcome, SessionError> {
        self.ask(|reply| SessionCommand::Answer(Box::new(answer), edited.map(Box::new), reply)).await
    }

    /// The call behind a pending request.
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

    /// Rules and grants of this session alone.
    pub(super) async fn rules(&self) -> Result<Arc<SessionRules>, SessionError> {
        self.ask(SessionCommand::Rules).await
    }

    /// Answers a question. When this returns, the answer is on disk; the seq of its event.
    ///
    /// # Errors
    /// Not pending, or the store failed.
    pub async fn answer_question(&self, chosen: QuestionAnswer) -> Result<Seq, SessionError> {
        self.ask(|reply| SessionCommand::AnswerQuestion(Box::new(chosen), reply)).await
    }

    /// Stops the turn or one call; returns when the work has stopped.
    ///
    /// # Errors
    /// The turn that was named is not the current one.
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

    /// Attaches a client and follows the journal from `after_seq`. A long journal is read from the store
    /// while its session is still being loaded; the client counts as attached once that is done.
    ///
    /// # Errors
    /// The cursor is ahead of the journal, or the session could not be loaded.
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

    /// Waits until the session's task has ended, and takes it out of this map if it is still there.
    pub(super) async fn wait_unloaded(&self, live: &DashMap<SessionId, SessionSlot>) {
        self.at.gone().await;
        let is_it =
            |slot: &SessionSlot| slot.get().is_some_and(|it| Arc::ptr_eq(&it.leases, &self.at.leases));
        live.remove_if(&self.at.id, |_, slot| is_it(slot));
    }

    /// Waits until the session is loaded.
    ///
    /// # Errors
    /// It could not be.
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
