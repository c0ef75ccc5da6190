//! The handle on a session; its methods send messages to the session's task.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::{SetOnce, mpsc, oneshot};
use tokio::time::timeout;

use super::error::SessionError;
use crate::actor::command::{ReplyTo, SessionCommand};
use crate::actor::effects::prompt::UnsentRequest;
use crate::attach::{AttachGuard, AttachReply, AttachState, AttachedClients};
use crate::idempotency::IdempotencyKey;
use crate::lease::{Lease, LeaseCount};
use crate::requests::{
    AbortOutcome, AnswerRequest, CommandSubmission, ParkPatience, QuestionAnswer, QueueChange, Reloaded,
    RewindOutcome, RewindRequest, SessionFacts, SettingsUpdate, Submission, SubmittedInput,
};
use crate::stream::feed::Feed;
use crate::stream::follow::Follower;
use base::sync::read;
use engine::{OutsideUsage, Refusal, SessionRules};
use store::{SessionKey, StoreReader};
use types::background::BackgroundCommand;
use types::compaction::CompactRequest;
use types::context_view::ContextView;
use types::event::Origin;
use types::hook::HookRun;
use types::ids::{CallId, Seq, SessionId, TurnId};
use types::job::JobEvent;
use types::outcome::{AnswerOutcome, SubmitOutcome};
use types::permission::RuleKind;
use types::queue::QueuedTurn;

/// How long an attach waits for a session that is loading before it reads from the store. A short journal is
/// loaded within this time.
const LOAD_TIMEOUT: Duration = Duration::from_millis(10);

/// A handle on a loaded session. The handle holds a lease, so the session stays loaded while a handle
/// exists. Cloning is cheap.
#[derive(Clone)]
pub struct SessionHandle {
    at: LoadedSession,
    lease: Lease,
}

/// A loaded session in the registry. This value holds no lease, so the session may be unloaded.
#[derive(Clone)]
pub(super) struct LoadedSession {
    pub(super) id: SessionId,
    pub(super) key: SessionKey,
    pub(super) store: StoreReader,
    pub(super) mailbox: mpsc::Sender<Box<SessionCommand>>,
    /// Detach messages. `Drop` sends them and cannot wait, so the queue is unbounded. Each attach adds
    /// at most one message.
    pub(super) leaving: mpsc::UnboundedSender<Box<Origin>>,
    pub(super) feed: Arc<Feed>,
    pub(super) clients: Arc<AttachedClients>,
    pub(super) leases: Arc<LeaseCount>,
    /// Background tasks of the session.
    pub(super) commands: Arc<RwLock<Vec<BackgroundCommand>>>,
    /// The session's working directory, set when loading has ended, or the error of loading.
    pub(super) loaded: Arc<SetOnce<Result<Arc<str>, SessionError>>>,
}

impl LoadedSession {
    /// Acquires a handle; `None` if the session is being unloaded. `tick` rises with each lease.
    pub fn acquire(&self, tick: u64) -> Option<SessionHandle> {
        let lease = self.leases.acquire(tick)?;
        Some(SessionHandle { at: self.clone(), lease })
    }

    /// The current background tasks.
    pub fn commands(&self) -> Vec<BackgroundCommand> {
        read(&self.commands).clone()
    }

    /// Whether the session's task panicked, so that the session must be loaded again.
    pub fn has_crashed(&self) -> bool {
        self.feed.has_crashed()
    }

    /// Waits until the session's task has ended.
    pub async fn wait_for_end(&self) {
        self.mailbox.closed().await;
    }

    /// Notifies the session of a new configuration.
    pub async fn reloaded(&self, reloaded: Reloaded) {
        // An unloaded session reads the new configuration when it is loaded again.
        let _ = self.mailbox.send(Box::new(SessionCommand::Reloaded(reloaded))).await;
    }

    /// Parks the turn and waits until the session's task has ended.
    pub async fn park(&self, patience: ParkPatience) {
        let (reply, parked) = oneshot::channel();
        if self.mailbox.send(Box::new(SessionCommand::Park { patience, reply })).await.is_ok() {
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
        self.at.clients.count()
    }

    /// Seq of the newest published event.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.at.feed.last_seq()
    }

    /// Submits an input. The input is on disk when this returns. If the call is dropped, the input may
    /// still be accepted.
    ///
    /// # Errors
    /// The input was refused or the store failed. Nothing was recorded.
    pub(super) async fn submit(
        &self,
        submission: Submission,
        input: SubmittedInput,
    ) -> Result<SubmitOutcome, SessionError> {
        self.send_command(|reply| SessionCommand::Submit(Box::new(submission), input, reply)).await
    }

    /// Adds a turn that compacts the conversation. The turn is on disk when this returns.
    ///
    /// # Errors
    /// The session was killed, or the store failed. Nothing was recorded.
    pub async fn compact(
        &self,
        request: CompactRequest,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<SubmitOutcome, SessionError> {
        self.send_command(|reply| SessionCommand::Compact(Box::new(request), keyed, origin, reply)).await
    }

    /// The parts of the context window.
    ///
    /// # Errors
    /// The session could not be loaded.
    pub async fn context(&self) -> Result<ContextView, SessionError> {
        self.send_command(SessionCommand::Context).await
    }

    /// The next model request as it would be sent now.
    pub(super) async fn next_request(&self) -> Result<UnsentRequest, SessionError> {
        self.send_command(SessionCommand::NextRequest).await
    }

    /// Records a command whose answer is known, with the changes that it requests.
    pub(super) async fn answer_command(
        &self,
        command: CommandSubmission,
    ) -> Result<SubmitOutcome, SessionError> {
        self.send_command(|reply| SessionCommand::Command(Box::new(command), reply)).await
    }

    /// Records the usage of a model call about the index of the workspace.
    pub(super) async fn book_usage(&self, usage: OutsideUsage) -> Result<(), SessionError> {
        self.send_command(|reply| SessionCommand::BookUsage(Box::new(usage), reply)).await
    }

    /// Records events of the job that the session works on, so that attached clients see them. Events that the session
    /// has are ignored, so a call may be repeated.
    ///
    /// # Errors
    /// The session was ended, or the store failed.
    pub async fn record_job_events(&self, events: Vec<JobEvent>) -> Result<(), SessionError> {
        self.send_command(|reply| SessionCommand::JobEvents(events, reply)).await
    }

    /// Records runs of hooks that belong to no call, and the problems of all hooks.
    pub(super) async fn record_hooks(
        &self,
        runs: Vec<HookRun>,
        problems: Option<Vec<String>>,
    ) -> Result<(), SessionError> {
        self.send_command(|reply| SessionCommand::HooksRan(runs, problems, reply)).await
    }

    /// Data of the session's task that the summary does not contain.
    pub(super) async fn facts(&self) -> Result<SessionFacts, SessionError> {
        self.send_command(SessionCommand::Facts).await
    }

    /// Answers a permission request. The answer is on disk when this returns.
    ///
    /// # Errors
    /// The request is not pending, or the store failed.
    pub(super) async fn answer_permission(
        &self,
        mut request: AnswerRequest,
    ) -> Result<AnswerOutcome, SessionError> {
        if let Some(input) = request.updated_input.clone() {
            match self
                .send_command(|reply| SessionCommand::EditContext(request.answer.request_id, reply))
                .await
            {
                Ok(context) => request.edited = Some(context.prepare(input).await?),
                // An earlier call with this idempotency key may have answered the request.
                Err(SessionError::Refused(Refusal::NotPending)) => {}
                Err(error) => return Err(error),
            }
        }
        self.send_command(|reply| SessionCommand::Answer(Box::new(request), reply)).await
    }

    pub(super) async fn update(&self, changes: SettingsUpdate) -> Result<(), SessionError> {
        self.send_command(|reply| SessionCommand::Update(Box::new(changes), reply)).await
    }

    pub(super) async fn change_rule(
        &self,
        add: bool,
        kind: RuleKind,
        rule: String,
        origin: Origin,
    ) -> Result<(), SessionError> {
        self.send_command(|reply| SessionCommand::Rule { add, kind, rule, origin, reply }).await
    }

    /// The rules and grants of this session only.
    pub(super) async fn rules(&self) -> Result<Arc<SessionRules>, SessionError> {
        self.send_command(SessionCommand::Rules).await
    }

    /// The queued turns in the order of their start.
    ///
    /// # Errors
    /// The session's task has ended.
    pub async fn queue(&self) -> Result<Vec<QueuedTurn>, SessionError> {
        self.send_command(SessionCommand::Queue).await
    }

    /// Changes the queue. The change is on disk when this returns. Returns the queued turns.
    ///
    /// # Errors
    /// The turn is not queued, or the store failed. Nothing was changed.
    pub async fn edit_queue(&self, change: QueueChange) -> Result<Vec<QueuedTurn>, SessionError> {
        self.send_command(|reply| SessionCommand::EditQueue(Box::new(change), reply)).await
    }

    /// Rewinds the conversation, and the files if requested.
    ///
    /// # Errors
    /// The item does not exist, a turn runs, or the store failed.
    pub async fn rewind(&self, request: RewindRequest) -> Result<RewindOutcome, SessionError> {
        self.send_command(|reply| SessionCommand::Rewind(Box::new(request), reply)).await
    }

    /// Archives the session or restores it.
    ///
    /// # Errors
    /// A turn or a background command runs, the session has ended, or the store failed.
    pub async fn archive(
        &self,
        archived: bool,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<(), SessionError> {
        self.send_command(|reply| SessionCommand::Archive { archived, keyed, origin, reply }).await
    }

    /// Answers a question. The answer is on disk when this returns. Returns the seq of its event.
    ///
    /// # Errors
    /// The question is not pending, or the store failed.
    pub async fn answer_question(&self, chosen: QuestionAnswer) -> Result<Seq, SessionError> {
        self.send_command(|reply| SessionCommand::AnswerQuestion(Box::new(chosen), reply)).await
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
        self.send_command(|reply| SessionCommand::Abort { turn_id, call_id, keyed, origin, reply }).await
    }

    /// Stops the turn and ends the session.
    pub async fn kill(
        &self,
        keyed: Option<IdempotencyKey>,
        origin: Origin,
    ) -> Result<AbortOutcome, SessionError> {
        self.send_command(|reply| SessionCommand::Kill { keyed, origin, reply }).await
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
        role: &'static str,
    ) -> Result<(Follower, AttachReply), SessionError> {
        let LoadedSession { store, key, feed, leaving, .. } = &self.at;
        let follower = Follower::start(store.clone(), *key, Arc::clone(feed), after_seq).await?;
        let attachment = AttachGuard::new(leaving.clone(), origin, role, self.lease.clone());
        let (reply, mut answer) = oneshot::channel();
        let command = Box::new(SessionCommand::Attach(attachment, reply));
        self.at.mailbox.send(command).await.map_err(|_| self.end_error())?;
        if timeout(LOAD_TIMEOUT, self.at.loaded.wait()).await.is_err() {
            return Ok((follower, AttachReply(AttachState::Coming(answer))));
        }
        let attachment = (&mut answer).await.map_err(|_| self.end_error())??;
        Ok((follower, AttachReply(AttachState::Counted(attachment))))
    }

    /// Follows the journal from `after_seq` for the daemon itself, which does not count as a client.
    ///
    /// # Errors
    /// The cursor is beyond the end of the journal, or the journal could not be read.
    pub(super) async fn follow(&self, after_seq: Seq) -> Result<Follower, SessionError> {
        let LoadedSession { store, key, feed, .. } = &self.at;
        Follower::start(store.clone(), *key, Arc::clone(feed), after_seq).await
    }

    /// Whether this is a handle on `loaded`, and not on a later load of the same session.
    pub(super) fn is_handle_on(&self, loaded: &LoadedSession) -> bool {
        Arc::ptr_eq(&loaded.leases, &self.at.leases)
    }

    /// Waits until the session's task has ended.
    pub(super) async fn ended(&self) {
        self.at.wait_for_end().await;
    }

    /// Waits until the session is loaded. Returns its working directory, which never changes.
    ///
    /// # Errors
    /// Loading failed.
    pub(super) async fn loaded(&self) -> Result<Arc<str>, SessionError> {
        self.at.loaded.wait().await.clone()
    }

    /// Parks the turn and waits until the session's task has ended.
    pub(super) async fn park(&self, patience: ParkPatience) {
        self.at.park(patience).await;
    }

    fn end_error(&self) -> SessionError {
        match self.at.loaded.get() {
            Some(Err(error)) => error.clone(),
            _ if self.at.has_crashed() => SessionError::Crashed,
            _ => SessionError::ShuttingDown,
        }
    }

    async fn send_command<T>(
        &self,
        make: impl FnOnce(ReplyTo<T>) -> SessionCommand,
    ) -> Result<T, SessionError> {
        let (reply, answer) = oneshot::channel();
        self.at.mailbox.send(Box::new(make(reply))).await.map_err(|_| self.end_error())?;
        answer.await.map_err(|_| self.end_error())?
    }
}
