//! A reference model of the events. It sees only the committed events in order and keeps its own state, so that
//! an error in the engine's state cannot hide itself.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use crate::engine::properties::law;
use crate::engine::properties::script;
use crate::engine::properties::script::Setup;
use crate::engine::{Entry, Input};
use crate::types::event::{Envelope, Event, Origin, Phase, SettledBy, TitledBy};
use crate::types::ids::{BlobId, CallId, ItemId, PermissionId, QuestionId, Seq, TurnId};
use crate::types::ledger::ModelUsage;
use crate::types::message::{Block, ToolCall};
use crate::types::model::{ModelRequest, StopReason};
use crate::types::permission::{Mode, OnTimeout};
use crate::types::sampling::Sampling;
use crate::types::session::{ItemKind, ItemStatus, Requires, SessionState, Subtype, TurnError, TurnResult};
use crate::types::thinking::Thinking;
use crate::types::time::Timestamp;
use crate::types::tool::ToolStatus;
use crate::types::usage::{Budgets, ModelSnapshot, Usage};

/// State of one call.
#[derive(Clone, Debug, Default)]
pub struct CallWatch {
    pub read_only: Option<bool>,
    /// Whether the call runs without a request where read-only calls are allowed.
    pub passes_as_reading: bool,
    pub allowed: bool,
    pub asked: Option<PermissionId>,
    pub denied: bool,
    pub started: Option<Seq>,
    pub status: Option<ToolStatus>,
    pub is_edit: bool,
    pub is_background: bool,
    /// The folder that the permission request showed.
    pub folder: Option<String>,
    /// Arguments of a user that replace the model's arguments.
    pub edited: Option<serde_json::Value>,
    /// Output of the call while it runs.
    pub said: String,
    /// How often this attempt of the call was handed to the tools.
    pub runs: u32,
    /// The result of its first run, if the sandbox blocked it.
    pub blocked: Option<(ToolStatus, String)>,
}

/// State of the running turn.
#[derive(Clone, Debug)]
pub struct TurnWatch {
    pub id: TurnId,
    pub started_at: Timestamp,
    pub budgets: Budgets,
    pub thinking: Option<Thinking>,
    pub sampling: Sampling,
    pub aborting: bool,
    pub ending: bool,
    pub ends_as: Subtype,
    pub step: u64,
    /// Whether this step may be requested again, because a retry or a restart came before.
    pub may_repeat: bool,
    pub retries: u32,
    /// The remaining wait in milliseconds, as last reported.
    pub waits_ms: u64,
    pub model: String,
    /// Models that the turn switched away from.
    pub tried: BTreeSet<String>,
    /// Superseded answers of this model call.
    pub orphans: BTreeSet<ItemId>,
    /// The last answer paused: the turn continues it with another call.
    pub paused: bool,
    /// Whether the last answer was cut at the output limit, and how many continuations came in a row.
    pub cut: bool,
    pub go_ons: u32,
    pub raised: bool,
    /// The next answer continues the last one.
    pub joins: bool,
    pub resumes: u32,
    pub parked: bool,
    /// Time of the first event after the turn was parked or started.
    pub woken: Option<Timestamp>,
    /// Number of attempts that were booked without an answer.
    pub lost: u64,
    pub model_calls: u64,
    /// The turn waits before it continues.
    pub waits: bool,
    pub usage: Usage,
    pub cost: Option<u64>,
    pub at_least: u64,
    pub text: String,
    pub stop: Option<StopReason>,
    pub errors: Vec<TurnError>,
    pub denied: Vec<CallId>,
    pub calls: Vec<CallId>,
}

/// State of one background command.
#[derive(Clone, Debug)]
pub struct CommandWatch {
    pub call_id: CallId,
    pub turn_id: Option<TurnId>,
    pub opened: Seq,
    pub is_over: bool,
}

pub struct ReferenceModel {
    pub setup: Setup,
    pub last_seq: Seq,
    pub status: (SessionState, Option<Requires>),
    pub turn: Option<TurnWatch>,
    pub queue: VecDeque<TurnId>,
    turns: HashSet<TurnId>,
    pub calls: HashMap<CallId, CallWatch>,
    /// Calls of the newest message, while they are open.
    pub message: Vec<ToolCall>,
    /// Whether an earlier plan raised permission requests for this message.
    pub asked_before: bool,
    pub asks_now: bool,
    /// Request → its call, whether it offers a grant, and whether it is settled.
    pub requests: BTreeMap<PermissionId, (CallId, bool, bool)>,
    /// Requests to run a command again outside the sandbox.
    pub outside: BTreeSet<PermissionId>,
    /// Question → its call, and whether it is settled.
    pub questions: BTreeMap<QuestionId, (Option<CallId>, bool)>,
    /// Background commands, ordered by number.
    pub commands: Vec<CommandWatch>,
    /// The current helper call: its seq, the snapshot of its model, its maximum usage.
    pub helper: Option<(Seq, ModelSnapshot, Usage)>,
    /// The usage of the helper call is booked.
    pub helper_booked: bool,
    /// Number of requests for a title.
    pub title_tries: u32,
    /// The source of the title, if no client set it.
    pub titled_by: Option<TitledBy>,
    /// How the newest turn ended, if no event followed.
    pub ended_well: bool,
    pub items: BTreeMap<Seq, (ItemKind, ItemStatus)>,
    /// The message that is streaming.
    pub streaming: Option<(ItemId, Seq, String)>,
    /// Calls that this process runs.
    pub running: Vec<CallId>,
    pub sent: Option<ModelRequest>,
    /// Pictures that a provider refused.
    pub withheld: HashSet<BlobId>,
    /// Texts of messages that were interrupted.
    pub cut: Vec<String>,
    /// User texts that entered the transcript.
    pub heard: Vec<String>,
    pub has_context: bool,
    /// Rules of the session.
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
            turns: HashSet::new(),
            calls: HashMap::new(),
            message: Vec::new(),
            asked_before: false,
            asks_now: false,
            requests: BTreeMap::new(),
            outside: BTreeSet::new(),
            questions: BTreeMap::new(),
            commands: Vec::new(),
            helper: None,
            helper_booked: false,
            title_tries: 0,
            titled_by: None,
            ended_well: false,
            items: BTreeMap::new(),
            streaming: None,
            running: Vec::new(),
            sent: None,
            withheld: HashSet::new(),
            cut: Vec::new(),
            heard: Vec::new(),
            has_context: false,
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

    pub fn is_aborting(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.aborting)
    }

    /// Whether a question about the whole turn is open, and whether one about a call is open.
    pub fn open_questions(&self) -> (bool, bool) {
        let open = |about: fn(&Option<CallId>) -> bool| {
            self.questions.values().any(|(call, settled)| !settled && about(call))
        };
        (open(Option::is_none), open(Option::is_some))
    }

    /// Whether recovery holds the turn.
    pub fn is_held(&self) -> bool {
        self.open_questions().0 || self.turn.as_ref().is_some_and(|turn| turn.waits)
    }

    /// Adds one event; an error names the violated property.
    pub fn event(&mut self, entry: &Entry, input: &Input) -> Result<(), String> {
        let envelope = &entry.envelope;
        self.seen.insert(envelope.event.kind().into());
        law!(
            envelope.seq == self.last_seq + 1,
            "numbers rise by one: {} after {}",
            envelope.seq,
            self.last_seq
        );
        self.last_seq = envelope.seq;
        law!(entry.delta_of.is_some() == envelope.event.is_delta(), "exactly deltas name their opener");
        let by_client = matches!(
            input,
            Input::Submit(_)
                | Input::Answer(_)
                | Input::Update(_)
                | Input::Rule { .. }
                | Input::AnswerQuestion { .. }
                | Input::Abort { .. }
                | Input::Kill { .. }
                | Input::Attached { .. }
                | Input::Detached { .. }
        );
        // An event that ends because of an abort names the client that aborted.
        let by_abort = matches!(input, Input::Stopped { .. } | Input::Recovered(_));
        law!(
            by_client || envelope.origin.is_none() || by_abort && envelope.origin == self.aborted_by,
            "only what a client caused names one"
        );
        let withdrawn = matches!(envelope.event, Event::PermissionResolved { by: SettledBy::Abort, .. });
        law!(
            !withdrawn || !self.is_aborting() || envelope.origin == self.aborted_by,
            "who withdraws a request is named"
        );
        law!(
            self.status.0 != SessionState::Ended || is_of_session(&envelope.event),
            "an ended session does nothing"
        );
        let opens = matches!(envelope.event, Event::TurnQueued { .. } | Event::TurnStarted { .. });
        let current = self.turn.as_ref().map(|turn| turn.id);
        law!(
            opens || envelope.turn_id.is_none() || envelope.turn_id == current,
            "only the current turn does something: {:?} is not {current:?}",
            envelope.turn_id
        );
        law!(!self.is_aborting() || may_follow_abort(&envelope.event), "nothing new begins during an abort");
        match &envelope.event {
            Event::SessionStatus { state, requires } => {
                law!((*state, *requires) != self.status, "a status is told when it changes");
                self.status = (*state, *requires);
            }
            Event::SessionUpdated { mode, title, titled_by, .. } => {
                if let Some(title) = title {
                    self.titled(title, *titled_by, input)?;
                }
                (self.mode, self.turn_mode) = (mode.unwrap_or(self.mode), mode.unwrap_or(self.turn_mode));
            }
            Event::SessionEnded { .. } => {
                law!(self.helper.is_none(), "a session ends after its helpers");
                law!(self.turn.is_none(), "a session ends after its turn");
                self.status = (SessionState::Ended, None);
                self.queue.clear();
            }
            Event::HistoryRepaired { .. } => return Err("a healthy history is never repaired".into()),
            Event::SessionPromptBuilt { .. } => {
                law!(!self.has_context, "the system prompt is put together once");
                self.has_context = true;
            }
            _ => {}
        }
        self.helper_fact(envelope, input)?;
        self.turn_fact(envelope, input)?;
        self.message_fact(envelope, entry.delta_of)?;
        self.tool_fact(envelope, entry.delta_of)
    }

    fn turn_fact(&mut self, envelope: &Envelope, input: &Input) -> Result<(), String> {
        match &envelope.event {
            Event::TurnQueued { front, .. } => {
                law!(self.turn.is_some(), "only behind a running turn is there a queue");
                let id = envelope.turn_id.ok_or("a queued turn has an id")?;
                law!(self.turns.insert(id), "turn ids are new");
                if *front { self.queue.push_front(id) } else { self.queue.push_back(id) }
            }
            Event::TurnStarted { budgets, mode, model, thinking, sampling, .. } => {
                (self.turn_mode, self.aborted_by) = (*mode, None);
                law!(self.turn.is_none(), "turns never overlap");
                let id = envelope.turn_id.ok_or("a turn has an id")?;
                match self.queue.pop_front() {
                    Some(next) => law!(next == id, "turns start in the order of the queue"),
                    None => law!(self.turns.insert(id), "turn ids are new"),
                }
                self.turn = Some(TurnWatch {
                    id,
                    started_at: envelope.at_ms,
                    budgets: *budgets,
                    thinking: *thinking,
                    sampling: *sampling,
                    aborting: false,
                    ending: false,
                    ends_as: Subtype::Aborted,
                    step: 0,
                    may_repeat: false,
                    retries: 0,
                    waits_ms: 0,
                    model: model.clone(),
                    tried: BTreeSet::new(),
                    orphans: BTreeSet::new(),
                    paused: false,
                    cut: false,
                    go_ons: 0,
                    raised: false,
                    joins: false,
                    resumes: 0,
                    parked: false,
                    woken: None,
                    lost: 0,
                    model_calls: 0,
                    waits: false,
                    usage: Usage::default(),
                    cost: Some(0),
                    at_least: 0,
                    text: String::new(),
                    stop: None,
                    errors: Vec::new(),
                    denied: Vec::new(),
                    calls: Vec::new(),
                });
            }
            Event::TurnCompleted { result } => {
                let turn = self.turn.take().ok_or("only a running turn ends")?;
                let is_left = |it: &&CommandWatch| turn.ending || it.turn_id == Some(turn.id);
                law!(
                    !turn.aborting || !self.running_commands().any(|it| is_left(&it)),
                    "what an aborted turn started is gone before it ends"
                );
                self.completed(&turn, result, envelope.at_ms)?;
            }
            _ => {}
        }
        let resumable = matches!(input, Input::Recovered(_));
        if let Event::UsageBooked { purpose: Some(_), .. } = &envelope.event {
            law!(envelope.turn_id.is_none(), "what a helper took is the session's and no turn's");
            return Ok(());
        }
        if let (Event::UsageBooked { usage, .. }, Some(_)) = (&envelope.event, &self.turn) {
            self.usage.add(usage);
        }
        let retry = self.setup.settings.retry.clone();
        let stand_ins = self.setup.settings.stand_ins.clone();
        let limits_money = self.setup.budgets.limits_money();
        let max_resumes = self.setup.settings.max_resumes;
        let Some(turn) = &mut self.turn else { return Ok(()) };
        // All events of one decision have the same time. A clean shutdown counts only for the first event after
        // it.
        let was_parked = turn.parked && turn.woken.is_none_or(|at| at == envelope.at_ms);
        match &envelope.event {
            Event::TurnParked {} => (turn.parked, turn.woken) = (true, None),
            _ if envelope.turn_id == Some(turn.id) => _ = turn.woken.get_or_insert(envelope.at_ms),
            _ => {}
        }
        match &envelope.event {
            Event::TurnPhase { phase: Phase::ModelCall, step } => {
                turn.waits = false;
                let (spent, elapsed) = (turn.at_least, envelope.at_ms.since(turn.started_at));
                let within = |limit: Option<u64>, used: u64| limit.is_none_or(|limit| used < limit);
                let made = *step - 1 + turn.lost;
                law!(within(turn.budgets.model_calls, made), "no more model calls than the budget");
                law!(within(turn.budgets.usd_micros, spent), "no model call without money");
                law!(within(turn.budgets.output_tokens, turn.usage.output_tokens), "no call without tokens");
                law!(within(turn.budgets.wall_time_ms, elapsed), "no model call without time");
                turn.model_calls = step + turn.lost;
                if *step == turn.step + 1 {
                    turn.retries = 0;
                    turn.orphans.clear();
                } else {
                    let again = turn.may_repeat || resumable;
                    law!(*step == turn.step && *step > 0 && again, "a step is repeated after a failure only");
                }
                (turn.step, turn.may_repeat) = (*step, false);
                (self.message, self.asked_before) = (Vec::new(), false);
            }
            Event::TurnPhase { .. } => turn.waits = false,
            Event::UsageBooked { usage, cost_usd_micros, estimated, .. } => {
                law!(*estimated && usage.input_tokens > 0, "what was sent was not free");
                turn.usage.add(usage);
                turn.cost = turn.cost.zip(*cost_usd_micros).map(|(sum, more)| sum + more);
                turn.at_least += cost_usd_micros.unwrap_or(0);
                self.calls_made += 1;
                self.at_least += cost_usd_micros.unwrap_or(0);
                turn.lost += 1;
                law!(self.streaming.is_none(), "a lost message is closed before it is booked");
                turn.may_repeat = true;
            }
            Event::QuestionResolved { call_id: None, .. } => turn.may_repeat = true,
            Event::TurnResumed { resumes, delay_ms } => {
                law!(
                    (*delay_ms == 0) == (*resumes == 1 || was_parked),
                    "the first resume, and one after a stop in good order, is at once; the others wait"
                );
                (turn.waits, turn.may_repeat) = (*delay_ms > 0, true);
                law!(resumable, "turns resume after restarts");
                law!(
                    *resumes == turn.resumes + u32::from(!was_parked) && *resumes <= max_resumes,
                    "resumes are counted and limited"
                );
                turn.resumes = *resumes;
            }
            Event::TurnAborting { ending, subtype } => {
                law!(!turn.aborting || (*ending && !turn.ending), "an abort is told once");
                if !turn.aborting {
                    turn.ends_as = *subtype;
                }
                self.aborted_by = envelope.origin.clone().or(self.aborted_by.take());
                (turn.aborting, turn.ending) = (true, turn.ending || *ending);
            }
            Event::Retry { attempt, max, delay_ms, max_output_tokens, .. } => {
                turn.retries += 1;
                let endless = *max == 0 && self.setup.background;
                let shorter = max_output_tokens.is_some() && *max == attempt + 1;
                let limited = endless || shorter || (attempt < max && *max <= retry.attempts);
                law!(*attempt == turn.retries && limited, "attempts are limited");
                law!(
                    self.setup.background || *delay_ms <= retry.max_retry_after_ms.max(retry.max_ms),
                    "nobody who sits there waits for ever"
                );
                (turn.may_repeat, turn.waits_ms) = (true, *delay_ms);
            }
            Event::Heartbeat { remaining_ms, .. } => {
                law!(*remaining_ms > 0 && *remaining_ms <= turn.waits_ms, "a wait only gets shorter");
                (turn.may_repeat, turn.waits, turn.waits_ms) = (true, false, *remaining_ms);
            }
            Event::ModelSwitched { from, to, .. } => {
                law!(*from == turn.model && from != to, "a turn goes on with another model than its own");
                law!(turn.tried.insert(from.clone()) && !turn.tried.contains(to), "no model twice in a turn");
                let known =
                    [&stand_ins.fallback, &stand_ins.backup, &stand_ins.large_context, &stand_ins.vision];
                law!(
                    known.iter().any(|known| known.as_ref() == Some(to)),
                    "only the user says who stands in"
                );
                let limits_money = limits_money || turn.budgets.limits_money();
                law!(!limits_money || script::known(to).has_price, "a limit on money holds for every model");
                turn.model.clone_from(to);
                (turn.retries, turn.may_repeat) = (0, true);
            }
            Event::MediaWithheld { count, .. } => {
                // The request is sent again, and its beginning differs.
                let asked = self.sent.take().ok_or("what is refused was sent")?;
                let shown = asked.messages.iter().flat_map(|message| &message.content);
                let shown: Vec<_> = shown.flat_map(Block::shown).map(|(_, blob)| blob.blob_id).collect();
                law!(shown.len() == *count as usize && *count > 0, "what is withheld was shown: {count}");
                self.withheld.extend(shown);
                turn.may_repeat = true;
            }
            Event::MessageTombstone { .. } => {
                let orphan = envelope.item_id.is_some_and(|item_id| turn.orphans.remove(&item_id));
                law!(orphan, "only an answer that was superseded counts no more");
            }
            Event::Error { kind, message, causes } => {
                let (kind, message, causes) = (kind.clone(), message.clone(), causes.clone());
                turn.errors.push(TurnError { kind, message, causes });
            }
            _ => {}
        }
        Ok(())
    }

    fn completed(&mut self, turn: &TurnWatch, result: &TurnResult, at: Timestamp) -> Result<(), String> {
        self.seen.insert(format!("turn {}", result.subtype.name()));
        for call_id in &turn.calls {
            law!(self.calls[call_id].status.is_some(), "a turn leaves no call open");
        }
        law!(self.streaming.is_none(), "a turn leaves no message open");
        law!(self.running.is_empty(), "a turn leaves no tool running");
        law!(self.requests.values().all(|(.., settled)| *settled), "a turn leaves no request pending");
        law!(self.questions.values().all(|(_, settled)| *settled), "a turn leaves no question open");
        let stopped = matches!(result.subtype, Subtype::Aborted | Subtype::PermissionDenied);
        law!(stopped == turn.aborting, "exactly stopped turns end as stopped");
        law!(!stopped || result.subtype == turn.ends_as, "a stopped turn ends as it was told");
        law!(result.errors == turn.errors, "a result lists the errors of its turn");
        law!(result.usage == turn.usage && result.cost_usd_micros == turn.cost, "a result sums its turn up");
        law!(result.cost_at_least_usd_micros == turn.at_least, "what is known of the cost is told");
        let mut by_model = ModelUsage::default();
        result.usage_by_model.values().for_each(|spent| by_model.add(spent));
        law!(by_model.usage == turn.usage, "models sum up");
        law!(
            (by_model.cost_usd_micros, by_model.cost_at_least_usd_micros) == (turn.cost, turn.at_least),
            "what the models cost is what the turn cost"
        );
        law!(by_model.lost_attempts == turn.lost, "lost attempts are told");
        law!(
            result.model_calls == turn.model_calls && result.text == turn.text,
            "a result tells calls and text"
        );
        law!(result.stop_reason == turn.stop, "a result tells why the model stopped");
        law!(result.duration_ms == at.since(turn.started_at), "a result tells how long it took");
        law!(
            result.permission_denials.iter().map(|denial| denial.call_id).eq(turn.denied.iter().copied()),
            "a result lists what was denied"
        );
        self.message.clear();
        self.asked_before = false;
        Ok(())
    }

    /// Background commands that run.
    pub fn running_commands(&self) -> impl Iterator<Item = &CommandWatch> {
        self.commands.iter().filter(|it| !it.is_over)
    }

    /// Whether calls wait to be prepared.
    pub fn is_unjudged(&self) -> bool {
        self.message
            .iter()
            .filter_map(|call| self.calls.get(&call.call_id))
            .any(|call| call.status.is_none() && !call.allowed && call.asked.is_none())
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
        Event::MessageCompleted { item, .. } => {
            item.kind == ItemKind::UserMessage || item.status == ItemStatus::Interrupted
        }
        Event::PermissionResolved { by, .. } => *by == SettledBy::Abort,
        Event::TurnPhase { phase, .. } => *phase == Phase::Result,
        Event::ToolStarted { .. }
        | Event::ToolBlocked { .. }
        | Event::ToolRequested { .. }
        | Event::ToolStatus { .. }
        | Event::PermissionRequested { .. }
        | Event::QuestionRequested { .. }
        | Event::MessageStarted { .. }
        | Event::MessageTextDelta { .. }
        | Event::MessageThinkingDelta { .. }
        | Event::MessageToolInputDelta { .. }
        | Event::TurnSteered { .. }
        | Event::TurnResumed { .. }
        | Event::Retry { .. }
        | Event::Heartbeat { .. }
        | Event::StreamIdle { .. }
        | Event::ModelSwitched { .. }
        | Event::MediaWithheld { .. }
        | Event::MessageTombstone { .. }
        | Event::Error { .. } => false,
        _ => true,
    }
}
