//! C12 to C16: a tool call starts, runs and ends.

use serde_json::{Value, json};

use super::invariants::Journals;
use super::matrix_ways;
use super::scenario::{CrashScenario, bash};
use super::tolerant_client::CrashTolerantClient;
use crate::support::daemon::{CrashMode, TestDaemon, TestDaemonBuilder};
use crate::support::model_server::Step;
use crate::support::pages::Pages;
use crate::support::wait::{POLL_INTERVAL, with_deadline};

matrix_ways! {
    c12_command_about_to_start_has_unknown_outcome => c12_command,
    c12_edit_about_to_start_is_not_applied => c12_edit,
    c12_read_about_to_start_runs_again => c12_read,
    c13_running_command_is_killed_with_unknown_outcome => c13,
    c14_command_without_committed_result_has_unknown_outcome => c14_command,
    c14_unreferenced_spool_is_removed => c14_spool,
    c14_edit_without_committed_result_is_found_applied => c14_edit,
    c14_page_without_committed_fetch_is_not_refetched => c14_fetch,
    c13_c14_background_task_is_killed_and_reported_lost => crash_in_background,
    c15_committed_results_of_parallel_calls_are_kept => c15_parallel,
    c15_committed_results_of_sequential_calls_are_kept => c15_after,
    c16_file_write_is_atomic_across_crash => c16,
    c16_multi_file_patch_reports_which_files_changed => c16_several,
    c16_multi_edit_and_notebook_edit_are_found_by_hash => c16_others,
    c16_file_written_in_place_is_restored_after_crash => c16_in_place,
}

const TOOLS_ALLOWED: &str =
    "[permissions]\nallow = [\"Bash\", \"Edit\"]\n[tools]\nedit_requires_read = false";

fn plan() -> TestDaemonBuilder {
    TestDaemon::builder().config(TOOLS_ALLOWED)
}

/// Submits the input that leads to `step`, and waits until the daemon is dead.
async fn crash_in_step(scenario: &mut CrashScenario, step: Step) -> (CrashTolerantClient, Journals) {
    scenario.daemon.models.push(step);
    scenario.daemon.models.push(Step::text("Done."));
    let tolerant = scenario.session().await;
    tolerant.submit("go", "k").await;
    let journals = scenario.wait_crashed().await;
    (tolerant, journals)
}

/// After a restart: the daemon asks a question about the call, and the user answers "continue". Returns
/// the question.
async fn asked_and_continued(scenario: &mut CrashScenario, tolerant: &CrashTolerantClient) -> Value {
    scenario.restart().await;
    let (session, mut log) = scenario.reopen_session(tolerant).await;
    let question = log.wait_for("question.requested").await;
    assert_eq!(question["kind"], "unknown_outcome");
    assert_eq!(question["options"], json!(["continue", "abort"]));
    log.state_is("requires_action").await;
    assert_eq!(session.view().await["state"], "requires_action");
    let before = scenario.daemon.models.requests().len();
    assert_eq!(before, 1, "no model request before the answer");
    let tolerant = scenario.join(tolerant).await;
    tolerant.decide(&question, "continue").await.expect("a reply").expect("accepted");
    log.turn_ends("success").await;
    assert_eq!(log.events_of("question.requested").len(), 1, "asked once");
    question
}

fn outcomes(journals: &Journals, tolerant: &CrashTolerantClient) -> Vec<Value> {
    let events = journals[&tolerant.session].values();
    events.filter(|event| event["type"] == "tool.completed").cloned().collect()
}

/// The tool results that the model received with the second request, in order.
fn results(scenario: &CrashScenario) -> Vec<String> {
    let requests = scenario.daemon.models.requests();
    requests[1].tool_results().into_iter().map(|(_, text)| text).collect()
}

async fn c12_command(way: CrashMode) {
    let mut scenario = CrashScenario::begin(plan(), "C12", way).await;
    let (tolerant, _) = crash_in_step(&mut scenario, Step::calls([bash("echo once >> log.txt")])).await;
    asked_and_continued(&mut scenario, &tolerant).await;
    assert_eq!(scenario.daemon.read("log.txt"), "", "never run by itself");
    assert!(results(&scenario)[0].contains("outcome is unknown"), "{:?}", results(&scenario));
    let journals = scenario.finish_and_check().await;
    assert_eq!(outcomes(&journals, &tolerant)[0]["status"], "unknown");
}

/// The turn continues without a question, because the daemon can see what the call did.
async fn continue_unasked(scenario: &mut CrashScenario, tolerant: &CrashTolerantClient) {
    scenario.restart().await;
    let (_, mut log) = scenario.reopen_session(tolerant).await;
    log.turn_ends("success").await;
    assert_eq!(log.events_of("question.requested").len(), 0);
}

async fn c12_edit(way: CrashMode) {
    let mut scenario = CrashScenario::begin(plan(), "C12", way).await;
    scenario.daemon.write("a.txt", "old\n");
    let edit = json!({"file_path": "a.txt", "old_string": "old", "new_string": "new"});
    let (tolerant, _) = crash_in_step(&mut scenario, Step::calls([("Edit", edit)])).await;
    continue_unasked(&mut scenario, &tolerant).await;
    assert_eq!(scenario.daemon.read("a.txt"), "old\n");
    let journals = scenario.finish_and_check().await;
    let outcome = &outcomes(&journals, &tolerant)[0];
    assert_eq!((&outcome["status"], &outcome["code"]), (&json!("failed"), &json!("not_done")));
}

async fn c12_read(way: CrashMode) {
    let mut scenario = CrashScenario::begin(plan(), "C12", way).await;
    scenario.daemon.write("a.txt", "the words\n");
    let (tolerant, _) =
        crash_in_step(&mut scenario, Step::calls([("Read", json!({"file_path": "a.txt"}))])).await;
    continue_unasked(&mut scenario, &tolerant).await;
    assert!(results(&scenario)[0].contains("the words"), "{:?}", results(&scenario));
    let journals = scenario.finish_and_check().await;
    assert_eq!(outcomes(&journals, &tolerant)[0]["status"], "completed");
}

async fn c13(way: CrashMode) {
    // Starts a child in its own process session, with no living parent.
    let command = "(setsid -f sleep 1000); echo once >> log.txt; echo said; sleep 1000";
    for point in ["C13.started", "C13.recorded", "C13.told"] {
        let mut scenario = CrashScenario::begin(plan(), point, way).await;
        let (tolerant, _) = crash_in_step(&mut scenario, Step::calls([bash(command)])).await;
        let question = asked_and_continued(&mut scenario, &tolerant).await;
        assert_eq!(scenario.daemon.tool_processes(), [], "{point}");
        assert!(scenario.daemon.read("log.txt").lines().count() <= 1, "{point}: no second run");
        if point == "C13.told" {
            assert_eq!(scenario.daemon.read("log.txt"), "once\n");
            assert!(question["output"].as_str().expect("a text").contains("said"), "{question}");
            assert!(results(&scenario)[0].contains("said"), "{:?}", results(&scenario));
        }
        let journals = scenario.finish_and_check().await;
        assert_eq!(outcomes(&journals, &tolerant)[0]["status"], "unknown");
    }
}

async fn crash_in_background(way: CrashMode) {
    for (point, command) in [
        ("C13.background", "(setsid -f sleep 1000); echo once >> log.txt; echo said; sleep 1000"),
        ("C14.background", "echo once >> log.txt; echo said"),
    ] {
        let mut scenario = CrashScenario::begin(plan(), point, way).await;
        let behind = ("Bash", json!({"command": command, "run_in_background": true}));
        let (tolerant, _) = crash_in_step(&mut scenario, Step::calls([behind])).await;
        // If the turn was not over, it continues, because its call has a result.
        scenario.daemon.models.set_fallback(|request| match request.messages().last() {
            Some(last) if last.to_string().contains("and now?") => {
                Step::calls([("BashOutput", json!({"bash_id": "bash_1"}))])
            }
            _ => Step::text("Done."),
        });
        scenario.restart().await;
        let (session, mut log) = scenario.reopen_session(&tolerant).await;
        let is_end = |event: &Value| event["type"] == "tool.background" && event["state"] != "running";
        let is_question = |event: &Value| event["type"] == "question.requested";
        let first = log.find("its end", |event| is_end(event) || is_question(event)).await;
        if point == "C14.background" && is_question(&first) {
            // A short command may end before the record of its start is written; its outcome is then
            // unknown.
            let tolerant = scenario.join(&tolerant).await;
            tolerant.decide(&first, "continue").await.expect("a reply").expect("accepted");
            log.turn_ends("success").await;
            scenario.finish_and_check().await;
            continue;
        }
        assert_eq!(first["state"], "lost", "{point}");
        let idle = async {
            while session.view().await["state"] != "idle" {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        with_deadline("the turn's end", String::new, idle).await;
        assert_eq!(log.events_of("question.requested").len(), 0, "{point}");
        assert_eq!(scenario.daemon.tool_processes(), [], "{point}");
        assert!(scenario.daemon.read("log.txt").lines().count() <= 1, "{point}: no second run");
        session.submit("and now?").await;
        let told = log
            .find("what it said", |event| event["type"] == "tool.completed" && event["tool"] == "BashOutput");
        let told = told.await;
        assert!(told["output"].as_str().expect("a text").contains("was lost"), "{point}: {told}");
        log.turn_ends("success").await;
        scenario.finish_and_check().await;
    }
}

async fn c14_command(way: CrashMode) {
    let mut scenario = CrashScenario::begin(plan(), "C14", way).await;
    let (tolerant, _) = crash_in_step(&mut scenario, Step::calls([bash("echo once >> log.txt")])).await;
    asked_and_continued(&mut scenario, &tolerant).await;
    assert_eq!(scenario.daemon.read("log.txt"), "once\n", "no second run");
    let journals = scenario.finish_and_check().await;
    assert_eq!(outcomes(&journals, &tolerant)[0]["status"], "unknown");
}

/// A command with much output: the spool exists, but no event refers to it yet.
async fn c14_spool(way: CrashMode) {
    let mut scenario = CrashScenario::begin(plan(), "C14.spooled", way).await;
    let (tolerant, _) =
        crash_in_step(&mut scenario, Step::calls([bash("echo once >> log.txt; seq 200000")])).await;
    let spools = || {
        let entries =
            std::fs::read_dir(scenario.daemon.path("data/agentd/blobs")).into_iter().flatten().flatten();
        entries.map(|entry| entry.metadata().expect("a file").len()).collect::<Vec<_>>()
    };
    assert_eq!(spools(), [1_288_895], "the whole output");
    asked_and_continued(&mut scenario, &tolerant).await;
    let left = std::fs::read_dir(scenario.daemon.path("data/agentd/blobs")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "a spool that no session refers to is left");
    assert_eq!(scenario.daemon.read("log.txt"), "once\n", "no second run");
    scenario.finish_and_check().await;
}

async fn c14_edit(way: CrashMode) {
    let mut scenario = CrashScenario::begin(plan(), "C14", way).await;
    scenario.daemon.write("a.txt", "old\n");
    let edit = json!({"file_path": "a.txt", "old_string": "old", "new_string": "new"});
    let (tolerant, _) = crash_in_step(&mut scenario, Step::calls([("Edit", edit)])).await;
    continue_unasked(&mut scenario, &tolerant).await;
    assert_eq!(scenario.daemon.read("a.txt"), "new\n");
    let journals = scenario.finish_and_check().await;
    assert_eq!(outcomes(&journals, &tolerant)[0]["status"], "completed");
}

async fn c15_parallel(way: CrashMode) {
    for point in ["C15", "C15:2"] {
        let mut scenario = CrashScenario::begin(plan(), point, way).await;
        let names = ["a.txt", "b.txt", "c.txt"];
        for name in names {
            scenario.daemon.write(name, &format!("the words of {name}\n"));
        }
        let reads = names.map(|name| ("Read", json!({"file_path": name})));
        let (tolerant, before) = crash_in_step(&mut scenario, Step::calls(reads)).await;
        let kept = outcomes(&before, &tolerant);
        assert_eq!(kept.len(), if point == "C15" { 1 } else { 2 }, "{point}");
        continue_unasked(&mut scenario, &tolerant).await;
        let results = results(&scenario);
        assert_eq!(results.len(), 3);
        for (name, result) in names.iter().zip(&results) {
            assert!(result.contains(&format!("the words of {name}")), "{point}: in call order: {results:?}");
        }
        let journals = scenario.finish_and_check().await;
        let all = outcomes(&journals, &tolerant);
        assert_eq!(all.len(), 3);
        assert_eq!(all[..kept.len()], kept[..], "{point}: earlier results are unchanged");
    }
}

/// The end of one call and the intent of the next are one transaction. So the second call is unknown
/// and the third runs.
async fn c15_after(way: CrashMode) {
    let mut scenario = CrashScenario::begin(plan(), "C15", way).await;
    let calls =
        ["first", "second", "third"].map(|word| bash(&format!("echo {word} >> log.txt; echo {word}")));
    let (tolerant, before) = crash_in_step(&mut scenario, Step::calls(calls)).await;
    assert_eq!(outcomes(&before, &tolerant).len(), 1);
    // The next call is judged again before it starts, so it had not begun.
    continue_unasked(&mut scenario, &tolerant).await;
    assert_eq!(scenario.daemon.read("log.txt"), "first\nsecond\nthird\n");
    let results = results(&scenario);
    for (result, word) in results.iter().zip(["first", "second", "third"]) {
        assert!(result.contains(word), "{results:?}");
    }
    let journals = scenario.finish_and_check().await;
    let statuses: Vec<Value> =
        outcomes(&journals, &tolerant).into_iter().map(|event| event["status"].clone()).collect();
    assert_eq!(statuses, ["completed"; 3]);
}

async fn c16(way: CrashMode) {
    let rest = "a line\n".repeat(20_000);
    let (old, new) = (format!("old\n{rest}"), format!("new\n{rest}"));
    for point in ["C16.made", "C16.written", "C16.synced", "C16.replaced"] {
        for is_new in [false, true] {
            let mut scenario = CrashScenario::begin(plan(), point, way).await;
            let (before, call) = if is_new {
                ("", ("Write", json!({"file_path": "d/a.txt", "content": new})))
            } else {
                scenario.daemon.write("d/a.txt", &old);
                let edit = json!({"file_path": "d/a.txt", "old_string": "old", "new_string": "new"});
                (old.as_str(), ("Edit", edit))
            };
            let (tolerant, _) = crash_in_step(&mut scenario, Step::calls([call])).await;
            let is_done = point == "C16.replaced";
            let expected = if is_done { new.as_str() } else { before };
            assert!(
                scenario.daemon.read("d/a.txt") == expected,
                "{point}: the file has neither the old nor the new content"
            );
            continue_unasked(&mut scenario, &tolerant).await;
            assert!(scenario.daemon.read("d/a.txt") == expected, "{point}: changed after the restart");
            let folder = std::fs::read_dir(scenario.daemon.workspace().join("d")).expect("a folder");
            let names: Vec<String> =
                folder.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            let wanted: &[&str] = if expected.is_empty() { &[] } else { &["a.txt"] };
            assert_eq!(names, wanted, "{point}: a temporary file is left");
            let journals = scenario.finish_and_check().await;
            let outcome = &outcomes(&journals, &tolerant)[0];
            assert_eq!(outcome["status"], if is_done { "completed" } else { "failed" }, "{point}: {outcome}");
        }
    }
}

/// A file with two names in the workspace is written in place.
async fn c16_in_place(way: CrashMode) {
    let rest = "a line\n".repeat(20_000);
    let (old, new) = (format!("old\n{rest}"), format!("new and longer\n{rest}"));
    for point in ["C16.undo", "C16.overwriting", "C16.overwritten"] {
        let mut scenario = CrashScenario::begin(plan(), point, way).await;
        scenario.daemon.write("a.txt", &old);
        let workspace = scenario.daemon.workspace();
        std::fs::hard_link(workspace.join("a.txt"), workspace.join("b.txt")).expect("linked");
        let edit = json!({"file_path": "a.txt", "old_string": "old", "new_string": "new and longer"});
        let (tolerant, _) = crash_in_step(&mut scenario, Step::calls([("Edit", edit)])).await;
        if point == "C16.overwriting" {
            let mixed = scenario.daemon.read("a.txt");
            assert!(mixed != old && mixed != new, "the crash was in the middle");
        }
        continue_unasked(&mut scenario, &tolerant).await;
        let is_done = point == "C16.overwritten";
        let expected = if is_done { &new } else { &old };
        for name in ["a.txt", "b.txt"] {
            assert!(scenario.daemon.read(name) == *expected, "{point}: {name}");
        }
        let records = std::fs::read_dir(scenario.daemon.path("data/agentd/undo")).expect("a folder");
        assert_eq!(records.count(), 0, "{point}: no undo record is left");
        let journals = scenario.finish_and_check().await;
        let outcome = &outcomes(&journals, &tolerant)[0];
        assert_eq!(outcome["status"], if is_done { "completed" } else { "failed" }, "{point}: {outcome}");
    }
}

/// The call updates one file, removes one and creates one.
async fn c16_several(way: CrashMode) {
    let config = "[permissions]\nallow = [\"Edit\", \"Delete\"]\n[tools]\nedit_requires_read = false";
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** Delete File: b.txt\n\
                 *** Add File: c.txt\n+made\n*** End Patch";
    for (point, removed) in [("C16.between", false), ("C16.removed", true)] {
        let mut scenario = CrashScenario::begin(TestDaemon::builder().config(config), point, way).await;
        scenario.daemon.write("a.txt", "old\n");
        scenario.daemon.write("b.txt", "gone\n");
        let (tolerant, _) =
            crash_in_step(&mut scenario, Step::calls([("ApplyPatch", json!({"input": patch}))])).await;
        continue_unasked(&mut scenario, &tolerant).await;
        let is_there = |name: &str| scenario.daemon.workspace().join(name).exists();
        assert_eq!(scenario.daemon.read("a.txt"), "new\n", "{point}");
        assert_eq!((is_there("b.txt"), is_there("c.txt")), (!removed, false), "{point}");
        let told = &results(&scenario)[0];
        let words = if removed {
            "Changed: a.txt, b.txt. Not changed: c.txt."
        } else {
            "Changed: a.txt. Not changed: b.txt, c.txt."
        };
        assert!(told.contains(words), "{point}: {told}");
        let journals = scenario.finish_and_check().await;
        let outcome = &outcomes(&journals, &tolerant)[0];
        assert_eq!(
            (&outcome["status"], &outcome["code"]),
            (&json!("failed"), &json!("partly_done")),
            "{point}"
        );
        let changed =
            journals[&tolerant.session].values().filter(|event| event["type"] == "file.changed").count();
        assert_eq!(changed, if removed { 2 } else { 1 }, "{point}: the result names each changed file");
    }
}

async fn c16_others(way: CrashMode) {
    let notebook = "{\n \"cells\": [\n  {\n   \"cell_type\": \"raw\",\n   \"source\": \"old\"\n  }\n ]\n}\n";
    let edits = json!({"file_path": "f", "edits": [
        {"old_string": "old", "new_string": "middle"}, {"old_string": "middle", "new_string": "new"},
    ]});
    let cell = json!({"notebook_path": "n.ipynb", "cell_number": 0, "new_source": "new"});
    for (tool, file, old, input) in
        [("MultiEdit", "f", "old\n", edits), ("NotebookEdit", "n.ipynb", notebook, cell)]
    {
        for (point, is_done) in [("C16.synced", false), ("C16.replaced", true)] {
            let mut scenario = CrashScenario::begin(plan(), point, way).await;
            scenario.daemon.write(file, old);
            let (tolerant, _) = crash_in_step(&mut scenario, Step::calls([(tool, input.clone())])).await;
            continue_unasked(&mut scenario, &tolerant).await;
            let expected = if is_done { old.replace("old", "new") } else { old.to_owned() };
            assert_eq!(scenario.daemon.read(file), expected, "{tool} {point}");
            let journals = scenario.finish_and_check().await;
            let outcome = &outcomes(&journals, &tolerant)[0];
            assert_eq!(
                outcome["status"],
                if is_done { "completed" } else { "failed" },
                "{tool} {point}: {outcome}"
            );
        }
    }
}

async fn c14_fetch(way: CrashMode) {
    let pages = Pages::serve(|_| Pages::page("text/plain", "the page"));
    let config = "[permissions]\nallow = [\"WebFetch\"]\n[tools]\nweb_allowed_private = [\"127.0.0.1\"]";
    let mut scenario = CrashScenario::begin(TestDaemon::builder().config(config), "C14", way).await;
    let (tolerant, _) =
        crash_in_step(&mut scenario, Step::calls([("WebFetch", json!({"url": pages.base}))])).await;
    continue_unasked(&mut scenario, &tolerant).await;
    assert_eq!(pages.asked(), 1, "the daemon does not fetch the page again");
    assert!(results(&scenario)[0].contains("Fetch it again"), "{:?}", results(&scenario));
    let journals = scenario.finish_and_check().await;
    let outcome = &outcomes(&journals, &tolerant)[0];
    assert_eq!((&outcome["status"], &outcome["code"]), (&json!("failed"), &json!("interrupted")));
}
