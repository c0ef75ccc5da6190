//! Tests of a task from the submit to its exit code, against a scripted daemon.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::args::TurnArgs;
use crate::commands::run::*;
use crate::fake_daemon::{
    CALL, FakeDaemon, ITEM, Journal, SESSION, TURN, permission_requested, permission_resolved, text_delta,
    turn_completed,
};
use crate::resolve_id::sample;
use crate::terminal::line_input::LineInput;
use crate::terminal::out::testing::{CapturedOutput, captured_output, captured_pipe};
use types::usage::Budgets;

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Replies to create and submit. A submit starts the script, and an answer continues it.
fn script_answers(
    first: Vec<Value>,
    then: Vec<Value>,
) -> impl Fn(&Journal, &str, &Value) -> Result<Value, Value> + Send + Sync {
    move |journal, method, params| match method {
        "session.create" => Ok(json!({"session": sample(SESSION, "t")})),
        "session.submit" => {
            journal.push(first.clone());
            Ok(json!({"turn_id": TURN, "state": "running", "seq": 1}))
        }
        "session.approve" => {
            journal.push([permission_resolved(params["decision"].as_str().expect("a decision"))]);
            journal.push(then.clone());
            Ok(json!({"session_id": SESSION, "seq": 2}))
        }
        other => Err(json!({"code": -32601, "message": other, "data": {"kind": "method_not_found"}})),
    }
}

async fn run_task(
    fake: &FakeDaemon,
    asking: AnswerPolicy,
    output: Output,
) -> (Result<TurnEnd, Failure>, CapturedOutput, CapturedOutput) {
    let (mut out, text, side) = captured_output();
    let client = fake.connector().connect().await.expect("connected");
    let params = CreateParams { cwd: "/w".into(), ..CreateParams::default() };
    let reach = fake.connector();
    let run = follow(
        &reach,
        client,
        &params,
        NewInput::new("do it"),
        asking,
        (output, Shown { thinking: Thinking::Show, ..Shown::default() }),
        &mut out,
    );
    (timeout(WAIT_TIMEOUT, run).await.expect("in time"), text, side)
}

#[tokio::test]
async fn run_prints_answer_to_stdout_and_rest_to_stderr() {
    let whole = json!({"type": "message.completed", "item": {"item_id": ITEM, "turn_id": TURN,
        "kind": "assistant_message", "status": "completed", "first_seq": 1, "last_seq": 2, "text": "Hi there"}});
    let tool =
        json!({"type": "tool.requested", "call_id": CALL, "tool": "Read", "input": {"file_path": "a"}});
    let read = json!({"type": "tool.completed", "call_id": CALL, "tool": "Read", "status": "completed",
        "output": "text", "duration_ms": 1});
    let events = vec![text_delta("Hi "), text_delta("there"), whole, tool, read, turn_completed("success")];
    let fake = FakeDaemon::start(script_answers(events, vec![]));
    let (ended, text, side) = run_task(&fake, AnswerPolicy::Deny("no"), Output::Text).await;
    assert_eq!(ended.expect("ended").code, 0);
    assert_eq!(text.text(), "Hi there\n");
    assert!(side.text().contains("● Read a\n") && side.text().contains("─ done"), "{}", side.text());
}

/// A message of the model, as the daemon completes it.
fn message(status: &str, superseded: bool, text: &str) -> Value {
    json!({"type": "message.completed", "superseded": superseded, "item": {"item_id": ITEM, "turn_id": TURN,
        "kind": "assistant_message", "status": status, "first_seq": 1, "last_seq": 2, "text": text}})
}

#[tokio::test]
async fn pipe_gets_completed_messages_only_and_quiet_pipe_the_result() {
    let odd = "👨\u{200d}👩 می\u{200c}خواهم so\u{ad}ft \u{1b}[1m⟦";
    let retried = vec![text_delta("half a sent"), message("interrupted", true, "half a sent")];
    let whole = vec![text_delta("The "), message("completed", false, "The answer.")];
    let remarks = vec![message("completed", false, "I look."), message("completed", false, odd)];
    let aborted = vec![text_delta("One"), message("interrupted", false, "One")];
    let cases = [
        (
            "a retried stream",
            [retried.clone(), whole.clone()].concat(),
            "success",
            "The answer.\n",
            "The answer.",
        ),
        ("a stream that never comes back", retried, "llm_error", "", ""),
        ("remarks between calls", remarks.clone(), "success", &format!("I look.\n{odd}\n"), odd),
        (
            "an answer that goes on after the output limit",
            vec![message("completed", false, "One "), message("completed", false, "two.")],
            "success",
            "One \ntwo.\n",
            "One two.",
        ),
        ("an aborted answer", aborted, "aborted", "", ""),
        ("a final line end", vec![message("completed", false, "x\n")], "success", "x\n", "x"),
        ("no text", vec![message("completed", false, "")], "success", "", ""),
    ];
    for (case, events, subtype, expected, result) in cases {
        let with_line_end = |text: &str| if text.is_empty() { String::new() } else { format!("{text}\n") };
        for (is_quiet, expected) in [(false, expected.to_owned()), (true, with_line_end(result))] {
            let mut end = turn_completed(subtype);
            end["result"]["text"] = json!(result);
            let script = [events.clone(), vec![end]].concat();
            let fake = FakeDaemon::start(script_answers(script, vec![]));
            let (mut out, text, _) = captured_pipe();
            let reach = fake.connector();
            let client = reach.connect().await.expect("connected");
            let params = CreateParams { cwd: "/w".into(), ..CreateParams::default() };
            let shown = Shown { thinking: Thinking::Show, is_quiet, ..Shown::default() };
            let (task, asking) = (NewInput::new("do it"), AnswerPolicy::Deny("no"));
            let run = follow(&reach, client, &params, task, asking, (Output::Text, shown), &mut out);
            let ended = timeout(WAIT_TIMEOUT, run).await.expect("in time").expect("ended");
            assert_eq!(text.text(), expected, "{case}, quiet: {is_quiet}");
            assert_eq!(ended.code, crate::failure::code_of(subtype), "{case}");
        }
    }
}

#[tokio::test]
async fn run_exit_code_follows_turn_result() {
    for (subtype, expected) in [("llm_error", 2), ("aborted", 3), ("error_max_turns", 5), ("brand_new", 4)] {
        let fake = FakeDaemon::start(script_answers(vec![turn_completed(subtype)], vec![]));
        let (ended, _, _) = run_task(&fake, AnswerPolicy::Deny("no"), Output::Json).await;
        assert_eq!(ended.expect("ended").code, expected, "{subtype}");
    }
}

#[tokio::test]
async fn run_without_terminal_denies_requests_and_exits_1() {
    let fake =
        FakeDaemon::start(script_answers(vec![permission_requested()], vec![turn_completed("success")]));
    let (ended, _, side) = run_task(&fake, AnswerPolicy::Deny("no user is here"), Output::Text).await;
    assert_eq!(ended.expect("ended").code, 1);
    assert!(side.text().contains("$ make") && side.text().contains("▌ no user is here"));
    let (method, params) = fake.calls().pop().expect("calls");
    assert_eq!(
        (method.as_str(), &params["decision"], &params["no_approver"]),
        ("session.approve", &json!("deny"), &json!(true))
    );
}

#[tokio::test]
async fn typed_line_answers_request_of_run() {
    for (typed, decision, words) in [("hm\n1\n", "allow", None), ("4 use ninja\n", "deny", Some("use ninja"))]
    {
        let fake =
            FakeDaemon::start(script_answers(vec![permission_requested()], vec![turn_completed("success")]));
        let reach = fake.connector();
        let client = reach.connect().await.expect("connected");
        let params = CreateParams { cwd: "/w".into(), ..CreateParams::default() };
        let session = create(&client, &params, Machine::This).await.expect("created");
        let id = session.session_id;
        let turn = submit_first(&client, id, NewInput::new("do it")).await.expect("submitted").turn_id;
        let follow = SessionFollower::start(&reach, &client, id, 0).await.expect("followed");
        let (mut user, input) = tokio::io::duplex(64);
        user.write_all(typed.as_bytes()).await.expect("typed");
        let watcher = TurnWatcher::new(client, follow, (session, turn), AnswerPolicy::Person, Output::Text)
            .with_input(LineInput::from_user(input));
        let (mut out, _, side) = captured_output();
        let ended = timeout(WAIT_TIMEOUT, watcher.until_ended(&mut out)).await.expect("in time");
        assert!(ended.is_ok_and(|ended| ended.code == 0), "{}", side.text());
        let (_, params) =
            fake.calls().into_iter().find(|(method, _)| method == "session.approve").expect("an answer");
        assert_eq!((&params["decision"], params["feedback"].as_str()), (&json!(decision), words));
        assert!(side.text().contains("▌ 4  No, and go on without it"), "{}", side.text());
        assert_eq!(side.text().contains("this is no answer"), typed.starts_with("hm"));
    }
}

#[tokio::test]
async fn demo_allows_request_once_and_reports_it() {
    let fake =
        FakeDaemon::start(script_answers(vec![permission_requested()], vec![turn_completed("success")]));
    let (ended, _, side) = run_task(&fake, AnswerPolicy::Allow, Output::Text).await;
    assert_eq!(ended.expect("ended").code, 0);
    assert!(side.text().contains("answered by the demonstration"));
    let params = fake.calls().pop().expect("calls").1;
    assert_eq!(
        (&params["decision"], &params["scope"], params.get("grant")),
        (&json!("allow"), &json!("once"), None)
    );
}

#[tokio::test]
async fn stream_json_prints_every_event_unchanged() {
    let odd = json!({"type": "moon.rose", "x": [1, {"y": null}]});
    let fake = FakeDaemon::start(script_answers(vec![odd, turn_completed("success")], vec![]));
    let (ended, text, _) = run_task(&fake, AnswerPolicy::Deny("no"), Output::StreamJson).await;
    let result = ended.expect("ended").result;
    assert_eq!(
        (&result["session_id"], &result["turn_id"], &result["text"]),
        (&json!(SESSION), &json!(TURN), &json!("the answer"))
    );
    let expected: String = fake.journal.rows().iter().map(|row| format!("{row}\n")).collect();
    assert_eq!(text.text(), expected);
}

/// What `run` says when the daemon restarts in the middle of its turn.
async fn said_at_restart(announced: Option<&'static str>) -> String {
    let mut fake = FakeDaemon::start(script_answers(vec![text_delta("one ")], vec![]));
    let reach = fake.connector();
    let client = reach.connect().await.expect("connected");
    let (mut out, text, side) = captured_output();
    let journal = fake.journal.clone();
    let seen = side.clone();
    let params = CreateParams { cwd: "/w".into(), ..CreateParams::default() };
    let run = follow(
        &reach,
        client,
        &params,
        NewInput::new("do it"),
        AnswerPolicy::Deny("no"),
        (Output::Text, Shown::default()),
        &mut out,
    );
    let restart = async {
        while !fake.calls().iter().any(|(method, _)| method == "session.submit") {
            tokio::task::yield_now().await;
        }
        if let Some(reason) = announced {
            fake.announce_stop(reason);
            while !seen.text().contains("the daemon") {
                tokio::task::yield_now().await;
            }
        }
        fake.restart(script_answers(vec![], vec![])).await;
        while !seen.text().contains("is back") {
            tokio::task::yield_now().await;
        }
        journal.push([text_delta("two"), turn_completed("success")]);
    };
    let (ended, ()) = timeout(WAIT_TIMEOUT, async { tokio::join!(run, restart) }).await.expect("in time");
    assert_eq!(ended.expect("ended").code, 0);
    assert_eq!(text.text().split_whitespace().collect::<Vec<_>>(), ["one", "two"]);
    side.text()
}

#[tokio::test]
async fn run_continues_without_gap_after_daemon_restart() {
    let said = said_at_restart(None).await;
    assert!(said.contains("lost the connection to the daemon; connecting again…"), "{said}");
    for (reason, words) in [("restart", "the daemon restarts…"), ("signal", "the daemon stops…")] {
        let said = said_at_restart(Some(reason)).await;
        assert!(said.contains(words) && !said.contains("lost the connection"), "{said}");
    }
}

#[tokio::test]
async fn events_fields_and_results_of_newer_daemon_do_not_disturb_run() {
    let later = json!({"type": "message.text_delta", "index": 0, "text": "one", "colour": {"of": ["a later version"]}});
    let fake = FakeDaemon::start(script_answers(
        vec![json!({"type": "moon.rose", "phase": 3}), later, turn_completed("of_a_later_version")],
        vec![],
    ));
    let reach = fake.connector();
    let client = reach.connect().await.expect("connected");
    let (mut out, text, _) = captured_output();
    let params = CreateParams { cwd: "/w".into(), ..CreateParams::default() };
    let run = follow(
        &reach,
        client,
        &params,
        NewInput::new("do it"),
        AnswerPolicy::Deny("no"),
        (Output::Text, Shown::default()),
        &mut out,
    );
    let ended = timeout(WAIT_TIMEOUT, run).await.expect("in time").expect("ended");
    assert_eq!((ended.code, text.text().trim()), (4, "one"));
}

#[test]
fn wrong_run_options_are_refused_before_start() {
    let check = |args: RunArgs, expected: &str| {
        let failure = create_params(&args, Machine::This).map(|_| ()).expect_err("refused");
        assert_eq!(failure.code, 64);
        assert!(failure.message.contains(expected), "{failure}");
    };
    check(RunArgs { work_dir: Some("/nonexistent/x".into()), ..RunArgs::default() }, "not a folder");
    assert_eq!(prompt(Some("  ".into())).expect_err("empty").code, 64);
}

#[test]
fn worktree_option_names_branch_or_takes_default() {
    let branch_of = |worktree: &str| {
        let args =
            RunArgs { worktree: Some(worktree.into()), work_dir: Some("/".into()), ..RunArgs::default() };
        create_params(&args, Machine::This).expect("params").worktree.expect("a worktree").branch
    };
    assert_eq!((branch_of(""), branch_of("fix/x")), (None, Some("fix/x".into())));
}

#[test]
fn run_limit_options_become_budgets() {
    let turn = TurnArgs { max_usd: Some(250_000), max_turns: Some(3), ..TurnArgs::default() };
    let args = RunArgs { turn, work_dir: Some("/".into()), ..RunArgs::default() };
    let params = create_params(&args, Machine::This).expect("params");
    assert_eq!(
        params.budgets,
        Some(Budgets { usd_micros: Some(250_000), model_calls: Some(3), ..Budgets::default() })
    );
    assert_eq!(params.cwd, "/");
    assert_eq!(create_params(&RunArgs::default(), Machine::This).expect("params").budgets, None);
}
