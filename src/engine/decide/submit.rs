//! Submitting an input, starting a turn, and ending it.

use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::decide::slash_command;
use crate::input::{Refusal, SubmitRequest};
use crate::output::{Effect, Reply};
use crate::request::{model_texts, tokens};
use crate::state::{Activity, QueuedInput};
use types::compaction::CompactTrigger;
use types::event::{Event, Phase, TitledBy};
use types::ids::{ItemId, Seq, TurnId};
use types::message::{Block, InputBlock, input_content, input_text, own_words};
use types::outcome::{AcceptedState, SubmitOutcome};
use types::queue::WhenBusy;
use types::reminder::FileVersion;
use types::session::{ItemKind, Subtype, TurnError, TurnResult, UntrustedParts};
use types::slash_command::SlashCommand;
use types::thinking::Thinking;
use types::turn_options::TurnOptions;

/// Maximum characters of a title made from the first prompt.
const MAX_TITLE_CHARS: usize = 60;

impl PlanBuilder<'_> {
    pub fn submit(&mut self, submit: SubmitRequest) -> Result<(), Refusal> {
        if self.state.status == types::session::SessionState::Ended {
            return Err(Refusal::Ended);
        }
        if self.state.archived {
            return Err(Refusal::Archived);
        }
        if is_empty_input(&submit.input) {
            return Err(Refusal::EmptyInput);
        }
        let current = self.state.turn.as_ref().map(|turn| turn.id);
        if submit.expected_turn.is_some() && submit.expected_turn != current {
            return Err(Refusal::StaleTurn { current });
        }
        let steers = match submit.when_busy {
            Some(WhenBusy::Steer) => current.is_some() && !self.is_aborting(),
            None => !self.is_aborting() && self.has_questions() && submit.options.command.is_none(),
            Some(WhenBusy::Queue | WhenBusy::Interrupt | WhenBusy::Reject) => false,
        };
        if steers {
            check_steering_options(&submit.options)?;
        }
        self.origin = submit.origin;
        self.plan.blobs.extend(submit.blobs);
        let (input, options) = (submit.input, submit.options);
        let used_up = options.budgets.as_ref().and_then(|limits| self.over_session(limits, 0));
        if let (None, Some((_, why))) = (current, used_up) {
            return Err(Refusal::Budget(why));
        }
        // The message gets its item now, so that the reply can name it. `/clear` has no message.
        let has_message = !options.command.as_ref().is_some_and(slash_command::is_clear);
        let item_id = has_message.then(|| self.mint.item());
        let Some(running) = current else {
            let turn_id = self.mint.turn();
            let (queued_at, origin) = (self.now.at, self.origin.clone());
            let turn = QueuedInput { turn_id, item_id, input, options, queued_at, front: false, origin };
            let seq = self.begin_turn(&turn);
            // `/clear` ends within this decision, so its turn has already ended.
            if self.state.turn.is_some() {
                self.reply_submitted((turn_id, item_id), AcceptedState::Running, seq);
            } else {
                self.reply_command(turn_id, seq, slash_command::CLEARED.into());
            }
            return Ok(());
        };
        if submit.when_busy == Some(WhenBusy::Reject) {
            return Err(Refusal::Busy { turn_id: running });
        }
        if steers {
            let seq = self.push(item_id, Some(running), Event::TurnSteered { input });
            self.reply_submitted((running, item_id), AcceptedState::Steered, seq);
            // An input during an open question answers it: the turn continues with this input.
            if self.has_questions() {
                self.continue_all();
            }
            return Ok(());
        }
        let (turn_id, front) = (self.mint.turn(), submit.when_busy == Some(WhenBusy::Interrupt));
        let budgets = Some(options.budgets.unwrap_or(self.state.spec.budgets));
        let options = Box::new(TurnOptions { budgets, ..options });
        let queued = Event::TurnQueued { input, front, options };
        let seq = self.push(item_id, Some(turn_id), queued);
        self.reply_submitted((turn_id, item_id), AcceptedState::Queued, seq);
        if front && !self.is_aborting() {
            self.push_turn(Event::TurnAborting { ending: false, subtype: Subtype::Aborted });
            self.stop_turn();
        }
        Ok(())
    }

    /// Replies with the turn that processes an input, and the item of its message.
    pub fn reply_submitted(
        &mut self,
        (turn_id, item_id): (TurnId, Option<ItemId>),
        state: AcceptedState,
        seq: Seq,
    ) {
        self.reply = Reply::Submitted(SubmitOutcome { turn_id, state, seq, item_id, text: None });
    }

    /// Replies with the answer of a command that needed no model.
    pub fn reply_command(&mut self, turn_id: TurnId, seq: Seq, text: String) {
        let state = AcceptedState::Completed;
        self.reply = Reply::Submitted(SubmitOutcome { turn_id, state, seq, item_id: None, text: Some(text) });
    }

    pub fn is_aborting(&self) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| turn.stop.is_aborting)
    }

    /// Writes the start of a turn; it uses the session's options unless the input names others. Returns the seq of
    /// that event.
    pub fn start_turn(&mut self, turn: &QueuedInput) -> Seq {
        let QueuedInput { turn_id, options, origin, .. } = turn;
        let spec = &self.state.spec;
        let mut budgets = options.budgets.unwrap_or(spec.budgets);
        if origin.is_none() && options.budgets.is_some() {
            // A turn without a client starts with the result of a sub-agent. While it was queued, other
            // turns may have used more of these limits.
            budgets = budgets.stricter(self.state.left_of_turn);
        }
        let thinking = options.thinking.or(spec.thinking);
        let schema = options.output_schema.clone().or_else(|| spec.output_schema.clone());
        let options = TurnOptions {
            model: Some(options.model.clone().unwrap_or_else(|| spec.model.clone())),
            mode: Some(options.mode.unwrap_or(spec.mode)),
            budgets: Some(budgets),
            thinking: if spec.ablation.thinking { Some(Thinking::Off) } else { thinking },
            output_schema: schema.filter(|schema| *schema != serde_json::json!({})),
            ..options.clone().with_sampling(options.sampling().or(spec.sampling))
        };
        // The message of a command with parts follows later, so the event names its item.
        let has_parts = options.command.as_ref().is_some_and(|command| !command.parts.is_empty());
        let item_id = turn.item_id.filter(|_| has_parts);
        let seq = self.push(item_id, Some(*turn_id), Event::TurnStarted { options: Box::new(options) });
        self.push_phase(Phase::Input, 0);
        seq
    }

    /// Starts a turn and its work. Returns the seq of its first event.
    pub fn begin_turn(&mut self, turn: &QueuedInput) -> Seq {
        let QueuedInput { item_id, input, options, .. } = turn;
        let untitled = self.state.spec.title.is_empty() && options.compact.is_none();
        let seq = self.start_turn(turn);
        if let Some(command) = options.command.as_ref().filter(|command| slash_command::is_clear(command)) {
            self.clear_conversation(command);
            return seq;
        }
        if untitled {
            let text = options.command.as_ref().map_or_else(|| own_words(input), SlashCommand::line);
            let line = text.lines().find(|line| !line.trim().is_empty());
            // If the input has no text, use the name of a picture or document.
            let line = line.or_else(|| input.iter().find_map(InputBlock::name)).unwrap_or("(no words)");
            let title = line.trim().chars().take(MAX_TITLE_CHARS).collect();
            self.set_title(title, TitledBy::Prompt);
        }
        let options = self.state.turn.as_ref().map(|turn| Arc::clone(&turn.settings.options));
        if self.begin_expansion() {
            return seq;
        }
        if options.as_ref().is_none_or(|options| options.compact.is_none()) {
            self.user_message(*item_id, input.clone(), options.as_deref());
        }
        self.prepare_context(0);
        seq
    }

    /// Builds the system prompt, or checks whether it and the read files are still up to date.
    pub fn prepare_context(&mut self, step: u64) {
        let Some(turn_id) = self.state.turn.as_ref().map(|turn| turn.id) else { return };
        if self.state.system_prompt().is_some() && self.state.spec.ablation.reminders && !self.has_mcp() {
            self.deliver_steered();
            self.call_model();
            return;
        }
        self.push_phase(Phase::Context, step);
        self.add_effect(match self.state.system_prompt() {
            Some(_) => Effect::CheckContext { turn_id },
            None => Effect::GatherContext,
        });
    }

    /// Adds the item of a user's input and adds the input to the transcript. `options` are the options
    /// of the turn that the input starts.
    pub fn user_message(
        &mut self,
        item_id: Option<ItemId>,
        input: Vec<InputBlock>,
        options: Option<&TurnOptions>,
    ) {
        let is_first = self.state.transcript.len() == 0;
        let text = input_text(&input);
        let mut content = input_content(input);
        if let Some(schema) = options.and_then(|options| options.output_schema.as_ref()) {
            content.push(Block::Text { text: model_texts::output_schema(schema) });
        }
        if !self.state.hooks.context.is_empty() {
            content.push(Block::Text { text: model_texts::hook_context(&self.state.hooks.context) });
        }
        let command = options.and_then(|options| options.command.clone());
        let command = command.map(SlashCommand::without_details);
        let item_id = item_id.unwrap_or_else(|| self.mint.item());
        self.push_input_message((item_id, ItemKind::UserMessage), text, content, command);
        self.remind_of_message(is_first);
    }

    pub fn context_ready(
        &mut self,
        system: String,
        sources: Vec<String>,
        instructions: Vec<FileVersion>,
        skipped_instructions: Vec<String>,
        untrusted: Option<UntrustedParts>,
    ) {
        let is_waiting =
            matches!(self.state.turn.as_ref().map(|turn| &turn.activity), Some(Activity::Context))
                && !self.is_expanding();
        if self.state.system_prompt().is_some() || !is_waiting || self.is_aborting() {
            return;
        }
        let is_of_turn =
            self.state.turn.as_ref().is_some_and(|turn| turn.settings.options.change_system_prompt());
        // The session may build its prompt again, for example for another model. Report the same
        // skipped instructions only once.
        let is_new = self.state.skipped_instructions != skipped_instructions;
        let skipped = skipped_instructions.join("; ");
        if is_of_turn {
            self.push_turn(Event::TurnPromptBuilt { system, sources });
        } else {
            let instructions = Some(instructions);
            self.push_session(Event::SessionPromptBuilt {
                system,
                sources,
                instructions,
                skipped_instructions,
            });
        }
        if is_new && !skipped.is_empty() {
            let text = format!("these parts of the project instructions are left out: {skipped}");
            self.push_session(Event::Notice { kind: "instructions_skipped".into(), text });
        }
        if let Some(untrusted) = untrusted {
            self.ask_for_trust(untrusted);
        }
        self.call_model();
    }

    /// Requests trust for the workspace's files, once per digest.
    pub fn ask_for_trust(&mut self, untrusted: UntrustedParts) {
        let UntrustedParts { digest, parts } = untrusted;
        let is_ended = self.state.status == types::session::SessionState::Ended;
        if is_ended || self.state.trust_asked.as_ref() == Some(&digest) {
            return;
        }
        let text = format!(
            "this folder is not trusted, so these parts are left out: {}. `agentctl trust` shows and trusts them. \
             AGENTS.md text is read, as data",
            parts.join(", ")
        );
        let cwd = self.state.spec.cwd.clone();
        self.push_session(Event::WorkspaceTrustRequired { cwd, parts, digest });
        self.push_session(Event::Notice { kind: "workspace_untrusted".into(), text });
    }

    /// Adds steering inputs to the next model call.
    pub fn deliver_steered(&mut self) -> bool {
        let mut delivered = false;
        while let Some((item_id, input)) =
            self.state.turn.as_ref().and_then(|turn| turn.steered.front()).cloned()
        {
            self.user_message(item_id, (*input).clone(), None);
            delivered = true;
        }
        delivered
    }

    /// Calls the model for the next step, unless a budget is used up.
    pub fn call_model(&mut self) {
        let step = self.state.turn.as_ref().map_or(1, |turn| turn.step + 1);
        self.call_model_step(step);
    }

    /// Calls the model (again) for this step, unless a budget is used up.
    pub fn call_model_step(&mut self, step: u64) {
        if let Some(compaction) = self.state.compacting() {
            self.call_summary(compaction.step);
            return;
        }
        let is_compaction =
            self.state.turn.as_ref().is_some_and(|turn| turn.settings.options.compact.is_some());
        if is_compaction {
            if !self.start_summary(CompactTrigger::Manual, step) {
                let text = "there is nothing to compact yet".into();
                self.push_turn(Event::Notice { kind: "nothing_to_compact".into(), text });
                self.finish_turn(Subtype::Success, Vec::new());
            }
            return;
        }
        if self.awaits_second_answer() {
            self.ask_second_answer(step);
            return;
        }
        if let Some((subtype, message)) = self.over_budget(step) {
            self.finish_turn(subtype, vec![TurnError::new("budget", message)]);
            return;
        }
        self.choose_seeing_model();
        self.push_phase(Phase::CompactCheck, step);
        if !self.fit_window(step) {
            return;
        }
        self.choose_larger_model();
        if let Some(error) = self.cannot_fit_error() {
            self.finish_turn(Subtype::LlmError, vec![error]);
            return;
        }
        if let Err(message) = self.send_request(step) {
            self.finish_turn(Subtype::LlmError, vec![TurnError::new("unconfigured", message)]);
        }
    }

    /// Writes the beginning of the model call of this step and sends its request. The error says why no
    /// request was sent.
    pub fn send_request(&mut self, step: u64) -> Result<(), &'static str> {
        let uncalibrated_tokens = Some(tokens::request_tokens(&self.state, &self.offered_tools()));
        self.push_phase(Phase::Normalize, step);
        let token = self.push_model_call(step, uncalibrated_tokens);
        self.warn_of_budgets();
        let request = Box::new(self.build_request()?);
        self.add_effect(Effect::CallModel { token, request });
        Ok(())
    }

    /// Ends the turn and starts the next queued one.
    pub fn finish_turn(&mut self, subtype: Subtype, errors: Vec<TurnError>) {
        self.close_compaction();
        if self.is_expanding() {
            self.finish_expansion();
        }
        // Deliver steering input now, so that none is lost: the next turn's request will contain it.
        self.deliver_steered();
        for error in errors {
            let TurnError { kind, message, causes } = error;
            let item_id = self.mint.item();
            self.push_item(item_id, Event::Error { kind, message, causes });
        }
        let structured = self.structured.take();
        let Some(turn) = &self.state.turn else { return };
        let result = TurnResult {
            subtype,
            text: turn.outcome.last_text.to_string(),
            structured,
            stop_reason: turn.outcome.stop_reason,
            usage: turn.totals.spent.usage,
            usage_by_model: turn.totals.usage_by_model.clone(),
            cost_usd_micros: turn.totals.spent.cost_usd_micros,
            cost_at_least_usd_micros: turn.totals.spent.cost_at_least_usd_micros,
            duration_ms: self.now.at.since(turn.started_at),
            model_ms: turn.totals.model_ms,
            tools_ms: turn.totals.tools_ms,
            permission_ms: turn.totals.permission_ms,
            model_calls: turn.totals.model_calls,
            tool_calls: turn.totals.tool_calls,
            cache_hit_tokens: turn.totals.spent.usage.cache_read_tokens,
            permission_denials: turn.outcome.denials.to_vec(),
            errors: turn.outcome.errors.clone(),
        };
        let (ending, step, text, budgets) =
            (turn.stop.is_ending, turn.step, turn.outcome.last_text.clone(), turn.settings.budgets);
        let is_answer = turn.totals.model_calls > 0 && turn.settings.options.compact.is_none();
        self.push_phase(Phase::Result, step);
        self.push_turn(Event::TurnCompleted { result });
        if ending {
            self.end_session();
            return;
        }
        // The queued input may come from another client than the one that ended this turn, so clear the origin.
        self.origin = None;
        if subtype == Subtype::Success && is_answer {
            self.ask_for_title(&text, &budgets);
        }
        if let Some(next) = self.state.queue.front().cloned() {
            self.begin_turn(&next);
        }
    }

    pub(crate) fn turn_model(&self) -> String {
        self.state
            .turn
            .as_ref()
            .map_or_else(|| self.state.spec.model.clone(), |turn| turn.settings.model.clone())
    }

    pub(crate) fn system_prompt(&self) -> Arc<str> {
        let system = self.state.system_prompt().cloned().unwrap_or_else(|| Arc::from(""));
        match &*self.state.mcp.prompt {
            "" => system,
            instructions => Arc::from(format!("{system}{instructions}")),
        }
    }
}

/// Whether an input has neither text nor media.
pub(super) fn is_empty_input(input: &[InputBlock]) -> bool {
    input.iter().all(|block| matches!(block, InputBlock::Text { text } if text.trim().is_empty()))
}

/// Steering input joins the running turn, so it may not have options of its own. Budgets are ignored.
fn check_steering_options(options: &TurnOptions) -> Result<(), Refusal> {
    if options.mode.is_some() {
        return Err(Refusal::ModeOfSteer);
    }
    if options.model.is_some() {
        return Err(Refusal::ModelOfSteer);
    }
    if options.thinking.is_some() {
        return Err(Refusal::ThinkingOfSteer);
    }
    if options.tools.is_some() {
        return Err(Refusal::ToolsOfSteer);
    }
    if !options.sampling().is_empty() {
        return Err(Refusal::SamplingOfSteer);
    }
    if options.command.is_some() {
        return Err(Refusal::CommandOfSteer);
    }
    let others = [
        ("output_schema", options.output_schema.is_some()),
        ("safe_mode", options.safe_mode.is_some()),
        ("system_prompt", options.system_prompt.is_some()),
        ("append_system_prompt", options.append_system_prompt.is_some()),
        ("additional_dirs", options.additional_dirs.is_some()),
        ("fallback_model", options.fallback_model.is_some()),
        ("stop", options.stop.is_some()),
        ("metadata", options.metadata.is_some()),
    ];
    match others.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(Refusal::OptionOfSteer(name)),
        None => Ok(()),
    }
}
