//! The answer of a hook. Both forms are read alike, so that a decision counts in whichever form it is written.

use serde_json::{Map, Value};

use super::{HookForm, OnFailure};
use types::hook::{HookDecision, HookEvent};
use types::jsonc::plain_json;

/// Maximum characters of a reason, a context or an error.
const MAX_TEXT_CHARS: usize = 10_000;
/// The exit code that means "deny".
const DENY_EXIT_CODE: i32 = 2;
/// How many places of an output are tried as the beginning of an object.
const MAX_ATTEMPTS: usize = 200;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookAnswer {
    pub decision: Option<HookDecision>,
    /// Reason of the decision.
    pub reason: Option<String>,
    /// Arguments that replace those of the call.
    pub updated_input: Option<Value>,
    /// Text for the model.
    pub context: Option<String>,
    /// Text for the user.
    pub message: Option<String>,
    /// Why the turn should end.
    pub stops: Option<String>,
    /// The reason why it gave no answer.
    pub error: Option<String>,
    /// Whether the answer could not be read, and not only failed to come.
    pub is_unreadable: bool,
}

impl HookAnswer {
    /// The answer of a hook that could not be run, died or did not end in time.
    pub(super) fn from_failure(event: HookEvent, on_failure: OnFailure, error: &str) -> Self {
        let asks = event == HookEvent::PreToolUse && on_failure == OnFailure::Ask;
        Self { is_unreadable: false, ..Self::from_error(asks, error) }
    }

    /// The answer of a hook whose output cannot be read. If the hook should judge a call, the user decides then.
    pub(super) fn from_unreadable(event: HookEvent, error: &str) -> Self {
        Self::from_error(event == HookEvent::PreToolUse, error)
    }

    fn from_error(asks: bool, error: &str) -> Self {
        Self {
            decision: asks.then_some(HookDecision::Ask),
            reason: asks.then(|| truncate_text(&format!("a hook failed: {error}"))),
            error: Some(truncate_text(error)),
            is_unreadable: asks,
            ..Self::default()
        }
    }

    /// The answer of a hook that ended. `exit_code` is absent if a signal ended it.
    pub(super) fn parse(
        (event, form, on_failure): (HookEvent, HookForm, OnFailure),
        exit_code: Option<i32>,
        stdout: &str,
        stderr: &str,
    ) -> Self {
        let failed = |what: &str| match stderr.trim() {
            "" => what.to_owned(),
            text => format!("{what}: {text}"),
        };
        match exit_code {
            Some(0) => parse_output(event, form, stdout),
            Some(DENY_EXIT_CODE) => {
                let written = parse_output(event, form, stdout);
                let reason = Some(stderr.trim()).filter(|text| !text.is_empty()).map(truncate_text);
                let reason = reason.or(written.reason.filter(|_| written.error.is_none()));
                Self {
                    decision: Some(HookDecision::Deny),
                    reason: Some(reason.unwrap_or_else(|| "a hook denied it".into())),
                    message: written.message,
                    stops: written.stops,
                    ..Self::default()
                }
            }
            None => Self::from_failure(event, on_failure, &failed("it was killed by a signal")),
            Some(code @ (126 | 127)) => Self::from_failure(
                event,
                on_failure,
                &failed(&format!("it could not run (exit code {code})")),
            ),
            // A shell reports the signal of its last command in its own exit code.
            Some(code @ 129..160) => {
                let what = format!("it was killed by the signal {} (exit code {code})", code - 128);
                Self::from_failure(event, on_failure, &failed(&what))
            }
            Some(code) => {
                let error = failed(&format!("it ended with exit code {code}"));
                Self::from_error(event == HookEvent::PreToolUse && form == HookForm::Own, &error)
            }
        }
    }
}

/// The answer on standard output.
fn parse_output(event: HookEvent, form: HookForm, stdout: &str) -> HookAnswer {
    let text = stdout.trim();
    if text.is_empty() {
        return HookAnswer::default();
    }
    let mut found = find_objects(text);
    if found.objects.is_empty() {
        // Perhaps it has comments or a comma too many.
        found = find_objects(&plain_json(text));
    }
    let mut reading = Reading::default();
    found.objects.iter().for_each(|object| reading.add_object(object));
    if reading.problem.is_none() && found.is_doubtful && reading.decision <= Some(HookDecision::Allow) {
        reading.problem = Some("its output has a decision that is not valid JSON".into());
    }
    if let Some(problem) = reading.problem.take()
        && event == HookEvent::PreToolUse
        && reading.decision < Some(HookDecision::Deny)
    {
        return HookAnswer { message: reading.message, ..HookAnswer::from_unreadable(event, &problem) };
    }
    if found.objects.is_empty() {
        // Claude Code adds plain text of these two to the context.
        let is_context = matches!(event, HookEvent::UserPromptSubmit | HookEvent::SessionStart);
        return match form {
            HookForm::Claude => {
                HookAnswer { context: is_context.then(|| truncate_text(text)), ..HookAnswer::default() }
            }
            HookForm::Own => HookAnswer::from_unreadable(event, "its output is not a JSON object"),
        };
    }
    reading.into_answer(event)
}

/// The objects in an output, which may have other lines before and after them.
#[derive(Default)]
struct FoundObjects {
    objects: Vec<Map<String, Value>>,
    /// Whether the rest may be a decision too.
    is_doubtful: bool,
}

fn find_objects(text: &str) -> FoundObjects {
    let mut found = FoundObjects::default();
    let (mut rest, mut other) = (text, String::new());
    for _ in 0..MAX_ATTEMPTS {
        let Some(start) = rest.find('{') else { break };
        let (before, from_here) = rest.split_at(start);
        other.push_str(before);
        let mut stream = serde_json::Deserializer::from_str(from_here).into_iter::<Value>();
        if let Some(Ok(Value::Object(object))) = stream.next() {
            found.objects.push(object);
            rest = &from_here[stream.byte_offset()..];
        } else {
            // A line that begins with a brace was meant as an object.
            found.is_doubtful |=
                other.trim_end_matches([' ', '\t']).ends_with('\n') || other.trim().is_empty();
            other.push('{');
            rest = &from_here[1..];
        }
    }
    other.push_str(rest);
    let letters = letters(&other);
    found.is_doubtful |= letters.contains("permissiondecision")
        || ["\"decision\"", "'decision'"].iter().any(|word| other.to_ascii_lowercase().contains(word));
    found
}

/// The letters of a name, so that `permission_decision` and `PermissionDecision` are one.
fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// What the objects of an output say together.
#[derive(Default)]
struct Reading {
    decision: Option<HookDecision>,
    reason: Option<String>,
    updated_input: Option<Value>,
    context: Option<String>,
    message: Option<String>,
    stops: bool,
    stop_reason: Option<String>,
    /// A part that may be a decision and is not understood.
    problem: Option<String>,
}

impl Reading {
    fn add_object(&mut self, object: &Map<String, Value>) {
        for (name, value) in object {
            if value.is_null() {
                continue;
            }
            match letters(name).as_str() {
                "hookspecificoutput" => match value {
                    Value::Object(inner) => self.add_object(inner),
                    _ => self.problem = Some(format!("{name} is not an object")),
                },
                "decision" | "permissiondecision" => self.add_decision(name, value),
                "permissiondecisionreason" | "reason" => set_text(&mut self.reason, value),
                "stopreason" => set_text(&mut self.stop_reason, value),
                "systemmessage" => set_text(&mut self.message, value),
                "additionalcontext" | "context" => set_text(&mut self.context, value),
                "updatedinput" => match value {
                    Value::Object(_) => self.updated_input = Some(value.clone()),
                    _ => self.problem = Some(format!("{name} is not an object")),
                },
                "continue" => match value {
                    Value::Bool(continues) => self.stops |= !continues,
                    Value::String(text) if text.trim().eq_ignore_ascii_case("false") => self.stops = true,
                    Value::String(text) if text.trim().eq_ignore_ascii_case("true") => {}
                    _ => self.problem = Some(format!("{name} is not true or false")),
                },
                _ => {}
            }
        }
    }

    fn add_decision(&mut self, name: &str, value: &Value) {
        let word = value.as_str().map(|text| text.trim().to_ascii_lowercase());
        let decision = match word.as_deref() {
            Some("allow" | "approve") => HookDecision::Allow,
            Some("ask") => HookDecision::Ask,
            Some("deny" | "block") => HookDecision::Deny,
            _ => {
                self.problem = Some(format!("{name} is {value}; a decision is allow, ask or deny"));
                return;
            }
        };
        self.decision = self.decision.max(Some(decision));
    }

    fn into_answer(self, event: HookEvent) -> HookAnswer {
        let Self { mut decision, mut reason, stops, stop_reason, .. } = self;
        let mut ends = None;
        if stops {
            let why =
                stop_reason.or_else(|| reason.clone()).unwrap_or_else(|| "a hook stopped the session".into());
            // At the end of a turn nothing is left to stop. A hook that stops does not make the session continue.
            if matches!(event, HookEvent::Stop | HookEvent::SubagentStop) {
                decision = None;
            } else {
                decision = Some(HookDecision::Deny);
                reason = reason.or_else(|| Some(why.clone()));
                ends = Some(why);
            }
        }
        HookAnswer {
            decision,
            reason,
            updated_input: self.updated_input,
            context: self.context,
            message: self.message,
            stops: ends,
            // For a call, the caller has handled it.
            error: self.problem,
            is_unreadable: false,
        }
    }
}

fn set_text(text: &mut Option<String>, value: &Value) {
    if let Some(new) = value.as_str().filter(|text| !text.is_empty()) {
        let new = truncate_text(new);
        *text = Some(match text.take() {
            Some(text) if text != new => truncate_text(&format!("{text}\n{new}")),
            _ => new,
        });
    }
}

fn truncate_text(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use types::hook::HookEvent::{PreToolUse, SessionStart, Stop, UserPromptSubmit};

    fn parse(event: HookEvent, form: HookForm, code: i32, stdout: &str) -> HookAnswer {
        HookAnswer::parse((event, form, OnFailure::Ask), Some(code), stdout, "why")
    }

    #[test]
    fn own_output_gives_decision_input_and_context() {
        let output = r#"{"decision": "deny", "reason": "no", "updated_input": {"a": 1}, "context": "c"}"#;
        let answer = parse(PreToolUse, HookForm::Own, 0, output);
        assert_eq!((answer.decision, answer.reason.as_deref()), (Some(HookDecision::Deny), Some("no")));
        assert_eq!((answer.updated_input, answer.context.as_deref()), (Some(json!({"a": 1})), Some("c")));
        assert_eq!(parse(Stop, HookForm::Own, 0, " \n"), HookAnswer::default());
    }

    #[test]
    fn decisions_are_read_in_every_usual_writing() {
        for (output, expected) in [
            (r#"{"decision": "DENY"}"#, HookDecision::Deny),
            (r#"{"decision": " Block "}"#, HookDecision::Deny),
            (r#"{"decision": "Approve"}"#, HookDecision::Allow),
            (r#"{"permissionDecision": "deny"}"#, HookDecision::Deny),
            (r#"{"permission_decision": "Ask"}"#, HookDecision::Ask),
            (r#"{"hookSpecificOutput": {"permissionDecision": "DENY"}}"#, HookDecision::Deny),
            (r#"{"hookSpecificOutput": {"decision": "deny"}}"#, HookDecision::Deny),
            (
                r#"{"decision": "approve", "hookSpecificOutput": {"permissionDecision": "deny"}}"#,
                HookDecision::Deny,
            ),
            ("loaded profile\n{\"decision\": \"deny\"}", HookDecision::Deny),
            ("Now using node v20 {\"decision\": \"deny\"}", HookDecision::Deny),
            ("{\"level\": \"info\"}\n{\"permissionDecision\": \"deny\"}\nbye", HookDecision::Deny),
            ("{\n  \"decision\": \"deny\", // never\n}", HookDecision::Deny),
            ("{\"decision\": \"allow\"}\n{\"decision\": \"deny\"}", HookDecision::Deny),
            (r#"{"continue": false, "stopReason": "enough"}"#, HookDecision::Deny),
            // These contain a decision that cannot be read.
            (r#"{"decision": "refuse"}"#, HookDecision::Ask),
            (r#"{"permissionDecision": true}"#, HookDecision::Ask),
            (r#"{"hookSpecificOutput": {"permissionDecision": "defer"}}"#, HookDecision::Ask),
            (r#"{"decision": {"behavior": "deny"}}"#, HookDecision::Ask),
            (r#"{"decision": ""}"#, HookDecision::Ask),
            (r#"{"hookSpecificOutput": "deny"}"#, HookDecision::Ask),
            (r#"{"decision": "deny""#, HookDecision::Ask),
            ("{'decision': 'deny'}", HookDecision::Ask),
            ("{\"decision\": \"allow\"}\n{\"decision\": deny}", HookDecision::Ask),
            (r#"{"continue": "maybe"}"#, HookDecision::Ask),
            (r#"{"decision": "allow", "updatedInput": "rm"}"#, HookDecision::Ask),
        ] {
            for form in [HookForm::Claude, HookForm::Own] {
                let answer = parse(PreToolUse, form, 0, output);
                assert_eq!(answer.decision, Some(expected), "{form:?} {output}: {answer:?}");
            }
        }
        for output in ["checked", "{\"suppressOutput\": true}", "{}", "ok {x}", "{\"decision\": null}"] {
            let answer = parse(PreToolUse, HookForm::Claude, 0, output);
            assert_eq!((answer.decision, answer.error), (None, None), "{output}");
        }
        assert_eq!(parse(PreToolUse, HookForm::Own, 0, "checked").decision, Some(HookDecision::Ask));
    }

    #[test]
    fn exit_codes_deny_fail_or_are_shown() {
        for form in [HookForm::Own, HookForm::Claude] {
            let denied = parse(PreToolUse, form, 2, "");
            assert_eq!((denied.decision, denied.reason.as_deref()), (Some(HookDecision::Deny), Some("why")));
            for code in [Some(126), Some(127), Some(137), Some(139), None] {
                for (on_failure, expected) in
                    [(OnFailure::Ask, Some(HookDecision::Ask)), (OnFailure::Allow, None)]
                {
                    let failed = HookAnswer::parse((PreToolUse, form, on_failure), code, "", "x");
                    assert_eq!(
                        (failed.decision, failed.error.is_some()),
                        (expected, true),
                        "{form:?} {code:?}"
                    );
                }
            }
            let stopped = parse(Stop, form, 127, "");
            assert_eq!((stopped.decision, stopped.error.is_some()), (None, true));
        }
        for code in [1, 3, 125, 255] {
            let own = parse(PreToolUse, HookForm::Own, code, "");
            let other = parse(PreToolUse, HookForm::Claude, code, "");
            assert_eq!((own.decision, own.error.is_some()), (Some(HookDecision::Ask), true));
            assert_eq!((other.decision, other.error.is_some()), (None, true));
        }
    }

    #[test]
    fn claude_output_uses_its_own_field_names() {
        let output = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
            "permissionDecisionReason": "fine", "updatedInput": {"b": 2}, "additionalContext": "more"},
            "systemMessage": "look", "suppressOutput": true}"#;
        let answer = parse(PreToolUse, HookForm::Claude, 0, output);
        assert_eq!((answer.decision, answer.reason.as_deref()), (Some(HookDecision::Allow), Some("fine")));
        assert_eq!(answer.updated_input, Some(json!({"b": 2})));
        assert_eq!((answer.context.as_deref(), answer.message.as_deref()), (Some("more"), Some("look")));
        let blocked = parse(Stop, HookForm::Claude, 0, r#"{"decision": "block", "reason": "go on"}"#);
        assert_eq!(blocked.decision, Some(HookDecision::Deny));
        let stopped = parse(Stop, HookForm::Claude, 0, r#"{"decision": "block", "continue": false}"#);
        assert_eq!((stopped.decision, stopped.stops), (None, None));
        let ended = parse(PreToolUse, HookForm::Claude, 0, r#"{"continue": false, "stopReason": "enough"}"#);
        assert_eq!((ended.stops.as_deref(), ended.reason.as_deref()), (Some("enough"), Some("enough")));
        for event in [SessionStart, UserPromptSubmit] {
            let context = parse(event, HookForm::Claude, 0, "plain text");
            assert_eq!(context.context.as_deref(), Some("plain text"));
        }
    }
}
