//! Selects the model of a turn: the session's model, unless a failure requires a fallback model.

use crate::decide::plan::PlanBuilder;
use crate::decide::retry::{RetryContext, RetryDecision, decide_retry};
use crate::request::tokens;
use crate::request::vision::{count_media, needs_vision};
use types::event::{Event, SwitchReason, TombstoneReason};
use types::model::{ModelFault, Overflow};
use types::model_pointers::ModelPointers;
use types::session::TurnError;

impl PlanBuilder<'_> {
    /// The reaction to a failed call.
    pub fn decide_retry(&mut self, fault: &ModelFault) -> RetryDecision {
        let random = self.mint.random();
        let Some(turn) = &self.state.turn else {
            return RetryDecision::GiveUp(TurnError::new(fault.kind.name(), fault.message.as_str()));
        };
        let request_tokens = tokens::request_tokens(&self.state, &self.offered_tools());
        let past = RetryContext {
            failures: turn.model_call.failures,
            overloads: turn.model_call.overloads,
            unattended: self.state.spec.background,
            output_limit: self.output_limit(),
            is_fitted: turn.model_call.reduced_output_limit.is_some(),
            shows: self.count_media() > 0,
            can_compact: self.can_compact_after_overflow(),
            is_longest: !self.state.has_wrong_guess
                && self.state.is_longest_request(&turn.settings.model, request_tokens),
            is_summary: turn.compaction.open.is_some(),
            fallback_models: self.fallback_models(fault.overflow),
            time_left_ms: self.time_left(),
            random,
            now: self.now.at,
        };
        decide_retry(&self.engine.settings.retry, fault, &past)
    }

    /// Number of pictures and documents in the request.
    fn count_media(&self) -> usize {
        let accepts_images = self.engine.settings.known.capabilities(&self.turn_model()).accepts_images;
        if accepts_images { count_media(self.state.transcript.iter().map(|message| &**message)) } else { 0 }
    }

    /// Removes the refused pictures and documents from all later requests, to every model.
    pub fn withhold_media(&mut self, reason: &str) {
        let count = u32::try_from(self.count_media()).unwrap_or(u32::MAX);
        self.push_turn(Event::MediaWithheld { count, reason: reason.into() });
    }

    /// Switches to another model until the turn ends. The partial answers of this call are discarded.
    pub fn switch_model(&mut self, to: String, reason: SwitchReason, detail: &str) {
        let from = self.turn_model();
        self.push_turn(Event::ModelSwitched { from, to, reason, detail: detail.into() });
        for item_id in
            self.state.turn.as_ref().map(|turn| turn.model_call.discarded_items.clone()).unwrap_or_default()
        {
            self.push_item(item_id, Event::MessageTombstone { reason: TombstoneReason::ModelSwitched });
        }
    }

    /// Switches models before a call that would fail, because the model accepts no pictures. A model that was tried
    /// in this turn is not tried again.
    pub fn choose_seeing_model(&mut self) {
        let model = self.turn_model();
        let capabilities = self.engine.settings.known.capabilities(&model);
        if !capabilities.accepts_images
            && needs_vision(self.state.transcript.iter().map(|message| &**message))
            && let Some(to) = self.fallback_models(None).vision
        {
            let detail = format!("the conversation holds pictures, which {model} cannot see");
            self.switch_model(to, SwitchReason::Vision, &detail);
        }
    }

    /// Switches models before a call that would fail, because the conversation exceeds the model's window even
    /// after compaction.
    pub fn choose_larger_model(&mut self) {
        let model = self.turn_model();
        let tokens = self.sent_tokens();
        let window = self.engine.settings.known.capabilities(&model).context_window.map(u64::from);
        if let Some(window) = window.filter(|window| tokens >= *window)
            && let Some(to) = self.fallback_models(None).large_context
        {
            let detail = format!(
                "the conversation has about {tokens} tokens, and {window} fit into the window of {model}"
            );
            self.switch_model(to, SwitchReason::LargeContext, &detail);
        }
    }

    /// Fallback models that are possible now.
    fn fallback_models(&self, overflow: Option<Overflow>) -> ModelPointers {
        let settings = &self.engine.settings;
        let Some(turn) = &self.state.turn else { return ModelPointers::default() };
        let limits_money = turn.settings.budgets.limits_money() || self.state.spec.budgets.limits_money();
        let usable_model = |model: &Option<String>| {
            let is_new = |model: &String| {
                *model != turn.settings.model && !turn.model_call.tried_models.contains(model)
            };
            let is_priced = |model: &String| !limits_money || settings.known.capabilities(model).has_price;
            model.clone().filter(|model| is_new(model) && is_priced(model))
        };
        fn first_set<'a>(own: &'a Option<String>, other: &'a Option<String>) -> &'a Option<String> {
            if own.is_some() { own } else { other }
        }
        let project = &self.state.spec.project_settings;
        let needed = overflow.map_or(0, |overflow| overflow.input).max(self.sent_tokens());
        let has_room = |model: &String| {
            let window = settings.known.capabilities(model).context_window;
            window.is_none_or(|window| u64::from(window) > needed)
        };
        ModelPointers {
            fallback: usable_model(
                &self.state.fallback_model().or(settings.models.fallback.as_ref()).cloned(),
            ),
            backup: usable_model(first_set(&project.backup_model, &settings.models.backup)),
            large_context: usable_model(first_set(
                &project.large_context_model,
                &settings.models.large_context,
            ))
            .filter(has_room),
            vision: usable_model(first_set(&project.vision_model, &settings.models.vision))
                .filter(|model| settings.known.capabilities(model).accepts_images),
            ..ModelPointers::default()
        }
    }
}
