use serde_json::{Value, json};

use crate::terminal::style::StyledLine;
use crate::ui::request_list::*;
use types::permission::{Decision, Scope};

fn request(nth: usize, tool: &str, input: Value, more: Value) -> PermissionRequest {
    let mut body = json!({
        "request_id": format!("perm_0190f2a4-0000-7000-8000-00000000000{nth}"),
        "call_id": format!("call_0190f2a4-0000-7000-8000-00000000000{nth}"),
        "tool": tool, "input": input, "summary": "s", "subject": {"kind": "tool", "name": tool},
        "reason": "no rule allows it", "suggestions": ["Bash(sh test.sh)", "Bash(sh:*)"], "cwd": "/w"});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    serde_json::from_value(body).expect("a request")
}

fn bash(nth: usize, command: &str) -> PermissionRequest {
    request(
        nth,
        "Bash",
        json!({"command": command}),
        json!({"subject": {"kind": "bash", "command": command}}),
    )
}

fn list(requests: impl IntoIterator<Item = PermissionRequest>) -> RequestList {
    let mut list = RequestList::default();
    requests.into_iter().for_each(|request| list.push(request));
    list
}

fn list_rows(list: &RequestList, columns: usize, rows: usize) -> Vec<String> {
    let look = ListStyle {
        columns,
        rows,
        mode: Mode::Default,
        is_answerable: true,
        has_draft: false,
        can_all: list.can_all(columns, rows),
    };
    list.rows(look).iter().map(StyledLine::plain).collect()
}

const DIFF: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -2,4 +2,4 @@\n \n-fn load(path: &str) -> String {\n-    \
                    std::fs::read_to_string(path).unwrap()\n+fn load(path: &str) -> std::io::Result<String> {\n+    \
                    std::fs::read_to_string(path)\n }\n";

#[test]
fn edit_request_shows_numbered_diff_and_answers() {
    let edit = request(
        1,
        "Edit",
        json!({"file_path": "src/lib.rs", "old_string": "a", "new_string": "b"}),
        json!({"diff": DIFF, "suggestions": ["Edit(src/lib.rs)", "Edit(src/**)"], "reason": "the call changes a file"}),
    );
    assert_eq!(
        list_rows(&list([edit]), 80, 24),
        [
            "▌ Edit src/lib.rs  +2 −2 · asks because the call changes a file",
            "▌     2  ",
            "▌     3 -fn load(path: &str) -> String {",
            "▌     4 -    std::fs::read_to_string(path).unwrap()",
            "▌     3 +fn load(path: &str) -> std::io::Result<String> {",
            "▌     4 +    std::fs::read_to_string(path)",
            "▌     5  }",
            "▌ › 1  Yes, once",
            "▌   2  Yes, until the session ends: Edit(src/lib.rs)",
            "▌   3  Yes, and always in this folder…",
            "▌   4  No, and go on without it",
            "▌ ↑↓ Enter · Tab words · e change it · Ctrl-O all · Esc no, and stop",
        ]
    );
}

#[test]
fn request_to_leave_the_sandbox_says_its_reason_once() {
    let more = json!({"kind": "sandbox", "reason": "it has run once", "subject": {"kind": "bash", "command": "npm ci"}});
    let rows = list_rows(&list([request(1, "Bash", json!({"command": "npm ci"}), more)]), 80, 24);
    assert_eq!(
        rows[..3],
        ["▌ Bash again, OUTSIDE THE SANDBOX · it has run once", "▌   $ npm ci", "▌   in: /w"],
        "{rows:?}"
    );
}

#[test]
fn rule_for_folder_is_confirmed_on_a_page_of_its_own() {
    let mut list = list([bash(1, "sh test.sh")]);
    assert!(matches!(list.answer(ListEntry::FolderRules), Some(ListOutcome::Page)));
    let rows = list_rows(&list, 80, 24);
    assert_eq!(
        &rows[3..],
        [
            "▌ Writes one of these rules for /w, for all later sessions:",
            "▌ › 1  Bash(sh test.sh)",
            "▌   2  Bash(sh:*)",
            "▌   3  No rule: only once",
            "▌ ↑↓ Enter · Esc back",
        ]
    );
    let params = |answered| match answered {
        Some(ListOutcome::Send(params)) => (params.scope, params.grant),
        other => panic!("{other:?}"),
    };
    list.step(Step::Next, Mode::Default, false);
    assert_eq!(params(list.confirm(None)), (Scope::Project, Some("Bash(sh:*)".into())));
    list.answer(ListEntry::FolderRules);
    assert!(list.confirm(Some(4)).is_none() && list.is_page_open());
    assert_eq!(params(list.confirm(Some(3))), (Scope::Once, None));
}

#[test]
fn cursor_begins_on_no_for_dangerous_calls() {
    let start = |request| list([request]).cursor(Mode::Default);
    for harmless in ["cargo test", "git status", "ls", "FOO=1 make", "sh clean.sh"] {
        assert_eq!(start(bash(1, harmless)), ListEntry::ONCE, "{harmless}");
    }
    for dangerous in
        ["rm -r x", "/bin/rm x", "A=b rm x", "git push --force", "cargo publish", "find . -delete"]
    {
        assert_eq!(start(bash(1, dangerous)), ListEntry::DENY, "{dangerous}");
    }
    let parts =
        json!({"parts": [{"command": "rm y", "words": ["rm", "y"], "verdict": "ask", "reason": "r"}]});
    assert_eq!(start(request(1, "Bash", json!({"command": "make && rm y"}), parts)), ListEntry::DENY);
    let path =
        json!({"path": "/etc/x", "in_workspace": false, "sensitivity": "ordinary", "matched_aliases": []});
    let outside = json!({"subject": {"kind": "edit", "path": path}});
    assert_eq!(start(request(1, "Edit", json!({}), outside)), ListEntry::DENY);
    assert_eq!(
        start(request(1, "Bash", json!({"command": "make"}), json!({"kind": "sandbox"}))),
        ListEntry::DENY
    );
    assert_eq!(list([bash(1, "make")]).cursor(Mode::Bypass), ListEntry::DENY);
}

#[test]
fn several_requests_are_listed_and_answered_together() {
    let mut list = list([bash(1, "touch a1"), bash(2, "touch a2"), bash(3, "touch a3")]);
    let rows = list_rows(&list, 80, 24);
    assert_eq!(
        rows,
        [
            "▌ 1/3  Bash · asks because no rule allows it",
            "▌   $ touch a1",
            "▌   in: /w",
            "▌ › 1  Yes, once",
            "▌   2  Yes, until the session ends: Bash(sh test.sh)",
            "▌   3  Yes, and always in this folder…",
            "▌   4  No, and go on without it",
            "▌   5  Yes to all 3 requests shown here",
            "▌ ←→ other · ↑↓ Enter · Tab words · e change it · Ctrl-O all · Esc no, and stop",
            "▌ 2/3  Bash touch a2",
            "▌ 3/3  Bash touch a3",
        ]
    );
    list.turn_to(Step::Previous);
    assert_eq!(list.current().map(|r| r.summary.as_str()), Some("s"));
    assert!(list_rows(&list, 80, 24)[2].starts_with("▌ 3/3  Bash · asks"), "the order does not change");
    let Some(ListOutcome::SendAll(all)) = list.answer(ListEntry::All) else { panic!("not all") };
    assert_eq!(all.len(), 3);
    let entries = list.all_entries(Mode::Default, false);
    assert!(!entries.contains(&ListEntry::All), "not offered if some cannot be read");
    let id = list.current().expect("one").request_id;
    assert!(list.remove(id).is_some() && list.len() == 2 && list.current().is_some());
}

#[test]
fn list_fits_narrow_and_low_terminals() {
    let long = bash(1, &(1..40).map(|n| format!("echo line {n}")).collect::<Vec<_>>().join("\n"));
    let list = list([long]);
    for (columns, rows) in [(20, 12), (40, 14), (80, 24), (120, 40)] {
        let shown = list_rows(&list, columns, rows);
        assert!(shown.iter().all(|row| row.starts_with('▌')), "{shown:#?}");
        assert!(shown.iter().any(|row| row.contains("lines above")), "{shown:#?}");
    }
}

#[test]
fn all_edits_are_offered_for_edits_in_the_folder_only() {
    let edit = |in_workspace: bool, sensitivity: &str| {
        let path = json!({"path": "/w/a", "in_workspace": in_workspace, "sensitivity": sensitivity});
        let more = json!({"diff": DIFF, "subject": {"kind": "edit", "path": path}});
        request(1, "Edit", json!({"file_path": "a"}), more)
    };
    for (request, mode, expected) in [
        (edit(true, "ordinary"), Mode::Default, true),
        (edit(true, "ordinary"), Mode::Plan, false),
        (edit(true, "ordinary"), Mode::Bypass, false),
        (edit(true, "secret"), Mode::Default, false),
        (edit(false, "ordinary"), Mode::Default, false),
        (bash(1, "make"), Mode::Default, false),
    ] {
        let mut list = list([request]);
        assert_eq!(list.all_entries(mode, false).contains(&ListEntry::AllEdits), expected, "{mode:?}");
        if expected {
            let Some(ListOutcome::SendAndAcceptEdits(params)) = list.answer(ListEntry::AllEdits) else {
                panic!("not sent")
            };
            assert_eq!((params.decision, params.scope), (Some(Decision::Allow), Scope::Once));
        }
    }
}
