//! Combines the answers of all hooks of one event.

use serde_json::Value;

use super::HookAnswer;
use types::hook::{HookDecision, HookRun};

/// The answers of all hooks of one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookAnswers {
    /// The runs, in the order of the configuration.
    pub runs: Vec<HookRun>,
    /// The strictest decision.
    pub decision: Option<HookDecision>,
    /// The reasons of that decision.
    pub reason: String,
    /// Whether the decision is `ask` because an entry or an answer could not be read. In an unattended session
    /// such a call is denied.
    pub is_unreadable: bool,
    /// Arguments that replace those of the call: of the first hook that gives some.
    pub updated_input: Option<Value>,
    /// Texts for the model.
    pub context: String,
    /// Why a hook ends the turn.
    pub stops: Option<String>,
}

impl HookAnswers {
    /// Adds the answer of the next hook.
    pub fn add(&mut self, run: HookRun, answer: HookAnswer) {
        self.runs.push(run);
        if answer.decision > self.decision {
            self.decision = answer.decision;
            self.reason.clear();
            self.is_unreadable = false;
        }
        if answer.decision.is_some() && answer.decision == self.decision {
            append(&mut self.reason, answer.reason.as_deref().unwrap_or_default());
            self.is_unreadable |= answer.is_unreadable;
        }
        if let Some(context) = answer.context.filter(|text| !text.trim().is_empty()) {
            append(&mut self.context, &context);
        }
        if self.updated_input.is_none() {
            self.updated_input = answer.updated_input;
        }
        if self.stops.is_none() {
            self.stops = answer.stops;
        }
    }
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// The answers of one hook to the files of a patch. The patch as a whole is allowed only if each file is.
pub(super) fn judge_patch(answers: &mut [HookAnswer], files: usize) {
    let allowed = answers.iter().filter(|answer| answer.decision == Some(HookDecision::Allow)).count();
    if allowed < files {
        let allows = answers.iter_mut().filter(|answer| answer.decision == Some(HookDecision::Allow));
        allows.for_each(|answer| answer.decision = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::hook::HookEvent;

    fn run() -> HookRun {
        HookRun::new(HookEvent::PreToolUse, "x")
    }

    fn answer(decision: HookDecision, reason: &str) -> HookAnswer {
        HookAnswer { decision: Some(decision), reason: Some(reason.into()), ..HookAnswer::default() }
    }

    #[test]
    fn strictest_decision_counts_with_its_reasons() {
        let mut all = HookAnswers::default();
        for (decision, reason) in [
            (HookDecision::Allow, "a"),
            (HookDecision::Deny, "b"),
            (HookDecision::Ask, "c"),
            (HookDecision::Deny, "d"),
        ] {
            all.add(run(), answer(decision, reason));
        }
        assert_eq!((all.decision, all.reason.as_str()), (Some(HookDecision::Deny), "b\nd"));
    }

    #[test]
    fn patch_is_allowed_only_if_each_file_is() {
        let mut two = [answer(HookDecision::Allow, ""), HookAnswer::default()];
        judge_patch(&mut two, 2);
        assert_eq!(two[0].decision, None);
        let mut both = [answer(HookDecision::Allow, ""), answer(HookDecision::Allow, "")];
        judge_patch(&mut both, 2);
        assert_eq!(both[1].decision, Some(HookDecision::Allow));
        let mut denied = [answer(HookDecision::Allow, ""), answer(HookDecision::Deny, "")];
        judge_patch(&mut denied, 2);
        assert_eq!((denied[0].decision, denied[1].decision), (None, Some(HookDecision::Deny)));
    }
}
