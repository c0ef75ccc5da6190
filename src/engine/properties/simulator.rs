//! A simulator without real time: it plays a script against the engine, keeps the requested effects, and
//! delivers their results in any order. It also plays the store (events, pruning) and the daemon (crash,
//! restart).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::generators;
use crate::generators::{GeneratedAnswer, background_command_ended, origin};
use crate::property;
use crate::reference_model::ReferenceModel;
use crate::script::{EffectOutcome, NamedTurn, ScriptStep};
use crate::setup::Setup;
use engine::{
    AnsweredCommand, Decision as EngineDecision, EditedCall, Engine, Input, Now, Plan, PlannedEvent, Refusal,
    RequestAnswer, SessionUpdate, Settings, SubmitRequest,
};
use types::background::BackgroundState;
use types::blob::{Blob, BlobRef, Picture};
use types::compaction::CompactRequest;
use types::event::{Envelope, Event, SettledBy};
use types::ids::{CallId, Mint, PermissionId, QuestionId, Seed, Seq, SessionId, TurnId};
use types::message::{InputBlock, ToolCall};
use types::permission::{Decision, Mode, RuleKind};
use types::permission_request::PermissionAnswer;
use types::question::Choice;
use types::sampling::Temperature;
use types::session::SessionSpec;
use types::slash_command::SlashCommand;
use types::time::Timestamp;
use types::tool::ToolProgress;
use types::turn_options::TurnOptions;

/// An effect that was started and has not delivered its result.
#[expect(clippy::large_enum_variant, reason = "a run has a few of them")]
pub(super) enum OutstandingEffect {
    Context,
    Check { turn_id: TurnId },
    Model { token: Seq, answer: Option<GeneratedAnswer> },
    Timer { token: Seq },
    Prepare { turn_id: TurnId, mode: Mode, calls: Vec<Arc<ToolCall>> },
    CheckRules { turn_id: TurnId, mode: Mode, calls: Vec<CallId> },
    Tool { call_id: CallId },
    Inspect { call_id: CallId },
    Stop,
}

pub struct Simulator {
    pub(super) id: SessionId,
    pub(super) settings: Arc<Settings>,
    pub(super) engine: Engine,
    /// Rows of the journal, without the pruned ones.
    pub(super) journal: Vec<PlannedEvent>,
    pub(super) outstanding: Vec<OutstandingEffect>,
    /// Helper calls without an answer yet.
    pub(super) helpers: Vec<Seq>,
    /// Inputs that arrive too late and must change nothing.
    pub(super) late: Vec<Input>,
    /// Texts of submitted inputs that have not started a turn.
    pub(super) submitted_texts: Vec<String>,
    pub(super) queued: Vec<(TurnId, String)>,
    pub(super) past_turns: Vec<TurnId>,
    pub(super) clock: i64,
    made: u64,
    pub(super) watch: ReferenceModel,
    plans: Vec<Plan>,
    /// The steps so far, shown when a test fails.
    pub trace: Vec<String>,
}

/// The record of one played script.
#[derive(Clone, Debug)]
pub struct ScriptRecord {
    pub settings: Arc<Settings>,
    pub created: Envelope,
    /// The plans, in order.
    pub plans: Vec<Plan>,
    /// Kinds of events and results of turns that occurred.
    pub seen: BTreeSet<String>,
    /// The violated property together with the steps before it, if a property failed.
    pub result: Result<(), String>,
}

/// Plays a script to its end and then delivers all outstanding results.
pub fn play(setup: &Setup, script: &[ScriptStep]) -> ScriptRecord {
    let mut world = Simulator::new(setup);
    let result = world.play(script);
    ScriptRecord {
        settings: world.settings,
        created: world.journal.swap_remove(0).envelope,
        plans: world.plans,
        seen: world.watch.seen,
        result: result.map_err(|broken| format!("{broken}\nwhat happened:\n  {}", world.trace.join("\n  "))),
    }
}

impl Simulator {
    fn new(setup: &Setup) -> Self {
        let id = Mint::new(0, Seed(0)).session();
        let settings = Arc::new(setup.settings.clone());
        let spec = SessionSpec {
            cwd: "/w".into(),
            title: String::new(),
            model: if setup.has_model { "p/m".into() } else { String::new() },
            mode: Mode::Default,
            background: setup.background,
            safe_mode: setup.safe_mode,
            binary_feedback: setup.binary_feedback,
            on_restart: setup.on_restart,
            budgets: setup.budgets,
            thinking: setup.thinking,
            sampling: Default::default(),
            system_prompt: None,
            append_system_prompt: None,
            tools: Default::default(),
            additional_dirs: Vec::new(),
            ..SessionSpec::default()
        };
        let envelope = Envelope {
            seq: 1,
            session_id: id,
            turn_id: None,
            item_id: None,
            step: None,
            parent_call_id: None,
            at_ms: Timestamp(0),
            origin: None,
            truncated_fields: Vec::new(),
            event: Event::SessionCreated(Box::new(spec)),
        };
        let mut engine = Engine::new(id, Arc::clone(&settings));
        engine.apply(&envelope);
        let mut watch = ReferenceModel::new(setup.clone());
        watch.last_seq = 1;
        Self {
            id,
            settings,
            engine,
            journal: vec![PlannedEvent { envelope, delta_of: None }],
            outstanding: Vec::new(),
            helpers: Vec::new(),
            late: Vec::new(),
            submitted_texts: Vec::new(),
            queued: Vec::new(),
            past_turns: Vec::new(),
            clock: 1,
            made: 0,
            watch,
            plans: Vec::new(),
            trace: Vec::new(),
        }
    }

    fn play(&mut self, script: &[ScriptStep]) -> Result<(), String> {
        for step in script {
            self.step(step)?;
            let asks = !self.engine.pending().is_empty() || !self.engine.questions().is_empty();
            let asks = asks
                || self.engine.inspect().open_feedback.is_some()
                || !self.engine.inspect().user_questions.is_empty();
            let to_come = !self.outstanding.is_empty() || asks;
            property!(self.watch.turn.is_none() || to_come, "a turn always has something to come");
        }
        self.trace.push("— everything comes home —".into());
        self.finish_session()?;
        self.check_replay()
    }

    fn step(&mut self, step: &ScriptStep) -> Result<(), String> {
        match step {
            ScriptStep::Submit { busy, named, blank, budgets, mode, model, thinking, command, schema } => {
                let number = self.next();
                let word = format!("u{number}.");
                let text = if *blank { " \n".into() } else { format!("please {word} do\nit") };
                let (mut input, mut blobs) = (vec![InputBlock::Text { text }], Vec::new());
                if number.is_multiple_of(3) && !*blank {
                    let blob = Blob::new("image/png", word.as_bytes());
                    input.push(InputBlock::Image(Picture { blob: BlobRef::from(&blob), name: None }));
                    blobs.push(blob);
                }
                let input = Input::Submit(Box::new(SubmitRequest {
                    input,
                    blobs,
                    when_busy: *busy,
                    expected_turn: self.pick_turn_id(*named),
                    options: TurnOptions {
                        budgets: *budgets,
                        mode: *mode,
                        model: model.then(|| "p/other".into()),
                        thinking: *thinking,
                        // Some turns have their own system prompt, which must be built first.
                        system_prompt: number.is_multiple_of(11).then(|| "be brief".into()),
                        // Set together with `thinking`, because an input with these options cannot
                        // steer a turn and is then refused for `thinking`.
                        temperature: Temperature::new(300).filter(|_| thinking.is_some()),
                        command: command.then(|| SlashCommand {
                            allow_rules: vec!["Bash(ls)".into()],
                            needs_trust: false,
                            ..SlashCommand::new("custom", "x")
                        }),
                        output_schema: schema.then(|| serde_json::json!({"type": "object"})),
                        ..TurnOptions::default()
                    },
                    origin: origin(),
                }));
                if let Some(plan) = self.feed(input)? {
                    let queued = plan.events.iter().find_map(|entry| match entry.envelope.event {
                        Event::TurnQueued { .. } => entry.envelope.turn_id,
                        _ => None,
                    });
                    match queued {
                        Some(turn_id) => self.queued.push((turn_id, word)),
                        None => self.submitted_texts.push(word),
                    }
                }
            }
            ScriptStep::Slash { clear: true, busy, named, .. } => {
                let command = Some(SlashCommand::new("clear", ""));
                let input = Input::Submit(Box::new(SubmitRequest {
                    input: vec![InputBlock::Text { text: "/clear".into() }],
                    blobs: Vec::new(),
                    when_busy: *busy,
                    expected_turn: self.pick_turn_id(*named),
                    options: TurnOptions { command, ..TurnOptions::default() },
                    origin: origin(),
                }));
                self.feed(input)?;
            }
            ScriptStep::Slash { clear: false, busy, named, mode } => {
                let options = TurnOptions { mode: *mode, ..TurnOptions::default() };
                let change = mode.map(|_| {
                    Box::new(SessionUpdate { options, origin: origin(), ..SessionUpdate::default() })
                });
                let input = Input::Command(Box::new(AnsweredCommand {
                    command: SlashCommand::new("status", ""),
                    text: format!("all is well {}", self.next()),
                    change,
                    when_busy: *busy,
                    expected_turn: self.pick_turn_id(*named),
                    origin: origin(),
                }));
                self.feed(input)?;
            }
            ScriptStep::TooLong => {
                let stop = types::model::StopReason::MaxTokens;
                let cut = EffectOutcome { stop, ..EffectOutcome::successful() };
                let is_unanswered =
                    |out: &OutstandingEffect| matches!(out, OutstandingEffect::Model { answer: None, .. });
                for _ in 0..6 {
                    let Some(index) = self.outstanding.iter().position(is_unanswered) else { break };
                    self.deliver_result(index, &cut)?;
                }
            }
            ScriptStep::Compact => {
                let request = CompactRequest { instructions: Some("keep the names".into()) };
                self.feed(Input::Compact { request, origin: origin() })?;
            }
            ScriptStep::Next { pick, chance } => self.deliver_result(usize::from(*pick), chance)?,
            ScriptStep::Answer { pick, right, decision, scope, grant, feedback, stop, edit, other } => {
                let pending = self.engine.pending();
                let chosen = choose(&pending, *pick).filter(|_| *right).cloned();
                let request_id = match &chosen {
                    Some(pending) => pending.request_id,
                    None => self.other_request(*pick),
                };
                // One of four answers names a wrong grant.
                let granted =
                    chosen.as_ref().and_then(|it| it.outside.clone().flatten()).filter(|_| pick % 4 != 0);
                let edited =
                    chosen.filter(|_| *edit && *decision == Decision::Allow).map(|pending| EditedCall {
                        input: serde_json::json!({"command": "ls -l"}),
                        prepared: (*pending.prepared).clone(),
                    });
                self.feed(Input::Answer(Box::new(RequestAnswer {
                    answer: PermissionAnswer {
                        scope: *scope,
                        grant: grant.then(|| granted.unwrap_or_else(|| "Bash(ls)".into())),
                        feedback: feedback.then(|| "not like this".into()),
                        stop: *stop,
                        no_approver: pick % 5 == 0,
                        digest: other.then(|| "another one".into()),
                        ..PermissionAnswer::new(request_id, *decision)
                    },
                    edited,
                    origin: origin(),
                })))?;
            }
            ScriptStep::Title { same } => {
                let now = self.engine.snapshot().title;
                let number = self.next();
                let title = Some(if *same { now } else { format!("mine {number}") });
                let append_system_prompt = number.is_multiple_of(3).then(|| format!("note {number}"));
                let options = TurnOptions { append_system_prompt, ..TurnOptions::default() };
                let origin = origin();
                self.feed(Input::Update(Box::new(SessionUpdate {
                    title,
                    options,
                    origin,
                    ..SessionUpdate::default()
                })))?;
            }
            ScriptStep::Think(thinking) => {
                let options = TurnOptions { thinking: *thinking, ..TurnOptions::default() };
                let origin = origin();
                self.feed(Input::Update(Box::new(SessionUpdate {
                    options,
                    origin,
                    ..SessionUpdate::default()
                })))?;
            }
            ScriptStep::Mode { mode, covers } => {
                let pending = self.engine.pending();
                let covered = pending.iter().filter(|_| *covers).map(|it| (it.request_id, "the mode".into()));
                let (covered, origin) = (covered.collect(), origin());
                let options = TurnOptions { mode: Some(*mode), ..TurnOptions::default() };
                self.feed(Input::Update(Box::new(SessionUpdate {
                    options,
                    covered,
                    origin,
                    ..SessionUpdate::default()
                })))?;
            }
            ScriptStep::Rule { add, kind, covers } => {
                let (rule, origin) = ("Bash(ls)".to_string(), origin());
                self.feed(Input::Rule { add: *add, kind: *kind, rule: rule.clone(), origin })?;
                if let Some(pending) = self.engine.pending().first().filter(|_| *covers) {
                    let (request_id, by) = (pending.request_id, SettledBy::Rule);
                    let its_grant = pending.outside.clone().flatten().filter(|_| *kind == RuleKind::Allow);
                    let rule = its_grant.unwrap_or(rule);
                    self.feed(Input::AllowedByRule { request_id, by, rule })?;
                }
            }
            ScriptStep::Due { wait_ms } => {
                self.clock += i64::from(*wait_ms);
                self.feed(Input::DeadlineReached)?;
            }
            ScriptStep::Choose { pick, right, .. } if self.engine.inspect().open_feedback.is_some() => {
                let Some((open, items)) = self.engine.inspect().open_feedback else { return Ok(()) };
                let request_id = if *right { open } else { self.other_question(*pick) };
                let item_id = choose(&items, *pick).copied().unwrap_or_else(|| self.mint().item());
                self.feed(Input::ChooseAnswer { request_id, item_id, origin: origin() })?;
            }
            ScriptStep::Choose { pick, right: true, choice }
                if !self.engine.inspect().user_questions.is_empty() =>
            {
                let open = self.engine.inspect().user_questions;
                let Some((request_id, _)) = choose(&open, *pick).cloned() else { return Ok(()) };
                let input = match (choice, pick % 4) {
                    // A question of the model takes answers and no choice, so the engine must refuse this.
                    (Choice::Abort, _) => {
                        Input::AnswerQuestion { request_id, choice: *choice, origin: origin() }
                    }
                    (Choice::Continue, 0) => {
                        Input::AnswerUser { request_id, answers: Vec::new(), origin: origin() }
                    }
                    (Choice::Continue, _) => {
                        let answers = vec![generators::user_answer()];
                        Input::AnswerUser { request_id, answers, origin: origin() }
                    }
                };
                self.feed(input)?;
            }
            ScriptStep::Choose { pick, right, choice } => {
                let open = self.engine.questions();
                let request_id = match choose(&open, *pick) {
                    Some(id) if *right => *id,
                    _ => self.other_question(*pick),
                };
                self.feed(Input::AnswerQuestion { request_id, choice: *choice, origin: origin() })?;
            }
            ScriptStep::Queue { pick, to, edit } => self.edit_queue(*pick, *to, *edit)?,
            ScriptStep::Fork { pick, rewinds } => self.fork(*pick, *rewinds)?,
            ScriptStep::Archive(archived) => {
                self.feed(Input::Archive { archived: *archived, origin: origin() })?;
            }
            ScriptStep::AbortTurn(named) => {
                let turn_id = self.pick_turn_id(*named);
                self.feed(Input::Abort { turn_id, call_id: None, origin: origin() })?;
            }
            ScriptStep::AbortCall { pick, exists } => {
                let open = [self.engine.open_calls(), self.engine.running_commands()].concat();
                let call_id = match choose(&open, *pick) {
                    Some(call_id) if *exists => *call_id,
                    _ => self.mint().call(),
                };
                self.feed(Input::Abort { turn_id: None, call_id: Some(call_id), origin: origin() })?;
            }
            ScriptStep::Command { pick, ends } => {
                let running: Vec<CallId> = self.watch.running_commands().map(|it| it.call_id).collect();
                let Some(call_id) = choose(&running, *pick).copied() else { return Ok(()) };
                let progress = ToolProgress { stream: "stdout", text: "out é".repeat(usize::from(*pick)) };
                let input = match ends {
                    true => background_command_ended(call_id, BackgroundState::Exited),
                    false => Input::Progress { call_id, progress },
                };
                if *ends {
                    self.late.push(input.clone());
                }
                self.feed(input)?;
            }
            ScriptStep::Kill => drop(self.feed(Input::Kill { origin: origin() })?),
            ScriptStep::Attach => {
                self.feed(Input::Attached { clients: 1, origin: origin() })?;
                // Hooks report at any time. A step of their own would change the other scripts.
                self.feed(generators::hooks(self.engine.next_seq()))?;
            }
            ScriptStep::Detach => {
                self.feed(Input::Detached { clients: 0, origin: origin() })?;
                self.feed(generators::job_events(self.engine.next_seq()))?;
            }
            ScriptStep::Reload => {
                let changed = vec!["retry.attempts".into()];
                self.feed(Input::Reloaded { changed, needs_restart: Vec::new(), files: Vec::new() })?;
                let is_back = self.clock > 5_000_000 && self.next().is_multiple_of(2);
                let by_ms = if is_back { -3_600_000 } else { 7_200_000 };
                self.clock += by_ms;
                self.feed(Input::ClockSet { by_ms })?;
            }
            ScriptStep::Stop => self.restart_cleanly()?,
            ScriptStep::Crash { unwritten, twice } => self.crash(*unwritten, *twice)?,
            ScriptStep::Late { pick } => self.deliver_late_input(*pick)?,
        }
        Ok(())
    }

    /// Decides, writes, applies and runs effects for one input, and checks all properties between these steps.
    pub(super) fn feed(&mut self, input: Input) -> Result<Option<Plan>, String> {
        self.clock += 7;
        let now = Now { at: Timestamp(self.clock), seed: Seed(u128::from(self.next())) };
        self.trace.push(format!("{:.200}", format!("{input:?}")));
        let expected = self.watch.expected_refusal(&input);
        let EngineDecision { plan, next, .. } = match self.engine.decide(input.clone(), now) {
            Ok(decision) => decision,
            Err(refusal) => {
                property!(
                    expected.as_ref() == Some(&refusal),
                    "refused as {refusal:?}, expected {expected:?}"
                );
                self.trace.push(format!("    refused: {refusal:?}"));
                return Ok(None);
            }
        };
        property!(
            expected != Some(Refusal::NotPending) && expected.is_none(),
            "accepted, expected {expected:?}"
        );
        self.trace.extend(
            plan.events
                .iter()
                .map(|entry| format!("    {} {}", entry.envelope.seq, entry.envelope.event.kind())),
        );
        self.trace.extend(plan.effects.iter().map(|effect| format!("    → {:.40}", format!("{effect:?}"))));
        self.write(&plan)?;
        let mut applied = self.engine.clone();
        plan.events.iter().for_each(|entry| applied.apply(&entry.envelope));
        property!(applied.has_same_state_as(&next), "applying the plan gives the decided state");
        self.engine = next;
        self.watch.check_plan(&input, &plan)?;
        self.watch.check_state(&self.engine)?;
        self.started(&plan);
        self.plans.push(plan.clone());
        for effect in &plan.effects {
            self.start_effect(effect)?;
        }
        Ok(Some(plan))
    }

    fn pick_turn_id(&mut self, named: NamedTurn) -> Option<TurnId> {
        match named {
            NamedTurn::NoTurn => None,
            NamedTurn::Current => self.engine.turn_id(),
            NamedTurn::Stale => {
                let past =
                    self.past_turns.iter().rev().find(|id| Some(**id) != self.engine.turn_id()).copied();
                Some(past.unwrap_or_else(|| self.mint().turn()))
            }
        }
    }

    /// A settled request, or one that never existed.
    fn other_request(&mut self, pick: u8) -> PermissionId {
        let settled: Vec<_> =
            self.watch.requests.iter().filter(|(_, (.., settled))| *settled).map(|(id, _)| *id).collect();
        choose(&settled, pick).copied().unwrap_or_else(|| self.mint().permission())
    }

    /// A settled question, or one that never existed.
    fn other_question(&mut self, pick: u8) -> QuestionId {
        let settled: Vec<_> =
            self.watch.questions.iter().filter(|(_, (_, settled))| *settled).map(|(id, _)| *id).collect();
        choose(&settled, pick).copied().unwrap_or_else(|| self.mint().question())
    }

    pub(super) fn mint(&mut self) -> Mint {
        Mint::new(self.clock, Seed(u128::from(self.next())))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }
}

pub(super) fn choose<T>(from: &[T], pick: u8) -> Option<&T> {
    from.get(usize::from(pick) % from.len().max(1))
}
