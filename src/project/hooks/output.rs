//! The answer of a hook.

use serde_json::Value;

use super::HookForm;
use types::hook::{HookDecision, HookEvent, HookRun};

/// Maximum characters of a reason, a context or an error.
const MAX_TEXT_CHARS: usize = 10_000;
/// The exit code that means "deny".
const DENY_EXIT_CODE: i32 = 2;

/// The answer of one hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookAnswer {
    /// Its decision.
    pub decision: Option<HookDecision>,
    /// Reason of the decision.
    pub reason: Option<String>,
    /// Arguments that replace those of the call.
    pub updated_input: Option<Value>,
    /// Text for the model.
    pub context: Option<String>,
    /// The reason why it gave no answer.
    pub error: Option<String>,
}

/// The answers of all hooks of one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookAnswers {
    /// The runs, in the order of the configuration.
    pub runs: Vec<HookRun>,
    /// The strictest decision.
    pub decision: Option<HookDecision>,
    /// The reasons of that decision.
    pub reason: String,
    /// Arguments that replace those of the call: of the first hook that gives some.
    pub updated_input: Option<Value>,
    /// Texts for the model.
    pub context: String,
}

impl HookAnswers {
    /// Adds the answer of the next hook.
    pub(super) fn add(&mut self, run: HookRun, answer: HookAnswer) {
        self.runs.push(run);
        if answer.decision > self.decision {
            self.decision = answer.decision;
            self.reason.clear();
        }
        let append = |text: &mut String, more: &str| {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(more);
        };
        if answer.decision.is_some() && answer.decision == self.decision {
            append(&mut self.reason, answer.reason.as_deref().unwrap_or_default());
        }
        if let Some(context) = answer.context.filter(|text| !text.trim().is_empty()) {
            append(&mut self.context, &context);
        }
        if self.updated_input.is_none() {
            self.updated_input = answer.updated_input;
        }
    }
}

impl HookAnswer {
    /// The answer of a hook that could not be run or did not end in time. If a hook in the daemon's own form should
    /// judge a call, the user decides then. Hooks of Claude Code do not block.
    pub(super) fn from_failure(event: HookEvent, form: HookForm, error: String) -> Self {
        let asks = event == HookEvent::PreToolUse && form == HookForm::Own;
        let reason = asks.then(|| format!("a hook failed: {error}"));
        Self {
            decision: asks.then_some(HookDecision::Ask),
            reason,
            error: Some(truncate_text(&error)),
            ..Self::default()
        }
    }

    /// The answer of a hook that ended.
    pub(super) fn parse(
        event: HookEvent,
        form: HookForm,
        exit_code: Option<i32>,
        stdout: &str,
        stderr: &str,
    ) -> Self {
        match exit_code {
            Some(0) => {}
            Some(DENY_EXIT_CODE) => {
                let reason = stderr.trim();
                let reason = if reason.is_empty() { "a hook denied it" } else { reason };
                return Self {
                    decision: Some(HookDecision::Deny),
                    reason: Some(truncate_text(reason)),
                    ..Self::default()
                };
            }
            Some(code) => {
                return Self::from_failure(
                    event,
                    form,
                    format!("it ended with exit code {code}: {}", stderr.trim()),
                );
            }
            None => return Self::from_failure(event, form, "it was killed by a signal".into()),
        }
        let text = stdout.trim();
        if text.is_empty() {
            return Self::default();
        }
        let value = match serde_json::from_str::<Value>(text) {
            Ok(value @ Value::Object(_)) => value,
            // Claude Code adds plain text of these two to the context.
            _ if form == HookForm::Claude => {
                let is_context = matches!(event, HookEvent::UserPromptSubmit | HookEvent::SessionStart);
                return Self { context: is_context.then(|| truncate_text(text)), ..Self::default() };
            }
            _ => return Self::from_failure(event, form, "its output is not a JSON object".into()),
        };
        match form {
            HookForm::Own => parse_own_output(event, &value),
            HookForm::Claude => parse_claude_output(event, &value),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(truncate_text)
}

fn parse_own_output(event: HookEvent, value: &Value) -> HookAnswer {
    let decision = match value["decision"].as_str() {
        None => None,
        Some("allow") => Some(HookDecision::Allow),
        Some("ask") => Some(HookDecision::Ask),
        Some("deny") => Some(HookDecision::Deny),
        Some(other) => {
            let error = format!("it decided {other:?}; a decision is allow, ask or deny");
            return HookAnswer::from_failure(event, HookForm::Own, error);
        }
    };
    HookAnswer {
        decision,
        reason: text(&value["reason"]),
        updated_input: value.get("updated_input").filter(|input| input.is_object()).cloned(),
        context: text(&value["context"]),
        error: None,
    }
}

fn parse_claude_output(event: HookEvent, value: &Value) -> HookAnswer {
    let specific = &value["hookSpecificOutput"];
    let named = specific["permissionDecision"].as_str().or_else(|| value["decision"].as_str());
    let mut decision = match named {
        Some("allow" | "approve") => Some(HookDecision::Allow),
        Some("ask") => Some(HookDecision::Ask),
        Some("deny" | "block") => Some(HookDecision::Deny),
        _ => None,
    };
    let reasons = [&specific["permissionDecisionReason"], &value["reason"], &value["stopReason"]];
    // `continue: false` stops the agent; after a turn that is no request to continue.
    if value["continue"] == false && !matches!(event, HookEvent::Stop | HookEvent::SubagentStop) {
        decision = Some(HookDecision::Deny);
    }
    HookAnswer {
        decision,
        reason: reasons.into_iter().find_map(text),
        updated_input: specific.get("updatedInput").filter(|input| input.is_object()).cloned(),
        context: text(&specific["additionalContext"]),
        error: None,
    }
}

fn truncate_text(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(event: HookEvent, form: HookForm, code: i32, stdout: &str) -> HookAnswer {
        HookAnswer::parse(event, form, Some(code), stdout, "why")
    }

    #[test]
    fn own_output_gives_decision_input_and_context() {
        let output = r#"{"decision": "deny", "reason": "no", "updated_input": {"a": 1}, "context": "c"}"#;
        let answer = parse(HookEvent::PreToolUse, HookForm::Own, 0, output);
        assert_eq!((answer.decision, answer.reason.as_deref()), (Some(HookDecision::Deny), Some("no")));
        assert_eq!((answer.updated_input, answer.context.as_deref()), (Some(json!({"a": 1})), Some("c")));
        assert_eq!(parse(HookEvent::Stop, HookForm::Own, 0, " \n"), HookAnswer::default());
    }

    #[test]
    fn exit_code_two_denies_and_failures_ask_for_own_hooks_only() {
        for form in [HookForm::Own, HookForm::Claude] {
            let denied = parse(HookEvent::PreToolUse, form, 2, "");
            assert_eq!((denied.decision, denied.reason.as_deref()), (Some(HookDecision::Deny), Some("why")));
        }
        for (code, output) in [(1, ""), (0, "no JSON"), (0, r#"{"decision": "perhaps"}"#)] {
            let own = parse(HookEvent::PreToolUse, HookForm::Own, code, output);
            assert_eq!(own.decision, Some(HookDecision::Ask), "{code} {output}");
            assert!(own.error.is_some());
        }
        let other = parse(HookEvent::PreToolUse, HookForm::Claude, 1, "");
        assert_eq!((other.decision, other.error.is_some()), (None, true));
    }

    #[test]
    fn claude_output_uses_its_own_field_names() {
        let output = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
            "permissionDecisionReason": "fine", "updatedInput": {"b": 2}}}"#;
        let answer = parse(HookEvent::PreToolUse, HookForm::Claude, 0, output);
        assert_eq!((answer.decision, answer.reason.as_deref()), (Some(HookDecision::Allow), Some("fine")));
        assert_eq!(answer.updated_input, Some(json!({"b": 2})));
        let blocked =
            parse(HookEvent::Stop, HookForm::Claude, 0, r#"{"decision": "block", "reason": "go on"}"#);
        assert_eq!(blocked.decision, Some(HookDecision::Deny));
        let context = parse(HookEvent::SessionStart, HookForm::Claude, 0, "plain text");
        assert_eq!(context.context.as_deref(), Some("plain text"));
    }

    #[test]
    fn strictest_decision_counts_with_its_reasons() {
        let run = HookRun {
            event: HookEvent::PreToolUse,
            command: "x".into(),
            decision: None,
            reason: None,
            duration_ms: 0,
            error: None,
        };
        let mut all = HookAnswers::default();
        for (decision, reason) in [("allow", "a"), ("deny", "b"), ("ask", "c"), ("deny", "d")] {
            let output = json!({"decision": decision, "reason": reason}).to_string();
            all.add(run.clone(), parse(HookEvent::PreToolUse, HookForm::Own, 0, &output));
        }
        assert_eq!((all.decision, all.reason.as_str()), (Some(HookDecision::Deny), "b\nd"));
    }
}
