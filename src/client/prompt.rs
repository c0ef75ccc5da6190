//! A permission request as it is put to a person: the exact bytes of what would happen (S28), why
//! it is asked, and the keys.

use serde_json::Value;

use super::escape;
use super::paint::{Line, Tone};
use super::summary;
use crate::api::params::ApproveParams;
use crate::types::permission::{Decision, Scope};
use crate::types::session::PermissionRequest;
use crate::types::tool::Subject;

/// What one key answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This call.
    Once,
    /// Calls like this one, as long as the session lives.
    Session,
    /// Calls like this one in this folder, until that is taken back.
    Project,
    /// This call with other arguments.
    Edit,
    /// No.
    Deny,
    /// No, with words for the model.
    Feedback,
    /// Stop the turn.
    Abort,
}

impl Answer {
    /// The answer behind a key.
    #[must_use]
    pub fn of_key(key: char) -> Option<Self> {
        match key.to_ascii_lowercase() {
            'y' => Some(Answer::Once),
            's' => Some(Answer::Session),
            'p' => Some(Answer::Project),
            'e' => Some(Answer::Edit),
            'n' => Some(Answer::Deny),
            'f' => Some(Answer::Feedback),
            'a' => Some(Answer::Abort),
            _ => None,
        }
    }
}

/// The parameters of `session.approve` for an answer.
#[must_use]
pub fn approval(
    request: &PermissionRequest,
    decision: Decision,
    scope: Scope,
    feedback: Option<String>,
) -> ApproveParams {
    let lasts = decision == Decision::Allow && scope != Scope::Once;
    let grant = lasts.then(|| request.suggestions.first().cloned()).flatten();
    ApproveParams {
        request_id: Some(request.request_id),
        decision: Some(decision),
        scope,
        grant,
        feedback,
        // What was on the screen is what is answered.
        digest: Some(request.digest.clone()).filter(|digest| !digest.is_empty()),
        ..ApproveParams::default()
    }
}

/// The arguments as a person changes them.
#[must_use]
pub fn editable(request: &PermissionRequest) -> String {
    serde_json::to_string_pretty(&request.input).unwrap_or_default()
}

/// The parameters of `session.approve` for changed arguments; or what is wrong with them.
pub fn edited(request: &PermissionRequest, text: &str) -> Result<ApproveParams, String> {
    let input: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    if !input.is_object() {
        return Err("expected a JSON object".into());
    }
    let updated_input = (input != request.input).then_some(input);
    Ok(ApproveParams { updated_input, ..approval(request, Decision::Allow, Scope::Once, None) })
}

/// The question, without its keys.
#[must_use]
pub fn question(request: &PermissionRequest) -> Vec<Line> {
    let mut shown = vec![
        Line::new(Tone::Warn, "▌ May ")
            .and(Tone::Bold, escape::line(&request.tool))
            .and(Tone::Warn, " do this? ")
            .and(Tone::Dim, escape::line(&request.reason)),
    ];
    let input = request.input.as_object();
    let told_by_diff = request.diff.is_some();
    let fields = input.into_iter().flatten().filter(|(name, _)| !hidden(name, told_by_diff));
    for (name, value) in fields {
        shown.extend(field(name, value));
    }
    if input.is_none() {
        shown.extend(field("input", &request.input));
    }
    if let (Subject::Bash { .. }, false) = (&request.subject, request.cwd.is_empty()) {
        shown.extend(field("in", &Value::from(request.cwd.as_str())));
    }
    if let Some(diff) = &request.diff {
        shown.extend(summary::diff(diff));
    }
    shown
}

/// The keys, in one line.
#[must_use]
pub fn keys(request: &PermissionRequest) -> Line {
    let mut line = Line::new(Tone::Bold, "▌ y").and(Tone::Plain, " once");
    if let Some(grant) = request.suggestions.first() {
        line = line
            .and(Tone::Bold, "  s")
            .and(Tone::Plain, " for the session")
            .and(Tone::Bold, "  p")
            .and(Tone::Plain, " in this folder: ")
            .and(Tone::Tool, summary::one_line(grant, 60));
    }
    for (key, word) in
        [("  n", " no"), ("  f", " no, because…"), ("  e", " edit"), ("  a", " abort the turn")]
    {
        line = line.and(Tone::Bold, key).and(Tone::Plain, word);
    }
    line
}

/// What the diff says better; and the model's own words about its call, which prove nothing.
fn hidden(name: &str, told_by_diff: bool) -> bool {
    name == "description"
        || told_by_diff
            && matches!(
                name,
                "old_string"
                    | "new_string"
                    | "content"
                    | "file_text"
                    | "edits"
                    | "new_source"
                    | "input"
                    | "patch"
            )
}

fn field(name: &str, value: &Value) -> Vec<Line> {
    let label = if name == "command" { "$".to_string() } else { format!("{}:", escape::line(name)) };
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let indent = " ".repeat(label.chars().count());
    escape::exact(&text)
        .into_iter()
        .enumerate()
        .map(|(n, line)| {
            let lead = if n == 0 { &label } else { &indent };
            Line::new(Tone::Dim, format!("    {lead} ")).and(Tone::Plain, line)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(tool: &str, input: Value, diff: Option<&str>) -> PermissionRequest {
        serde_json::from_value(json!({
            "request_id": "perm_0190f2a4-0000-7000-8000-000000000004",
            "call_id": "call_0190f2a4-0000-7000-8000-000000000003",
            "tool": tool, "input": input, "summary": "s", "subject": {"kind": "tool", "name": tool},
            "reason": "no rule allows it", "diff": diff, "suggestions": ["Bash(sh test.sh)", "Bash(sh:*)"]}))
        .expect("a request")
    }

    fn check(request: &PermissionRequest, expected: &[&str]) {
        assert_eq!(question(request).iter().map(Line::plain).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_command_is_shown_to_the_byte() {
        check(
            &request(
                "Bash",
                json!({"command": "ls \u{202e}x\trm\r \nsh", "timeout_ms": 5, "description": "harmless"}),
                None,
            ),
            &[
                "▌ May Bash do this? no rule allows it",
                "    $ ls ⟦U+202E⟧x⟦TAB⟧rm⟦CR⟧⟦SP⟧",
                "      sh",
                "    timeout_ms: 5",
            ],
        );
    }

    #[test]
    fn an_edit_is_shown_as_its_diff() {
        check(
            &request(
                "Edit",
                json!({"file_path": "a.sh", "old_string": "x", "new_string": "y "}),
                Some("@@ -1 +1 @@\n-x\n+y \n"),
            ),
            &[
                "▌ May Edit do this? no rule allows it",
                "    file_path: a.sh",
                "    @@ -1 +1 @@",
                "    -x",
                "    +y⟦SP⟧",
            ],
        );
    }

    #[test]
    fn without_a_diff_nothing_of_the_input_is_left_out() {
        check(
            &request("Edit", json!({"file_path": "a", "old_string": "x", "new_string": "y"}), None),
            &[
                "▌ May Edit do this? no rule allows it",
                "    file_path: a",
                "    new_string: y",
                "    old_string: x",
            ],
        );
    }

    #[test]
    fn the_grant_is_named_before_it_is_given() {
        let request = request("Bash", json!({"command": "sh test.sh"}), None);
        let keys = keys(&request).plain();
        assert!(keys.contains("s for the session  p in this folder: Bash(sh test.sh)"), "{keys}");
        let params = approval(&request, Decision::Allow, Scope::Session, None);
        assert_eq!(params.grant.as_deref(), Some("Bash(sh test.sh)"));
        assert_eq!(approval(&request, Decision::Allow, Scope::Once, None).grant, None);
    }

    #[test]
    fn an_answer_is_bound_to_what_was_shown() {
        let mut request = request("Bash", json!({"command": "sh test.sh"}), None);
        assert_eq!(approval(&request, Decision::Allow, Scope::Once, None).digest, None);
        request.digest = "ab".into();
        assert_eq!(approval(&request, Decision::Allow, Scope::Once, None).digest.as_deref(), Some("ab"));
    }

    #[test]
    fn changed_arguments_are_sent_and_mistakes_are_told() {
        let request = request("Bash", json!({"command": "sh test.sh"}), None);
        let same = edited(&request, &editable(&request)).expect("JSON");
        assert_eq!((same.decision, same.updated_input), (Some(Decision::Allow), None));
        let other = edited(&request, "{\"command\": \"sh -n test.sh\"}").expect("JSON");
        assert_eq!(other.updated_input, Some(json!({"command": "sh -n test.sh"})));
        assert!(edited(&request, "{").is_err_and(|why| why.contains("JSON")));
        assert!(edited(&request, "[]").is_err_and(|why| why.contains("object")));
    }

    #[test]
    fn keys_are_read_in_either_case() {
        assert_eq!(Answer::of_key('Y'), Some(Answer::Once));
        assert_eq!(Answer::of_key('f'), Some(Answer::Feedback));
        assert_eq!(Answer::of_key('\r'), None);
    }
}
