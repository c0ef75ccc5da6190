//! C3 to C7 and C17: the daemon sends a model request, receives the answer and sends the next request.

use serde_json::{Value, json};

use super::client_log::StreamCursor;
use super::invariants::Journals;
use super::matrix_ways;
use super::scenario::{CrashScenario, bash};
use super::tolerant_client::{AnswerPolicy, CrashTolerantClient};
use crate::support::daemon::{CrashMode, MESSAGE_APIS, TestDaemon};
use crate::support::model_server::{Gate, Step};

matrix_ways! {
    c3_unsent_model_request_is_sent_after_restart => c3,
    c4_sent_model_request_is_sent_again => c4,
    c5_interrupted_text_is_kept_and_marked => c5,
    c6_interrupted_tool_call_is_discarded_after_restart => c6,
    c7_uncommitted_model_reply_is_requested_again => c7,
    c17_committed_tool_results_are_sent_after_restart => c17,
    c3_c7_uncommitted_title_helper_call_is_abandoned => title,
}

/// The turn continues after one resume and completes.
async fn continue_turn(scenario: &mut CrashScenario, tolerant: &CrashTolerantClient) {
    scenario.restart().await;
    let tolerant = scenario.join(tolerant).await;
    tolerant.run(StreamCursor::default(), AnswerPolicy::AnswersOneTurn).await.expect("no panic");
}

fn of_kind<'a>(journals: &'a Journals, tolerant: &CrashTolerantClient, kind: &str) -> Vec<&'a Value> {
    journals[&tolerant.session].values().filter(|event| event["type"] == kind).collect()
}

fn resumed_once(journals: &Journals, tolerant: &CrashTolerantClient) {
    let resumed = of_kind(journals, tolerant, "turn.resumed");
    assert_eq!(resumed.len(), 1, "{resumed:?}");
    assert_eq!(resumed[0]["resumes"], 1);
}

async fn c3(way: CrashMode) {
    let mut scenario = CrashScenario::begin(TestDaemon::builder(), "C3", way).await;
    scenario.daemon.models.push(Step::text("Hello."));
    let tolerant = scenario.session().await;
    tolerant.submit("hello", "k").await;
    scenario.wait_crashed().await;
    assert_eq!(scenario.daemon.models.requests().len(), 0, "nothing was sent");
    continue_turn(&mut scenario, &tolerant).await;
    assert_eq!(scenario.daemon.models.requests().len(), 1);
    let journals = scenario.finish_and_check().await;
    resumed_once(&journals, &tolerant);
}

/// The response head has arrived (crash point), or nothing has (killed while the server is silent).
async fn c4(way: CrashMode) {
    for api in MESSAGE_APIS {
        for silent in [false, true] {
            let plan = TestDaemon::builder().api(api);
            let mut scenario = if silent && way == CrashMode::Kill {
                CrashScenario::start_idle(plan).await
            } else {
                CrashScenario::begin(plan, "C4", way).await
            };
            let gate = Gate::new();
            scenario.daemon.models.push(match silent {
                true if way == CrashMode::Kill => Step::text("Hello.").hold(&gate),
                _ => Step::text("Hello.").hold_after(0, &gate),
            });
            scenario.daemon.models.push(Step::text("Hello."));
            let tolerant = scenario.session().await;
            tolerant.submit("hello", "k").await;
            if silent && way == CrashMode::Kill {
                gate.wait_reached().await;
                scenario.kill_and_check().await;
            } else {
                scenario.wait_crashed().await;
            }
            continue_turn(&mut scenario, &tolerant).await;
            let requests = scenario.daemon.models.requests();
            assert_eq!(requests.len(), 2);
            assert_eq!(requests[0].body, requests[1].body, "the same request, byte for byte");
            let journals = scenario.finish_and_check().await;
            resumed_once(&journals, &tolerant);
            lost_attempt_is_booked(&journals, &tolerant);
        }
    }
}

/// An attempt whose answer is lost is charged with its maximum possible cost.
fn lost_attempt_is_booked(journals: &Journals, tolerant: &CrashTolerantClient) {
    let booked = of_kind(journals, tolerant, "usage");
    assert_eq!(booked.len(), 1, "{booked:?}");
    assert_eq!(booked[0]["reason"], "lost_attempt");
    assert!(booked[0]["usage"]["input_tokens"].as_u64() > Some(0), "{:?}", booked[0]);
}

async fn c5(way: CrashMode) {
    for api in MESSAGE_APIS {
        for point in ["C5", "C5:3"] {
            let mut scenario = CrashScenario::begin(TestDaemon::builder().api(api), point, way).await;
            let steps = ["one ", "two ", "three ", "four"].map(str::to_owned);
            // The gate makes the words arrive one by one and holds back the end of the answer.
            let gates = [Gate::new(), Gate::new()];
            let shut = Gate::new();
            let step = Step::pieces(steps).thinking("well well");
            let step = step.hold_after(3, &gates[0]).hold_after(4, &gates[1]).hold_after(5, &shut);
            let first = Step::pieces(["one two three"]).hold_after(1, &shut);
            scenario.daemon.models.push(if point == "C5" { first } else { step });
            scenario.daemon.models.push(Step::text("whole answer"));
            let tolerant = scenario.session().await;
            let flight = tolerant.run(StreamCursor::default(), AnswerPolicy::Watches);
            tolerant.submit("count", "k").await;
            if point != "C5" {
                let mut log = tolerant.log(0).await.expect("a reply");
                for gate in &gates {
                    log.wait_for("message.text_delta").await;
                    gate.open();
                }
            }
            scenario.wait_crashed().await;
            let reading = flight.await.expect("no panic");
            scenario.restart().await;
            let tolerant = scenario.join(&tolerant).await;
            tolerant.run(reading, AnswerPolicy::AnswersOneTurn).await.expect("no panic");
            let journals = scenario.check_alive(&tolerant).await;
            let cut = interrupted(&journals, &tolerant);
            let text = cut["item"]["text"].as_str().expect("text");
            assert!(!text.is_empty() && "one two three four".starts_with(text), "{point}: {text:?}");
            let requests = scenario.daemon.models.requests();
            assert_eq!(requests.len(), 2);
            assert_eq!(requests[0].body, requests[1].body, "the partial message is not in the next request");
            let journals = scenario.finish_and_check().await;
            resumed_once(&journals, &tolerant);
            lost_attempt_is_booked(&journals, &tolerant);
        }
    }
}

/// The only message that was interrupted.
fn interrupted<'a>(journals: &'a Journals, tolerant: &CrashTolerantClient) -> &'a Value {
    let messages = of_kind(journals, tolerant, "message.completed");
    let mut cut = messages.into_iter().filter(|event| event["item"]["status"] == "interrupted");
    let first = cut.next().expect("a message was cut short");
    assert_eq!(cut.next(), None, "one message was cut short");
    first
}

async fn c6(way: CrashMode) {
    for api in MESSAGE_APIS {
        for point in ["C6", "C6:2"] {
            let mut scenario =
                CrashScenario::begin(TestDaemon::builder().api(api).config(ALLOWED), point, way).await;
            let step = Step::calls([bash("echo once >> log.txt")]).say("I log it.");
            // The arguments arrive in two parts after three words; the end never arrives.
            let (gate, shut) = (Gate::new(), Gate::new());
            let step = step.hold_after(5, &shut);
            scenario.daemon.models.push(if point == "C6" { step } else { step.hold_after(4, &gate) });
            scenario.daemon.models.push(Step::text("Never mind."));
            let tolerant = scenario.session().await;
            tolerant.submit("log it", "k").await;
            if point != "C6" {
                let mut log = tolerant.log(0).await.expect("a reply");
                log.wait_for("message.tool_input_delta").await;
                gate.open();
            }
            scenario.wait_crashed().await;
            continue_turn(&mut scenario, &tolerant).await;
            let journals = scenario.check_alive(&tolerant).await;
            interrupted(&journals, &tolerant);
            for kind in ["tool.requested", "tool.started", "tool.completed", "permission.requested"] {
                assert_eq!(of_kind(&journals, &tolerant, kind).len(), 0, "{point}: {kind}");
            }
            assert_eq!(scenario.daemon.read("log.txt"), "", "{point}: it ran");
            let requests = scenario.daemon.models.requests();
            assert_eq!(requests[0].body, requests[1].body);
            scenario.finish_and_check().await;
        }
    }
}

const ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

async fn c7(way: CrashMode) {
    for (calls, at_once) in [(false, false), (true, false), (false, true), (true, true)] {
        // A call that starts while its answer streams keeps the answer.
        let whole = format!("{ALLOWED}\n[session.ablation]\nstreaming_execution = true");
        let mut scenario = CrashScenario::begin(TestDaemon::builder().config(&whole), "C7", way).await;
        let first = Step::text("lost words").thinking("well");
        let lost = Step::calls([bash("echo lost >> log.txt")]).say("lost words");
        let (words, step) = if calls { (2, lost) } else { (3, first) };
        let gate = Gate::new();
        scenario.daemon.models.push(if at_once { step } else { step.hold_after(words, &gate) });
        scenario.daemon.models.push(Step::text("whole answer"));
        let tolerant = scenario.session().await;
        tolerant.submit("tell me", "k").await;
        if !at_once {
            let mut log = tolerant.log(0).await.expect("a reply");
            let is_last = |it: &Value| it["type"] == "message.text_delta" && has_text(it, "words");
            log.find("the last word", is_last).await;
            gate.open();
        }
        scenario.wait_crashed().await;
        continue_turn(&mut scenario, &tolerant).await;
        let journals = scenario.check_alive(&tolerant).await;
        if at_once {
            // The deltas may have arrived before the end or together with it.
            let messages = of_kind(&journals, &tolerant, "message.completed");
            let cut: Vec<&&Value> =
                messages.iter().filter(|it| it["item"]["status"] == "interrupted").collect();
            assert!(cut.len() <= 1, "{cut:?}");
            assert!(
                cut.iter().all(|it| "lost words".starts_with(it["item"]["text"].as_str().unwrap_or("?")))
            );
        } else {
            assert_eq!(interrupted(&journals, &tolerant)["item"]["text"], "lost words");
        }
        assert_eq!(of_kind(&journals, &tolerant, "tool.requested").len(), 0);
        assert_eq!(scenario.daemon.read("log.txt"), "");
        let requests = scenario.daemon.models.requests();
        assert_eq!((requests.len(), &requests[0].body), (2, &requests[1].body));
        let journals = scenario.finish_and_check().await;
        resumed_once(&journals, &tolerant);
        lost_attempt_is_booked(&journals, &tolerant);
    }
}

fn has_text(event: &Value, word: &str) -> bool {
    event["text"].as_str().is_some_and(|text| text.contains(word))
}

/// A helper call is closed, charged and not repeated; the session is unchanged.
async fn title(way: CrashMode) {
    for (point, sent) in [("C3.helper", 0), ("C7.helper", 1)] {
        let plan = TestDaemon::builder().config("quick = \"scripted/small\"");
        let mut scenario = CrashScenario::begin(plan, point, way).await;
        scenario.daemon.models.set_fallback(|request| match request.body["model"] == "small" {
            true => Step::text("A title"),
            false => Step::text("Hello."),
        });
        let tolerant = scenario.session().await;
        tolerant.submit("hello", "k").await;
        scenario.wait_crashed().await;
        assert_eq!(scenario.daemon.models.requests().len(), 1 + sent);
        scenario.restart().await;
        let journals = scenario.check_alive(&tolerant).await;
        assert_eq!(of_kind(&journals, &tolerant, "turn.completed").len(), 1, "{point}");
        let (session, mut log) = scenario.reopen_session(&tolerant).await;
        let turn = session.submit("again").await;
        log.find("the end", |it| it["type"] == "turn.completed" && it["turn_id"] == turn.as_str()).await;
        log.find("a title", |it| it["title"] == "A title").await;
        let journals = scenario.check_alive(&tolerant).await;
        let ends = of_kind(&journals, &tolerant, "helper.completed");
        assert_eq!(
            (ends.len(), &ends[0]["fault"], ends[1].get("fault")),
            (2, &json!("stopped"), None),
            "{point}"
        );
        let booked = of_kind(&journals, &tolerant, "usage");
        let reasons: Vec<&Value> = booked.iter().map(|event| &event["reason"]).collect();
        assert_eq!(reasons, ["lost_attempt", "helper"], "{point}: once each");
        scenario.finish_and_check().await;
    }
}

async fn c17(way: CrashMode) {
    let mut scenario = CrashScenario::begin(TestDaemon::builder().config(ALLOWED), "C17", way).await;
    scenario
        .daemon
        .models
        .push(Step::calls([bash("echo once >> log.txt; echo said"), ("LS", json!({"path": "."}))]));
    scenario.daemon.models.push(Step::text("It is logged."));
    let tolerant = scenario.session().await;
    tolerant.submit("log it", "k").await;
    scenario.wait_crashed().await;
    assert_eq!(scenario.daemon.models.requests().len(), 1, "the results were not sent");
    continue_turn(&mut scenario, &tolerant).await;
    let requests = scenario.daemon.models.requests();
    assert_eq!(requests.len(), 2);
    let results = requests[1].tool_results();
    assert_eq!(results.len(), 2);
    assert!(results[0].1.contains("said") && results[1].1.contains("log.txt"), "{results:?}");
    assert_eq!(scenario.daemon.read("log.txt"), "once\n");
    let journals = scenario.finish_and_check().await;
    resumed_once(&journals, &tolerant);
    let outcomes = of_kind(&journals, &tolerant, "tool.completed");
    assert!(outcomes.iter().all(|event| event["status"] == "completed"), "{outcomes:?}");
}
