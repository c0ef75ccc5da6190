//! One open session: the task that follows its events, submits prompts and passes requests on. All lines about a
//! session come from this task, so that they keep their order: the updates of a turn precede the reply to its prompt.
//!
//! - `command`: what the server passes on; `inputs`: prompts, steering and cancelling; `requests`: decisions of the
//!   user; `history`: what a load shows; `close`: the end of a conversation in version 2.

mod close;
mod command;
mod history;
mod inputs;
mod requests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::daemon::Daemon;
use super::mapper::{Features, InputOrigin, Mapper};
use super::options::{Choices, SettingChange, Settings};
use super::schema::{AvailableCommand, CommandInput, NewSessionReply, SessionUpdate, Version, Versioned, v2};
use super::trust;
use super::wire::{AcpError, Output, Responder};
use crate::connection::follow::{FollowStep, SessionFollower};
use crate::connection::session_calls::idempotency_key;
use crate::connection::wire::ReceivedEvent;
use crate::failure::{Failure, code};
use api::params::{CommandListParams, UpdateParams};
use api::{Code, methods};
use close::Closing;
pub(super) use command::{Command, Opening, ShowHistory};
use history::Replay;
use inputs::{OpenPrompt, PendingCancel, Submitted};
use requests::UserRequest;
use types::event::{Envelope, Event};
use types::ids::{ItemId, RequestId, Seq, SessionId, TurnId};
use types::session::SessionView;

/// Commands that wait for a conversation.
const COMMAND_CAPACITY: usize = 64;

/// Time between attempts to follow the session again while the daemon is absent.
const REATTACH_INTERVAL: Duration = Duration::from_secs(2);

/// What all conversations share.
pub(super) struct Shared {
    pub(super) daemon: Arc<Daemon>,
    pub(super) output: Output,
    pub(super) features: Features,
}

impl Shared {
    async fn send_update(&self, session_id: SessionId, update: &SessionUpdate) {
        let written = match self.features.version {
            Version::V1 => vec![Versioned::V1(update)],
            Version::V2 => v2::updates(update).into_iter().map(Versioned::V2).collect(),
        };
        for update in written {
            let params = UpdateNotification { session_id: session_id.to_string(), update };
            self.output.notify("session/update", &params).await;
        }
    }
}

type Work<T> = FuturesUnordered<Pin<Box<dyn Future<Output = T> + Send>>>;

/// The task of one session.
pub(super) struct Conversation {
    shared: Arc<Shared>,
    session_id: SessionId,
    commands: mpsc::Receiver<Command>,
    follower: Option<SessionFollower>,
    mapper: Mapper,
    /// Seq of the newest handled event.
    last_seq: Seq,
    replay: Option<Replay>,
    prompts: Vec<OpenPrompt>,
    cancel: Option<PendingCancel>,
    /// Submits without a reply.
    submits: Work<Submitted>,
    /// Other calls, and requests that wait for the user.
    work: Work<()>,
    /// An event that waits for the reply to a submit, which shows whose input it is.
    held: Option<Box<Envelope>>,
    /// Turns whose first input is from this client.
    own_turns: HashSet<TurnId>,
    /// Turns of others that have not ended.
    other_turns: HashSet<TurnId>,
    /// Seqs of commands and steering inputs of this client.
    own_seqs: HashSet<Seq>,
    /// Steering inputs of the running turn that the model has not received.
    steered: VecDeque<InputOrigin>,
    /// Whether the conversation shows the first input of the running turn already.
    has_first_input: bool,
    /// Messages of users in the conversation. Only in version 2, as the next one.
    inserted: HashSet<ItemId>,
    /// Turns that left the queue without a message.
    dropped_turns: HashSet<TurnId>,
    requests: HashMap<RequestId, UserRequest>,
    notes: Vec<String>,
    closing: Option<Closing>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateNotification<'a> {
    session_id: String,
    update: Versioned<&'a SessionUpdate>,
}

impl Conversation {
    /// A conversation and the sender of its commands.
    pub(super) fn new(
        shared: Arc<Shared>,
        view: &SessionView,
        choices: Choices,
    ) -> (Self, mpsc::Sender<Command>) {
        let (sender, commands) = mpsc::channel(COMMAND_CAPACITY);
        let mut mapper = Mapper::new(shared.features, choices, view.cwd.clone());
        mapper.settings = settings(view);
        let conversation = Self {
            shared,
            session_id: view.session_id,
            commands,
            follower: None,
            mapper,
            last_seq: 0,
            replay: None,
            prompts: Vec::new(),
            cancel: None,
            submits: FuturesUnordered::new(),
            work: FuturesUnordered::new(),
            held: None,
            own_turns: HashSet::new(),
            other_turns: HashSet::new(),
            own_seqs: HashSet::new(),
            steered: VecDeque::new(),
            has_first_input: false,
            inserted: HashSet::new(),
            dropped_turns: HashSet::new(),
            requests: HashMap::new(),
            notes: Vec::new(),
            closing: None,
        };
        (conversation, sender)
    }

    /// Runs until the editor is gone or the session is.
    pub(super) async fn run(mut self, opening: Opening) {
        match opening {
            Opening::New { responder, notes } => {
                self.notes = notes;
                self.begin(responder).await;
            }
            Opening::Existing { responder, show, notes } => {
                self.notes = notes;
                self.load(responder, show).await;
            }
        }
        // The opening was refused.
        if self.follower.is_none() {
            return;
        }
        let failure = loop {
            match self.step().await {
                Ok(true) => {}
                Ok(false) => break None,
                Err(failure) => break Some(failure),
            }
        };
        match failure {
            None => self.prompts.drain(..).for_each(|prompt| prompt.responder.abandon()),
            Some(failure) => self.fail_prompts(&failure.into()).await,
        }
    }

    /// Handles the next thing that happens. `false` once the editor is gone.
    async fn step(&mut self) -> Result<bool, Failure> {
        let can_follow = self.held.is_none();
        let is_following = self.follower.is_some();
        let cancel_at = self.cancel.as_ref().map(|cancel| cancel.until);
        let follow = async {
            match &mut self.follower {
                Some(follower) => Some(follower.next().await),
                None => {
                    sleep(REATTACH_INTERVAL).await;
                    None
                }
            }
        };
        tokio::select! {
            command = self.commands.recv() => match command {
                Some(command) => self.on_command(command).await,
                None => return Ok(false),
            },
            Some(submitted) = self.submits.next(), if !self.submits.is_empty() => {
                self.on_submitted(submitted).await;
                if let Some(held) = self.held.take() {
                    self.on_event(held).await;
                }
            }
            Some(()) = self.work.next(), if !self.work.is_empty() => {}
            () = async { sleep_until(cancel_at.unwrap_or_else(Instant::now)).await }, if cancel_at.is_some() => {
                self.cancel_now();
            }
            step = follow, if can_follow || !is_following => match step {
                Some(Ok(FollowStep::Event(event))) => self.on_received(*event).await,
                Some(Ok(FollowStep::Restarting(_) | FollowStep::Lost)) => {}
                Some(Ok(FollowStep::Back(client))) => self.shared.daemon.replace(client),
                Some(Err(failure)) if failure.code == code::UNREACHABLE => {
                    self.follower = None;
                    let error = failure.into();
                    self.fail_prompts(&error).await;
                    if let Some(closing) = self.closing.take() {
                        closing.responder.refuse(error).await;
                    }
                }
                Some(Err(failure)) => return Err(failure),
                None => self.reattach().await?,
            },
        }
        Ok(!self.finish_close().await)
    }

    async fn begin(&mut self, responder: Responder) {
        if let Err(error) = self.follow(0).await {
            return responder.refuse(error).await;
        }
        let session_id = self.session_id.to_string();
        let settings = self.mapper.choices().settings(&self.mapper.settings).written(self.version());
        responder.reply(Ok(NewSessionReply { session_id: &session_id, settings })).await;
        self.after_opening().await;
        let (shared, session_id) = (Arc::clone(&self.shared), self.session_id);
        let cwd = self.mapper.cwd().to_owned();
        self.work.push(Box::pin(async move {
            let version = shared.features.version;
            log(trust::ask_once(&shared.daemon, &shared.output, version, session_id, cwd).await.err());
        }));
    }

    /// What follows the reply to a method that opens a session. Some editors drop updates of a session that they do
    /// not know yet.
    async fn after_opening(&mut self) {
        self.send_commands();
        for note in std::mem::take(&mut self.notes) {
            let update = self.mapper.note(&note, self.last_seq);
            self.send(&update).await;
        }
    }

    /// Subscribes to the events after `after`.
    async fn follow(&mut self, after: Seq) -> Result<(), AcpError> {
        let daemon = &self.shared.daemon;
        let follower =
            SessionFollower::start(daemon.reach(), &daemon.client(), self.session_id, after).await?;
        self.follower = Some(follower);
        self.last_seq = after;
        Ok(())
    }

    async fn reattach(&mut self) -> Result<(), Failure> {
        match self.shared.daemon.reach().connect_again().await {
            Ok(client) => self.shared.daemon.replace(client),
            Err(failure) if failure.code == code::UNREACHABLE => return Ok(()),
            Err(failure) => return Err(failure),
        }
        let error = self.follow(self.last_seq).await.err();
        error.map_or(Ok(()), |error| Err(Failure::internal(error.message)))
    }

    async fn on_command(&mut self, command: Command) {
        if self.closing.is_some() {
            if let Some(responder) = command.into_responder() {
                responder.refuse(AcpError::new(Code::NotFound, "the session is being closed")).await;
            }
            return;
        }
        match command {
            Command::Prompt { responder, input, key } => self.submit_prompt(responder, input, key),
            Command::Steer { responder, input, needs_running_turn } => {
                self.steer(responder, input, needs_running_turn).await;
            }
            Command::Cancel => self.cancel(),
            Command::CancelPrompt(id) => self.cancel_prompt(&id),
            Command::CancelCall { responder, call } => self.cancel_call(responder, &call).await,
            Command::Close { responder } => self.close(responder),
            Command::Load { responder, show, notes } => {
                self.notes.extend(notes);
                self.load(responder, show).await;
            }
            Command::SetMode { responder, mode } => {
                match self.mapper.choices().mode(&self.mapper.settings, &mode) {
                    Ok(mode) => self.change_setting(responder, SettingChange::Mode(mode), ReplyForm::Empty),
                    Err(error) => responder.refuse(error).await,
                }
            }
            Command::SetOption { responder, id, value } => {
                match self.mapper.choices().change(&self.mapper.settings, &id, &value) {
                    Ok(change) => self.change_setting(responder, change, ReplyForm::AllOptions),
                    Err(error) => responder.refuse(error).await,
                }
            }
        }
    }

    fn change_setting(&mut self, responder: Responder, change: SettingChange, form: ReplyForm) {
        let mut params =
            UpdateParams { idempotency_key: Some(idempotency_key()), ..UpdateParams::new(self.session_id) };
        match change {
            SettingChange::Mode(mode) => params.mode = Some(mode),
            SettingChange::Model(model) => params.model = Some(model),
            SettingChange::Thinking(thinking) => params.thinking = Some(thinking),
            SettingChange::Unchanged => {}
        }
        let (shared, choices) = (Arc::clone(&self.shared), self.mapper.choices().clone());
        let version = self.version();
        self.work.push(Box::pin(async move {
            let updated = shared.daemon.call::<methods::session::Update>(&params).await;
            let reply = updated.map(|reply| match form {
                ReplyForm::Empty => serde_json::json!({}),
                ReplyForm::AllOptions => {
                    let options = choices.options(&settings(&reply.session));
                    match version {
                        Version::V1 => serde_json::json!({ "configOptions": options }),
                        Version::V2 => v2::settings(&options),
                    }
                }
            });
            responder.reply(reply).await;
        }));
    }

    async fn on_received(&mut self, received: ReceivedEvent) {
        match received.event {
            Some(event) => self.on_event(Box::new(event)).await,
            // An event of a newer daemon.
            None => self.finish_event(received.seq).await,
        }
    }

    async fn on_event(&mut self, envelope: Box<Envelope>) {
        if self.must_wait(&envelope) {
            self.held = Some(envelope);
            return;
        }
        let origin = self.origin_of(&envelope);
        let updates = self.mapper.map(&envelope, origin);
        match &mut self.replay {
            Some(replay) => {
                replay.add(&envelope, updates);
                self.relieve_replay().await;
            }
            None => {
                for update in &updates {
                    self.send(update).await;
                }
            }
        }
        self.end_inserted(&envelope).await;
        self.on_request_event(&envelope).await;
        match &envelope.event {
            Event::TurnCompleted { result } => {
                if let Some(turn_id) = envelope.turn_id {
                    self.end_prompts(turn_id, result).await;
                }
            }
            Event::TurnDequeued { .. } => {
                if let Some(turn_id) = envelope.turn_id {
                    self.drop_prompts(turn_id).await;
                }
            }
            Event::CommandCompleted { .. } => self.end_answered_commands(&envelope).await,
            Event::SessionEnded { .. } => self.cancel_all_prompts().await,
            Event::ConfigReloaded { .. } if self.replay.is_none() => self.send_commands(),
            _ => {}
        }
        self.finish_event(envelope.seq).await;
    }

    async fn finish_event(&mut self, seq: Seq) {
        self.last_seq = self.last_seq.max(seq);
        if self.replay.as_ref().is_some_and(|replay| self.last_seq >= replay.until) {
            self.finish_load().await;
        }
    }

    async fn send(&mut self, update: &SessionUpdate) {
        self.shared.send_update(self.session_id, update).await;
    }

    fn send_commands(&mut self) {
        let (shared, session_id) = (Arc::clone(&self.shared), self.session_id);
        self.work.push(Box::pin(async move {
            let params = CommandListParams { session_id: Some(session_id), cwd: None };
            let commands = match shared.daemon.call::<methods::command::List>(&params).await {
                Ok(reply) => reply.commands,
                Err(error) => return log(Some(error)),
            };
            let command = |command: types::slash_command::CommandView| AvailableCommand {
                name: command.name,
                description: command.description,
                input: command.argument_hint.map(|hint| CommandInput { hint }),
            };
            let available_commands = commands.into_iter().map(command).collect();
            let update = SessionUpdate::AvailableCommandsUpdate { available_commands };
            shared.send_update(session_id, &update).await;
        }));
    }
}

/// The form of the reply to a changed setting.
#[derive(Clone, Copy)]
enum ReplyForm {
    Empty,
    AllOptions,
}

pub(super) fn settings(view: &SessionView) -> Settings {
    let summary = &view.summary;
    Settings { mode: summary.mode, model: summary.model.clone(), thinking: summary.thinking }
}

/// Reports an error that belongs to no request.
fn log(error: Option<AcpError>) {
    if let Some(error) = error {
        super::wire::log(&error.message);
    }
}
