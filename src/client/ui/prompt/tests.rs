//! Tests of the text of a request.

use crate::ui::prompt::*;
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
    assert_eq!(question(request).iter().map(StyledLine::plain).collect::<Vec<_>>(), expected);
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
        let read_request = request("Read", json!({"file_path": named}), None);
        PermissionRequest {
            subject: serde_json::from_value(subject).expect("a subject"),
            cwd: "/w/proj".into(),
            ..read_request
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
    let read_request = of("a.md", "/w/proj/a.md", &["/w/proj/b.txt"]);
    let really = "    really: /w/proj/b.txt";
    check(&read_request, &[asks, &named("a.md"), really]);
    let read_request = PermissionRequest { diff: Some("+x\n".into()), ..read_request };
    check(&read_request, &[asks, &named("a.md"), really, "        +x"]);
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
fn command_text_cannot_imitate_prompt_lines() {
    let command = format!("ls #{}▌ 1 once  4 no", "x ".repeat(20));
    let request = request("Bash", json!({"command": command}), None);
    for columns in [3, 20, 26, 30, 44, 45, 46, 80] {
        let rows = rows(&request, columns);
        assert!(rows.iter().all(|row| crate::terminal::style::width(&row.plain()) <= columns), "{columns}");
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
}

#[test]
fn plan_request_shows_its_exact_text() {
    let plan = request("ExitPlanMode", json!({"plan": "1. Read\n2. Write"}), None);
    let plan = PermissionRequest { kind: RequestKind::Plan, suggestions: Vec::new(), ..plan };
    check(&plan, &["▌ The model proposes this plan:", "    1. Read", "    2. Write"]);
}
