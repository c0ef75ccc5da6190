//! A permission request as shown to the user: the exact bytes of what would happen, the reason, and the
//! keys.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::api::params::ApproveParams;
use crate::client::terminal::escape;
use crate::client::terminal::style::{Line, Tone};
use crate::client::ui::diff::Diff;
use crate::client::ui::summary;
use crate::types::permission::{Decision, Mode, RequestKind, Scope};
use crate::types::session::PermissionRequest;
use crate::types::tool::{ProposedPlan, Subject};

/// The answers of single keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Allow this call.
    Once,
    /// Allow calls like this one for the rest of the session.
    Session,
    /// Allow calls like this one in this folder, until the grant is removed.
    Project,
    /// Approve a plan, and accept edits while it is carried out.
    AcceptEdits,
    /// Allow this call with other arguments.
    Edit,
    /// Deny the call.
    Deny,
    /// Deny the call, with feedback for the model.
    Feedback,
    /// Abort the turn.
    Abort,
}

impl Answer {
    /// The answer of a key.
    #[must_use]
    pub fn of_key(key: char) -> Option<Self> {
        match key.to_ascii_lowercase() {
            'y' => Some(Answer::Once),
            '1' => Some(Answer::Once),
            '2' => Some(Answer::Session),
            '3' => Some(Answer::Project),
            'e' => Some(Answer::Edit),
            'n' | '4' => Some(Answer::Deny),
            'f' => Some(Answer::Feedback),
            'a' => Some(Answer::Abort),
            _ => None,
        }
    }
}

/// The answer of a key, if this request accepts it. An unsandboxed retry must keep its command
/// unchanged, and its grant lasts at most for the session.
#[must_use]
pub fn answer_of(request: &PermissionRequest, key: char) -> Option<Answer> {
    if request.kind == RequestKind::Plan {
        return match key.to_ascii_lowercase() {
            '2' => Some(Answer::AcceptEdits),
            '3' => None,
            key => Answer::of_key(key),
        };
    }
    let leaves = request.kind == RequestKind::Sandbox;
    Answer::of_key(key).filter(|answer| match answer {
        Answer::Project | Answer::Edit => !leaves,
        Answer::Session => !leaves || !request.suggestions.is_empty(),
        Answer::AcceptEdits => false,
        Answer::Once | Answer::Deny | Answer::Feedback | Answer::Abort => true,
    })
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
        // The answer applies to exactly the request that was on the screen.
        digest: Some(request.digest.clone()).filter(|digest| !digest.is_empty()),
        ..ApproveParams::default()
    }
}

/// The parameters of `session.approve` for a plan whose edits are accepted.
#[must_use]
pub fn approval_with_edits(request: &PermissionRequest) -> ApproveParams {
    let mode = Some(Mode::AcceptEdits);
    ApproveParams { mode, ..approval(request, Decision::Allow, Scope::Once, None) }
}

/// The arguments as text for editing.
#[must_use]
pub fn editable(request: &PermissionRequest) -> String {
    serde_json::to_string_pretty(&request.input).unwrap_or_default()
}

/// The parameters of `session.approve` for edited arguments, or the error in them.
pub fn edited(request: &PermissionRequest, text: &str) -> Result<ApproveParams, String> {
    let input: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    if !input.is_object() {
        return Err("expected a JSON object".into());
    }
    let updated_input = (input != request.input).then_some(input);
    Ok(ApproveParams { updated_input, ..approval(request, Decision::Allow, Scope::Once, None) })
}

/// The request, without its keys.
#[must_use]
pub fn question(request: &PermissionRequest) -> Vec<Line> {
    if request.kind == RequestKind::Plan {
        let text = escape::exact(ProposedPlan::text(&request.input));
        let head = Line::new(Tone::Warn, "▌ The model proposes this plan:");
        let lines = text.into_iter().map(|line| Line::new(Tone::Dim, "    ").and(Tone::Plain, line));
        return std::iter::once(head).chain(lines).collect();
    }
    let leaves = request.kind == RequestKind::Sandbox;
    let mut shown = match leaves {
        false => vec![
            Line::new(Tone::Warn, "▌ May ")
                .and(Tone::Bold, escape::line(&request.tool))
                .and(Tone::Warn, " do this? ")
                .and(Tone::Dim, escape::line(&request.reason)),
        ],
        true => vec![
            Line::new(Tone::Bad, "▌ May ")
                .and(Tone::Bold, escape::line(&request.tool))
                .and(Tone::Bad, " do this AGAIN, OUTSIDE THE SANDBOX?"),
            Line::new(Tone::Dim, format!("    {}", escape::line(&request.reason))),
        ],
    };
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
    for path in elsewhere(request) {
        shown.extend(field("really", &Value::from(path)));
    }
    if let Some(what) = request.blocked.as_ref().and_then(|blocked| blocked.what.as_deref()) {
        shown.extend(field("stopped at", &Value::from(what)));
    }
    if let Some(diff) = &request.diff {
        let diff = Diff::parse(diff);
        // The name of the file stands in the arguments, unless it is another file.
        let is_named = diff.file().is_some_and(|file| names_file(request, file));
        shown.extend(diff.lines(!is_named).into_iter().map(|line| line.after(Tone::Plain, "    ")));
    }
    shown
}

/// Whether an argument names this file.
fn names_file(request: &PermissionRequest, file: &str) -> bool {
    let name = |name: &str| request.input.get(name).and_then(Value::as_str);
    let named = ["file_path", "notebook_path", "path"].into_iter().filter_map(name);
    let file = spelled_out(&request.cwd, file);
    named.into_iter().any(|named| spelled_out(&request.cwd, named) == file)
}

/// The files that the call would really access, if they differ from the arguments: targets of links,
/// and hard links that match a rule.
fn elsewhere(request: &PermissionRequest) -> Vec<String> {
    let parts = match &request.subject {
        Subject::Several { parts } => parts.as_slice(),
        subject => std::slice::from_ref(subject),
    };
    // The part of a pattern before its first wildcard names a folder.
    let folder = |pattern: &str| {
        let plain = pattern.find(['*', '?', '[', '{']).map_or(pattern, |at| &pattern[..at]);
        plain.rfind('/').map_or(String::new(), |end| plain[..=end].to_owned())
    };
    let name = |name: &str| request.input.get(name).and_then(Value::as_str);
    let names = ["file_path", "path", "notebook_path"].into_iter().filter_map(name).map(str::to_owned);
    let pattern = (request.tool == "Glob").then(|| name("pattern")).flatten().map(folder);
    let named: Vec<PathBuf> = names
        .chain(pattern)
        .filter(|text| text.len() <= LONGEST_PATH)
        .map(|text| spelled_out(&request.cwd, &text))
        .collect();
    let mut found = Vec::new();
    for part in parts {
        let (Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path }) = part else {
            continue;
        };
        let is_named = named.contains(&path.path) || named.is_empty() && path.path == Path::new(&request.cwd);
        // A diff names the file itself.
        let own = (!is_named && request.diff.is_none()).then_some(&path.path);
        found.extend(own.into_iter().chain(&path.matched_aliases).map(|path| path.display().to_string()));
    }
    found.truncate(MOST_ELSEWHERE);
    found
}

/// PATH_MAX of Linux.
const LONGEST_PATH: usize = 4_096;
/// Maximum number of listed files; the call may contain more.
const MOST_ELSEWHERE: usize = 20;

/// A path of the arguments without resolving links.
fn spelled_out(cwd: &str, text: &str) -> PathBuf {
    let mut path = PathBuf::from(cwd);
    for part in Path::new(text).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// The request in rows of at most `columns`. Continuation rows are indented. So only the daemon's own
/// text begins at the start of a row, whatever a command contains.
#[must_use]
pub fn rows(request: &PermissionRequest, columns: usize) -> Vec<Line> {
    let inward = if columns > 4 * INWARD.len() { INWARD } else { "" };
    let mut shown = Vec::new();
    for line in question(request) {
        let mut rows = line.wrap(columns);
        if rows.len() > 1 {
            rows = line.wrap(columns - inward.len());
            for row in rows.iter_mut().skip(1) {
                row.0.insert(0, (Tone::Dim, inward.into()));
            }
        }
        shown.extend(rows);
    }
    shown
}

/// Indentation of continuation rows.
const INWARD: &str = "      ";

/// The keys, in one line. The numbers are those of the list in `attach`.
#[must_use]
pub fn keys(request: &PermissionRequest) -> Line {
    let grant = request.suggestions.first();
    let mut line = Line::new(Tone::Bold, "▌ 1");
    let (once, further): (&str, Vec<(&str, &str)>) = match request.kind {
        RequestKind::Plan => (" yes, carry it out", vec![("  2", " yes, and accept edits")]),
        RequestKind::Sandbox => (
            " once outside",
            grant.map(|_| ("  2", " outside for the session, this command only")).into_iter().collect(),
        ),
        RequestKind::Tool => (
            " once",
            grant
                .map(|_| [("  2", " for the session"), ("  3", " in this folder: ")])
                .into_iter()
                .flatten()
                .collect(),
        ),
    };
    line = line.and(Tone::Plain, once);
    for (key, word) in further {
        line = line.and(Tone::Bold, key).and(Tone::Plain, word);
    }
    if let (Some(grant), RequestKind::Tool) = (grant, request.kind) {
        line = line.and(Tone::Tool, summary::one_line(grant, 60));
    }
    line = line.and(Tone::Bold, "  4").and(Tone::Plain, " no");
    line = line.and(Tone::Bold, "  f").and(Tone::Plain, " no, because…");
    if request.kind == RequestKind::Tool {
        line = line.and(Tone::Bold, "  e").and(Tone::Plain, " edit");
    }
    line.and(Tone::Bold, "  a").and(Tone::Plain, " stop the turn")
}

/// The line shown instead of the keys while an answer needs confirmation; `None` if it needs none.
#[must_use]
pub fn confirmation(request: &PermissionRequest, answer: Answer) -> Option<Line> {
    let grant = || request.suggestions.first().map(|grant| summary::one_line(grant, 60)).unwrap_or_default();
    let (what, grant) = match answer {
        Answer::Session => ("▌ allow for the session: ", grant()),
        Answer::Project => ("▌ allow in this folder until it is taken back: ", grant()),
        Answer::Abort => ("▌ abort the turn", String::new()),
        Answer::Once | Answer::AcceptEdits | Answer::Edit | Answer::Deny | Answer::Feedback => return None,
    };
    Some(confirm(Line::new(Tone::Warn, what).and(Tone::Tool, grant)))
}

/// The same line with the keys that confirm.
pub(in crate::client) fn confirm(line: Line) -> Line {
    line.and(Tone::Bold, "  Enter")
        .and(Tone::Plain, " confirms")
        .and(Tone::Bold, "  Esc")
        .and(Tone::Plain, " goes back")
}

/// Arguments that the diff shows better, and the model's own description of its call, which proves
/// nothing.
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
    use crate::client::ui::prompt::*;
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
    fn command_in_request_is_shown_exactly() {
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
    fn request_shows_resolved_symlink_target() {
        let of = |named: &str, path: &str, matched_aliases: &[&str]| {
            let path = json!({"path": path, "in_workspace": true, "sensitivity": "secret", "matched_aliases": matched_aliases});
            let subject = json!({"kind": "read", "path": path});
            let asked = request("Read", json!({"file_path": named}), None);
            PermissionRequest {
                subject: serde_json::from_value(subject).expect("a subject"),
                cwd: "/w/proj".into(),
                ..asked
            }
        };
        let named = |path: &str| format!("    file_path: {path}");
        let asks = "▌ May Read do this? no rule allows it";
        check(&of("a.md", "/w/proj/a.md", &[]), &[asks, &named("a.md")]);
        check(&of("x/../a.md", "/w/proj/a.md", &[]), &[asks, &named("x/../a.md")]);
        check(&of("/w/proj/a.md", "/w/proj/a.md", &[]), &[asks, &named("/w/proj/a.md")]);
        check(&of("a.md", "/h/.ssh/key\u{1b}", &[]), &[asks, &named("a.md"), "    really: /h/.ssh/key⟦ESC⟧"]);
        check(&of("rt", "/", &[]), &[asks, &named("rt"), "    really: /"]);
        let mut decoy = of("a.md", "/out/x", &[]);
        decoy.input["note"] = json!("/out/x");
        let note = "    note: /out/x";
        check(&decoy, &[asks, &named("a.md"), note, "    really: /out/x"]);
        let asked = of("a.md", "/w/proj/a.md", &["/w/proj/b.txt"]);
        let really = "    really: /w/proj/b.txt";
        check(&asked, &[asks, &named("a.md"), really]);
        let asked = PermissionRequest { diff: Some("+x\n".into()), ..asked };
        check(&asked, &[asks, &named("a.md"), really, "        +x"]);
    }

    #[test]
    fn edit_request_is_shown_as_diff() {
        check(
            &request(
                "Edit",
                json!({"file_path": "a.sh", "old_string": "x", "new_string": "y "}),
                Some("@@ -1 +1 @@\n-x\n+y \n"),
            ),
            &["▌ May Edit do this? no rule allows it", "    file_path: a.sh", "      1 -x", "      1 +y⟦SP⟧"],
        );
    }

    #[test]
    fn request_without_diff_shows_complete_input() {
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
    fn suggested_grant_is_named_before_answer() {
        let request = request("Bash", json!({"command": "sh test.sh"}), None);
        let keys = keys(&request).plain();
        assert!(keys.contains("2 for the session  3 in this folder: Bash(sh test.sh)"), "{keys}");
        let params = approval(&request, Decision::Allow, Scope::Session, None);
        assert_eq!(params.grant.as_deref(), Some("Bash(sh test.sh)"));
        assert_eq!(approval(&request, Decision::Allow, Scope::Once, None).grant, None);
    }

    #[test]
    fn approval_contains_digest_of_shown_request() {
        let mut request = request("Bash", json!({"command": "sh test.sh"}), None);
        assert_eq!(approval(&request, Decision::Allow, Scope::Once, None).digest, None);
        request.digest = "ab".into();
        assert_eq!(approval(&request, Decision::Allow, Scope::Once, None).digest.as_deref(), Some("ab"));
    }

    #[test]
    fn command_text_cannot_imitate_prompt_lines() {
        let command = format!("ls #{}▌ 1 once  4 no", "x ".repeat(20));
        let request = request("Bash", json!({"command": command}), None);
        for columns in [3, 20, 26, 30, 44, 45, 46, 80] {
            let rows = rows(&request, columns);
            assert!(
                rows.iter().all(|row| crate::client::terminal::style::width(&row.plain()) <= columns),
                "{columns}"
            );
            let begins = rows.iter().filter(|row| row.plain().starts_with('▌')).count();
            assert!(begins == 1 || columns < 26, "{columns}: {rows:?}");
        }
    }

    #[test]
    fn unsandboxed_retry_request_has_own_text() {
        let mut request = request("Bash", json!({"command": "touch /etc/x"}), None);
        request.kind = RequestKind::Sandbox;
        request.blocked = serde_json::from_value(json!({"by": "files", "what": "/etc/x"})).expect("blocked");
        request.suggestions = vec!["Unsandboxed(touch /etc/x)".into()];
        check(
            &request,
            &[
                "▌ May Bash do this AGAIN, OUTSIDE THE SANDBOX?",
                "    no rule allows it",
                "    $ touch /etc/x",
                "    stopped at: /etc/x",
            ],
        );
        let told = keys(&request).plain();
        assert!(told.contains("once outside") && told.contains("for the session"), "{told}");
        assert!(!told.contains("in this folder") && !told.contains("edit"), "{told}");
        for (key, is_taken) in
            [('y', true), ('2', true), ('n', true), ('f', true), ('3', false), ('e', false), ('s', false)]
        {
            assert_eq!(answer_of(&request, key).is_some(), is_taken, "{key}");
        }
        request.suggestions.clear();
        assert_eq!(answer_of(&request, '2'), None);
    }

    #[test]
    fn plan_request_shows_its_text_and_keys() {
        let plan = request("ExitPlanMode", json!({"plan": "1. Read\n2. Write"}), None);
        let plan = PermissionRequest { kind: RequestKind::Plan, suggestions: Vec::new(), ..plan };
        check(&plan, &["▌ The model proposes this plan:", "    1. Read", "    2. Write"]);
        assert!(keys(&plan).plain().contains("2 yes, and accept edits"));
        assert_eq!(answer_of(&plan, '2'), Some(Answer::AcceptEdits));
        assert_eq!(answer_of(&plan, '3'), None);
        assert_eq!(approval_with_edits(&plan).mode, Some(Mode::AcceptEdits));
    }

    #[test]
    fn edited_arguments_are_sent_and_errors_reported() {
        let request = request("Bash", json!({"command": "sh test.sh"}), None);
        let same = edited(&request, &editable(&request)).expect("JSON");
        assert_eq!((same.decision, same.updated_input), (Some(Decision::Allow), None));
        let other = edited(&request, "{\"command\": \"sh -n test.sh\"}").expect("JSON");
        assert_eq!(other.updated_input, Some(json!({"command": "sh -n test.sh"})));
        assert!(edited(&request, "{").is_err_and(|why| why.contains("JSON")));
        assert!(edited(&request, "[]").is_err_and(|why| why.contains("object")));
    }

    #[test]
    fn answer_keys_are_case_insensitive() {
        assert_eq!(Answer::of_key('Y'), Some(Answer::Once));
        assert_eq!(Answer::of_key('f'), Some(Answer::Feedback));
        assert_eq!(Answer::of_key('\r'), None);
    }
}
