//! Tests of answers as lines, without a terminal.

use crate::terminal::style::StyledLine;
use crate::ui::line_prompt::*;
use serde_json::{Value, json};
use types::permission::{Decision, Mode, Scope};

fn event(body: Value) -> Event {
    serde_json::from_value(body).expect("an event")
}

fn requested(nth: usize, kind: &str) -> Event {
    event(json!({"type": "permission.requested",
        "request_id": format!("perm_0190f2a4-0000-7000-8000-00000000000{nth}"),
        "call_id": "call_0190f2a4-0000-7000-8000-000000000003", "kind": kind,
        "tool": "Bash", "input": {"command": "make"}, "summary": "s", "cwd": "/w",
        "subject": {"kind": "bash", "command": "make"}, "reason": "r",
        "suggestions": ["Bash(make)", "Bash(make:*)"]}))
}

fn prompt_of(events: &[Event]) -> LinePrompt {
    let mut prompt = LinePrompt::default();
    events.iter().for_each(|event| prompt.on_event(event));
    prompt
}

fn text(lines: &[StyledLine]) -> Vec<String> {
    lines.iter().map(StyledLine::plain).collect()
}

/// Types lines. Returns the result of the last one.
fn type_lines(prompt: &mut LinePrompt, lines: &str) -> LineResult {
    lines.split('\n').map(|line| prompt.on_line(line)).last().expect("a line")
}

#[test]
fn line_with_number_answers_permission_request() {
    let check = |lines: &str, decision, scope, grant: Option<&str>, feedback: Option<&str>| {
        let result = type_lines(&mut prompt_of(&[requested(1, "tool")]), lines);
        let LineResult::Approve(params) = result else { panic!("{lines:?}: {result:?}") };
        assert_eq!((params.decision, params.scope), (Some(decision), scope), "{lines:?}");
        assert_eq!((params.grant.as_deref(), params.feedback.as_deref()), (grant, feedback), "{lines:?}");
    };
    check("1", Decision::Allow, Scope::Once, None, None);
    check(" y ", Decision::Allow, Scope::Once, None, None);
    check("2", Decision::Allow, Scope::Session, Some("Bash(make)"), None);
    check("3\n2", Decision::Allow, Scope::Project, Some("Bash(make:*)"), None);
    check("3\n3", Decision::Allow, Scope::Once, None, None);
    check("3\n\n2", Decision::Allow, Scope::Session, Some("Bash(make)"), None);
    check("4", Decision::Deny, Scope::Once, None, None);
    check("4 use ninja", Decision::Deny, Scope::Once, None, Some("use ninja"));
    check("n use ninja", Decision::Deny, Scope::Once, None, Some("use ninja"));
    for other in ["", "5", "12", "1 file is missing", "2 files", "yes", "no", "a", "hey", "3\nhey", "3\n4"] {
        let result = type_lines(&mut prompt_of(&[requested(1, "tool")]), other);
        assert!(matches!(result, LineResult::NoAnswer), "{other:?}: {result:?}");
    }
}

#[test]
fn plan_and_unsandboxed_retry_offer_their_own_answers() {
    let answer = |kind: &str, line: &str| type_lines(&mut prompt_of(&[requested(1, kind)]), line);
    let LineResult::Approve(params) = answer("plan", "2") else { panic!("not sent") };
    assert_eq!(params.mode, Some(Mode::AcceptEdits));
    let LineResult::Approve(params) = answer("plan", "3 test it") else { panic!("not sent") };
    assert_eq!((params.decision, params.feedback.as_deref()), (Some(Decision::Deny), Some("test it")));
    assert!(matches!(answer("plan", "3"), LineResult::Print(_)), "the words are missing");
    assert!(matches!(answer("sandbox", "2"), LineResult::Approve(_)));
    assert!(matches!(answer("sandbox", "3"), LineResult::NoAnswer));
}

#[test]
fn prompt_prints_each_request_once_and_in_order() {
    let mut prompt = prompt_of(&[requested(1, "tool"), requested(2, "tool")]);
    assert_eq!(
        text(&prompt.take_lines(80)),
        [
            "▌ May Bash do this? r",
            "    $ make",
            "    in: /w",
            "▌ 1  Yes, once",
            "▌ 2  Yes, until the session ends: Bash(make)",
            "▌ 3  Yes, and always in this folder…",
            "▌ 4  No, and go on without it",
            "▌ type a number, then Enter · 4 WORDS tells the model why",
        ]
    );
    assert!(prompt.take_lines(80).is_empty());
    let LineResult::Print(page) = prompt.on_line("3") else { panic!("no page") };
    assert_eq!(
        text(&page),
        [
            "▌ Writes one of these rules for /w, for all later sessions:",
            "▌ 1  Bash(make)",
            "▌ 2  Bash(make:*)",
            "▌ 3  No rule: only once",
            "▌ type a number, then Enter · Enter alone goes back",
        ]
    );
    let resolved = |nth: usize| {
        event(json!({"type": "permission.resolved", "decision": "allow", "scope": "once", "by": "answer",
            "request_id": format!("perm_0190f2a4-0000-7000-8000-00000000000{nth}"),
            "call_id": "call_0190f2a4-0000-7000-8000-000000000003"}))
    };
    // Another client has answered.
    prompt.on_event(&resolved(1));
    assert_eq!(prompt.take_lines(80).len(), 8, "the next request, with its page closed");
    prompt.on_event(&resolved(2));
    assert!(prompt.take_lines(80).is_empty() && !prompt.is_open());
    assert!(matches!(prompt.on_line("1"), LineResult::NoAnswer));
}

#[test]
fn lines_answer_questions_before_requests() {
    let asked = |kind: &str, questions: Value| {
        event(json!({"type": "question.requested", "request_id": "ask_0190f2a4-0000-7000-8000-000000000009",
            "kind": kind, "text": "?", "options": ["continue", "abort"], "questions": questions}))
    };
    let questions = json!([
        {"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]},
        {"question": "How large?"},
    ]);
    let mut prompt = prompt_of(&[requested(1, "tool"), asked("question", questions)]);
    assert_eq!(
        text(&prompt.take_lines(80)),
        ["▌ type a number or your own words, then Enter", "▌ answer 1 of 2: Which colour?"]
    );
    assert!(matches!(prompt.on_line("7"), LineResult::Print(_)), "no such option");
    let LineResult::Print(next) = prompt.on_line("2") else { panic!("one more is asked") };
    assert_eq!(text(&next)[1], "▌ answer 2 of 2: How large?");
    let LineResult::Answer(params) = prompt.on_line("1 metre") else { panic!("not sent") };
    let answers = serde_json::to_value(&params.answers).expect("json");
    assert_eq!(answers, json!([{"choices": ["blue"]}, {"text": "1 metre"}]));

    let mut prompt = prompt_of(&[asked("unknown_outcome", json!([]))]);
    assert_eq!(text(&prompt.take_lines(80)), ["▌ c continue · a abort the turn, then Enter"]);
    let LineResult::Answer(params) = prompt.on_line("A") else { panic!("not sent") };
    assert_eq!(params.choice.as_deref(), Some("abort"));
    assert!(matches!(prompt.on_line("1"), LineResult::NoAnswer));
}
