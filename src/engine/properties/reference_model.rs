//! A reference model of the events. It sees only the committed events in order and keeps its own state,
//! so that an error in the engine's state cannot hide itself.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use crate::property;
use crate::setup::Setup;
use crate::watches::{CallWatch, CommandWatch, TurnWatch};
use engine::{Input, PlannedEvent};
use types::compaction::{CompactStage, CompactTrigger};
use types::event::{Event, FeedbackBy, Origin, Phase, SettledBy, TitledBy, TombstoneReason};
use types::history::RewoundHistory;
use types::ids::{BlobId, CallId, ItemId, PermissionId, QuestionId, Seq, TurnId};
use types::message::ToolCall;
use types::model::ModelRequest;
use types::permission::{Mode, OnTimeout};
use types::session::{ItemKind, ItemStatus, Requires, SessionState};
use types::time::Timestamp;
use types::usage::{ModelSnapshot, Usage};

pub struct ReferenceModel {
    pub setup: Setup,
    pub last_seq: Seq,
    pub status: (SessionState, Option<Requires>),
    pub turn: Option<TurnWatch>,
    pub queue: VecDeque<TurnId>,
    /// The items that the messages of queued turns will have.
    pub promised_items: HashMap<TurnId, ItemId>,
    /// The items that the messages of steering inputs will have, in order. An input of a hook names none.
    pub steered_items: VecDeque<Option<ItemId>>,
    /// Number of the newest event of the session's job.
    pub job_seq: u64,
    pub archived: bool,
    pub turns: HashSet<TurnId>,
    pub calls: HashMap<CallId, CallWatch>,
    /// Calls of the newest message, while they have no result.
    pub message: Vec<ToolCall>,
    /// Whether an earlier plan raised permission requests for this message.
    pub asked_before: bool,
    pub asks_now: bool,
    /// Per request: its call, whether it offers a grant, and whether it is settled.
    pub requests: BTreeMap<PermissionId, (CallId, bool, bool)>,
    /// Requests to run a command again outside the sandbox.
    pub outside: BTreeSet<PermissionId>,
    /// Per question: its call, and whether it is settled.
    pub questions: BTreeMap<QuestionId, (Option<CallId>, bool)>,
    /// Questions about calls that the model repeats.
    pub repetitions: BTreeSet<QuestionId>,
    /// Questions that the model asked the user.
    pub user_questions: BTreeSet<QuestionId>,
    /// Requests to approve a plan.
    pub plans: BTreeSet<PermissionId>,
    /// Background commands, ordered by number.
    pub commands: Vec<CommandWatch>,
    /// The current helper call: its seq, the snapshot of its model, its maximum usage.
    pub helper: Option<(Seq, ModelSnapshot, Usage)>,
    /// Whether the usage of the helper call is booked.
    pub helper_booked: bool,
    /// Number of requests for a title.
    pub title_tries: u32,
    /// The source of the title, if no client set it.
    pub titled_by: Option<TitledBy>,
    /// Whether the newest turn ended with success and no event followed.
    pub ended_well: bool,
    pub items: BTreeMap<Seq, (ItemKind, ItemStatus)>,
    /// The running stage of compaction: its first seq, the stage, and its trigger.
    pub compacting: Option<(Seq, CompactStage, CompactTrigger)>,
    /// The message that is streaming.
    pub streaming: Option<(ItemId, Seq, String)>,
    /// Calls that this process runs.
    pub running: Vec<CallId>,
    /// Calls that are judged again before they start.
    pub rechecked: HashSet<CallId>,
    /// Calls with a new verdict in the input that is being decided.
    pub judged_again: HashSet<CallId>,
    pub sent: Option<ModelRequest>,
    /// Pictures that a provider refused, and the seq of the refusal.
    pub withheld: HashMap<BlobId, Seq>,
    /// Texts of messages that were interrupted.
    pub cut: Vec<String>,
    /// User texts that entered the transcript.
    pub user_texts: Vec<(Seq, String)>,
    /// Number of the oldest entries of `user_texts` that a compaction may have replaced.
    pub compacted: usize,
    /// Entries of `user_texts` from conversations that were cleared.
    pub forgotten: Vec<(Seq, String)>,
    pub has_context: bool,
    /// Whether the last turn was resumed too often.
    pub has_failed: bool,
    /// `Some` if the turn has its own system prompt; the value says whether the prompt was built.
    pub own_prompt: Option<bool>,
    /// Whether the settings of the session's system prompt have changed since it was built.
    pub is_prompt_stale: bool,
    /// Whether the next request may begin with another system prompt than the last one.
    pub prompt_may_differ: bool,
    /// Whether the tools of MCP servers have changed since the last request.
    pub tools_may_differ: bool,
    /// Rules of the session, each with its kind.
    pub rules: BTreeSet<(&'static str, String)>,
    /// Per request: its deadline, the action at the deadline, and whether the deadline has passed.
    pub deadlines: BTreeMap<PermissionId, (Timestamp, OnTimeout, bool)>,
    /// The client that aborted the turn.
    pub aborted_by: Option<Origin>,
    pub mode: Mode,
    pub turn_mode: Mode,
    /// The working folder of commands.
    pub folder: String,
    pub usage: Usage,
    /// Number of booked calls, and their known cost.
    pub calls_made: u64,
    pub at_least: u64,
    /// Kinds of events and results of turns that occurred.
    pub seen: BTreeSet<String>,
}

impl ReferenceModel {
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            last_seq: 0,
            status: (SessionState::Idle, None),
            turn: None,
            queue: VecDeque::new(),
            promised_items: HashMap::new(),
            steered_items: VecDeque::new(),
            job_seq: 0,
            archived: false,
            turns: HashSet::new(),
            calls: HashMap::new(),
            message: Vec::new(),
            asked_before: false,
            asks_now: false,
            requests: BTreeMap::new(),
            outside: BTreeSet::new(),
            questions: BTreeMap::new(),
            repetitions: BTreeSet::new(),
            user_questions: BTreeSet::new(),
            plans: BTreeSet::new(),
            commands: Vec::new(),
            helper: None,
            helper_booked: false,
            title_tries: 0,
            titled_by: None,
            ended_well: false,
            items: BTreeMap::new(),
            compacting: None,
            streaming: None,
            running: Vec::new(),
            rechecked: HashSet::new(),
            judged_again: HashSet::new(),
            sent: None,
            withheld: HashMap::new(),
            cut: Vec::new(),
            user_texts: Vec::new(),
            compacted: 0,
            forgotten: Vec::new(),
            has_context: false,
            has_failed: false,
            own_prompt: None,
            is_prompt_stale: false,
            prompt_may_differ: false,
            tools_may_differ: false,
            rules: BTreeSet::new(),
            deadlines: BTreeMap::new(),
            aborted_by: None,
            mode: Mode::Default,
            turn_mode: Mode::Default,
            folder: "/w".into(),
            usage: Usage::default(),
            calls_made: 0,
            at_least: 0,
            seen: BTreeSet::new(),
        }
    }

    /// Whether the system prompt for the next request was built.
    pub fn has_prompt(&self) -> bool {
        self.own_prompt.unwrap_or(self.has_context)
    }

    pub fn is_aborting(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.aborting)
    }

    /// Whether a question about the whole turn is open, and whether one about a call is open.
    pub fn open_questions(&self) -> (bool, bool) {
        let is_paused =
            |id: &QuestionId, about: Option<CallId>| about.is_none() || self.repetitions.contains(id);
        let of_daemon = || {
            let is_open = |(id, (_, settled)): &(&QuestionId, &(Option<CallId>, bool))| {
                !settled && !self.user_questions.contains(*id)
            };
            self.questions.iter().filter(is_open)
        };
        let paused = of_daemon().any(|(id, (about, _))| is_paused(id, *about));
        let has_unknown_outcome = of_daemon().any(|(id, (about, _))| !is_paused(id, *about));
        (paused, has_unknown_outcome)
    }

    /// Whether the user decides about a call that the model repeats.
    pub fn is_repetition_open(&self) -> bool {
        self.repetitions.iter().any(|id| !self.questions[id].1)
    }

    /// Whether a turn made the same call with the same result often enough to be stopped.
    pub fn repeats_call(&self, turn: &TurnWatch) -> bool {
        let limit = self.setup.settings.repeat_limit as usize;
        let count = |result| turn.results.iter().filter(|other| *other == result).count();
        limit > 0 && turn.results.iter().any(|result| count(result) >= limit)
    }

    /// Whether the model waits for the user's answer to a question.
    pub fn is_user_asked(&self) -> bool {
        self.user_questions.iter().any(|id| !self.questions[id].1)
    }

    /// Whether recovery holds the turn.
    pub fn is_held(&self) -> bool {
        self.open_questions().0 || self.turn.as_ref().is_some_and(|turn| turn.waits)
    }

    /// Adds one event; an error names the violated property.
    pub fn check_event(&mut self, entry: &PlannedEvent, input: &Input) -> Result<(), String> {
        let envelope = &entry.envelope;
        self.seen.insert(envelope.event.kind().into());
        property!(
            envelope.seq == self.last_seq + 1,
            "numbers rise by one: {} after {}",
            envelope.seq,
            self.last_seq
        );
        self.last_seq = envelope.seq;
        property!(
            entry.delta_of.is_some() == envelope.event.is_delta(),
            "exactly foldable rows name their opener"
        );
        let by_client = matches!(
            input,
            Input::Submit(_)
                | Input::Compact { .. }
                | Input::Command(_)
                | Input::Answer(_)
                | Input::Update(_)
                | Input::Rule { .. }
                | Input::AnswerQuestion { .. }
                | Input::AnswerUser { .. }
                | Input::ChooseAnswer { .. }
                | Input::EditQueue { .. }
                | Input::Archive { .. }
                | Input::Rewind(_)
                | Input::Abort { .. }
                | Input::Kill { .. }
                | Input::Attached { .. }
                | Input::Detached { .. }
        );
        // The events with which an abort ends a turn name the client that aborted.
        let by_abort = matches!(input, Input::Stopped { .. } | Input::Recovered(_));
        property!(
            by_client || envelope.origin.is_none() || by_abort && envelope.origin == self.aborted_by,
            "only what a client caused names one"
        );
        let withdrawn = matches!(envelope.event, Event::PermissionResolved { by: SettledBy::Abort, .. });
        property!(
            !withdrawn || !self.is_aborting() || envelope.origin == self.aborted_by,
            "who withdraws a request is named"
        );
        property!(
            self.status.0 != SessionState::Ended || is_of_session(&envelope.event),
            "an ended session does nothing"
        );
        let opens = matches!(
            envelope.event,
            Event::TurnQueued { .. }
                | Event::TurnStarted { .. }
                | Event::TurnDequeued { .. }
                | Event::TurnQueueUpdated { .. }
                | Event::TurnQueueMoved { .. }
        );
        let current = self.turn.as_ref().map(|turn| turn.id);
        property!(
            opens || envelope.turn_id.is_none() || envelope.turn_id == current,
            "only the current turn does something: {:?} is not {current:?}",
            envelope.turn_id
        );
        property!(
            !self.is_aborting() || may_follow_abort(&envelope.event),
            "nothing new begins during an abort"
        );
        match &envelope.event {
            Event::SessionStatus { state, requires } => {
                property!((*state, *requires) != self.status, "a status is told when it changes");
                self.status = (*state, *requires);
            }
            Event::SessionUpdated { title, titled_by, options } => {
                let mode = options.mode;
                if options.change_system_prompt() {
                    self.is_prompt_stale = true;
                }
                if let Some(title) = title {
                    self.check_title(title, *titled_by, input)?;
                }
                (self.mode, self.turn_mode) = (mode.unwrap_or(self.mode), mode.unwrap_or(self.turn_mode));
            }
            Event::SessionEnded { .. } => {
                property!(self.helper.is_none(), "a session ends after its helpers");
                property!(self.turn.is_none(), "a session ends after its turn");
                self.status = (SessionState::Ended, None);
                self.queue.clear();
            }
            Event::SessionRewound(RewoundHistory { last_item_seq, removed_items, cwd, .. }) => {
                self.folder.clone_from(cwd);
                property!(self.turn.is_none() && !self.archived, "only an idle session is rewound");
                let removed = self.items.split_off(&(last_item_seq + 1));
                property!(removed.len() == removed_items.len(), "a rewind names the removed items");
                let is_before_rewind = |(first, _): &&(Seq, String)| first <= last_item_seq;
                self.compacted = self.user_texts[..self.compacted].iter().filter(is_before_rewind).count();
                self.user_texts.retain(|(first, _)| first <= last_item_seq);
                // The rewound conversation does not contain this refusal, and the next model may accept
                // the media that this model refused.
                self.withheld.retain(|_, refused| *refused <= *last_item_seq);
                // The beginning of the next request differs, so do not compare it with the last request.
                self.sent = None;
            }
            Event::SessionArchived { archived } => {
                property!(*archived != self.archived, "an archived session is not archived again");
                property!(self.turn.is_none(), "no turn runs while a session is archived");
                self.archived = *archived;
            }
            Event::SessionCleared {} => {
                property!(
                    self.turn.as_ref().is_some_and(|turn| turn.step == 0),
                    "a turn clears and does nothing else"
                );
                self.forgotten.append(&mut self.user_texts);
                self.compacted = 0;
                (self.sent, self.has_context) = (None, false);
            }
            Event::ReminderAdded { text, .. } => {
                property!(
                    envelope.turn_id.is_some() && envelope.turn_id == current,
                    "a reminder is for a turn"
                );
                property!(text.starts_with("<reminder>"), "a reminder looks like one: {text}");
                // Reminders are sent like messages of users.
                self.user_texts.push((envelope.seq, text.clone()));
            }
            Event::McpTools(_) => {
                let has_begun = self.turn.as_ref().is_some_and(|turn| turn.step > 0);
                property!(!has_begun, "a turn keeps the tools that it began with");
                (self.tools_may_differ, self.prompt_may_differ) = (true, true);
            }
            Event::HistoryRepaired { .. } => return Err("a healthy history is never repaired".into()),
            Event::SessionPromptBuilt { .. } => {
                property!(!self.has_context, "the system prompt is put together once");
                property!(self.own_prompt.is_none(), "a turn with its own prompt leaves the session's alone");
                (self.has_context, self.prompt_may_differ) = (true, true);
            }
            Event::TurnPromptBuilt { .. } => {
                property!(self.own_prompt == Some(false), "a turn's own prompt is put together once");
                self.own_prompt = Some(true);
            }
            Event::TurnStarted { .. } if std::mem::take(&mut self.is_prompt_stale) => {
                self.has_context = false
            }
            _ => {}
        }
        self.check_helper_event(envelope, input)?;
        self.check_turn_event(envelope, input)?;
        self.check_message_event(envelope, entry.delta_of)?;
        self.check_compaction_event(envelope)?;
        self.check_tool_event(envelope, entry.delta_of)
    }

    /// Background commands that run.
    pub fn running_commands(&self) -> impl Iterator<Item = &CommandWatch> {
        self.commands.iter().filter(|it| !it.is_over)
    }

    /// Whether some calls are not prepared yet.
    pub fn is_unjudged(&self) -> bool {
        self.message.iter().filter_map(|call| self.calls.get(&call.call_id)).any(|call| {
            call.status.is_none() && !call.allowed && call.permission_id.is_none() && !call.asks_user
        })
    }

    /// Checks the reference model after all events of one plan.
    pub fn plan_ends(&mut self) {
        self.asked_before |= std::mem::take(&mut self.asks_now);
    }
}

fn is_of_session(event: &Event) -> bool {
    matches!(
        event,
        Event::SessionAttached { .. }
            | Event::SessionDetached { .. }
            | Event::ConfigReloaded { .. }
            | Event::ToolBackground { end: Some(_), .. }
    )
}

fn may_follow_abort(event: &Event) -> bool {
    match event {
        // If a limit ends the turn during the second answer, the first answer is copied.
        Event::MessageCompleted { usage: None, stop_reason: Some(_), candidate: false, .. } => true,
        Event::MessageTombstone { reason } => *reason == TombstoneReason::Chosen,
        Event::MessageCompleted { item, cut_short, .. } => {
            *cut_short || item.kind == ItemKind::UserMessage || item.status == ItemStatus::Interrupted
        }
        Event::PermissionResolved { by, .. } => *by == SettledBy::Abort,
        Event::TurnPhase { phase, .. } => *phase == Phase::Result,
        Event::ToolStarted { .. }
        | Event::ToolBlocked { .. }
        | Event::FileCheckpointed { .. }
        | Event::ToolRequested { .. }
        | Event::ToolStatus { .. }
        | Event::PermissionRequested { .. }
        | Event::QuestionRequested { .. }
        | Event::FeedbackRequested { .. }
        | Event::CompactStarted { .. }
        | Event::MessageStarted { .. }
        | Event::MessageTextDelta { .. }
        | Event::MessageThinkingDelta { .. }
        | Event::MessageToolInputDelta { .. }
        | Event::TurnSteered { .. }
        | Event::TurnOutputRejected { .. }
        | Event::TurnResumed { .. }
        | Event::Retry { .. }
        | Event::Heartbeat { .. }
        | Event::StreamIdle { .. }
        | Event::ModelSwitched { .. }
        | Event::MediaWithheld { .. } => false,
        Event::FeedbackCompleted { by, .. } => matches!(by, FeedbackBy::Abort | FeedbackBy::Single),
        // The error names the limit that ends the turn.
        Event::Error { kind, .. } => kind == "budget",
        _ => true,
    }
}
