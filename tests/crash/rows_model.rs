//! C3 to C7 and C17: the daemon sends a model request, receives the answer and sends the next request.

use serde_json::{Value, json};

use super::invariants::Journals;
use super::matrix_ways;
use super::pilot::{AnswerPolicy, CrashTolerantClient};
use super::story::{CrashScenario, bash};
use super::witness::StreamCursor;
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
async fn goes_on(story: &mut CrashScenario, pilot: &CrashTolerantClient) {
    story.restart().await;
    let pilot = story.join(pilot).await;
    pilot.run(StreamCursor::default(), AnswerPolicy::AnswersOneTurn).await.expect("no panic");
}

fn of_kind<'a>(journals: &'a Journals, pilot: &CrashTolerantClient, kind: &str) -> Vec<&'a Value> {
    journals[&pilot.session].values().filter(|event| event["type"] == kind).collect()
}

fn resumed_once(journals: &Journals, pilot: &CrashTolerantClient) {
    let resumed = of_kind(journals, pilot, "turn.resumed");
    assert_eq!(resumed.len(), 1, "{resumed:?}");
    assert_eq!(resumed[0]["resumes"], 1);
}

async fn c3(way: CrashMode) {
    let mut story = CrashScenario::begin(TestDaemon::builder(), "C3", way).await;
    story.daemon.models.push(Step::text("Hello."));
    let pilot = story.session().await;
    pilot.submit("hello", "k").await;
    story.crashed().await;
    assert_eq!(story.daemon.models.requests().len(), 0, "nothing was sent");
    goes_on(&mut story, &pilot).await;
    assert_eq!(story.daemon.models.requests().len(), 1);
    let journals = story.finish_and_check().await;
    resumed_once(&journals, &pilot);
}

/// The response head has arrived (crash point), or nothing has (killed while the server is silent).
async fn c4(way: CrashMode) {
    for api in MESSAGE_APIS {
        for silent in [false, true] {
            let plan = TestDaemon::builder().api(api);
            let mut story = if silent && way == CrashMode::Kill {
                CrashScenario::start_idle(plan).await
            } else {
                CrashScenario::begin(plan, "C4", way).await
            };
            let gate = Gate::new();
            story.daemon.models.push(match silent {
                true if way == CrashMode::Kill => Step::text("Hello.").hold(&gate),
                _ => Step::text("Hello.").hold_after(0, &gate),
            });
            story.daemon.models.push(Step::text("Hello."));
            let pilot = story.session().await;
            pilot.submit("hello", "k").await;
            if silent && way == CrashMode::Kill {
                gate.reached().await;
                story.killed().await;
            } else {
                story.crashed().await;
            }
            goes_on(&mut story, &pilot).await;
            let requests = story.daemon.models.requests();
            assert_eq!(requests.len(), 2);
            assert_eq!(requests[0].body, requests[1].body, "the same request, byte for byte");
            let journals = story.finish_and_check().await;
            resumed_once(&journals, &pilot);
            lost_attempt_is_booked(&journals, &pilot);
        }
    }
}

/// An attempt whose answer is lost is charged with its maximum possible cost.
fn lost_attempt_is_booked(journals: &Journals, pilot: &CrashTolerantClient) {
    let booked = of_kind(journals, pilot, "usage");
    assert_eq!(booked.len(), 1, "{booked:?}");
    assert_eq!(booked[0]["reason"], "lost_attempt");
    assert!(booked[0]["usage"]["input_tokens"].as_u64() > Some(0), "{:?}", booked[0]);
}

async fn c5(way: CrashMode) {
    for api in MESSAGE_APIS {
        for point in ["C5", "C5:3"] {
            let mut story = CrashScenario::begin(TestDaemon::builder().api(api), point, way).await;
            let steps = ["one ", "two ", "three ", "four"].map(str::to_owned);
            // The gate makes the words arrive one by one and holds back the end of the answer.
            let gates = [Gate::new(), Gate::new()];
            let shut = Gate::new();
            let step = Step::pieces(steps).thinking("well well");
            let step = step.hold_after(3, &gates[0]).hold_after(4, &gates[1]).hold_after(5, &shut);
            let first = Step::pieces(["one two three"]).hold_after(1, &shut);
            story.daemon.models.push(if point == "C5" { first } else { step });
            story.daemon.models.push(Step::text("whole answer"));
            let pilot = story.session().await;
            let flight = pilot.run(StreamCursor::default(), AnswerPolicy::Watches);
            pilot.submit("count", "k").await;
            if point != "C5" {
                let mut log = pilot.log(0).await.expect("it lives");
                for gate in &gates {
                    log.wait_for("message.text_delta").await;
                    gate.open();
                }
            }
            story.crashed().await;
            let reading = flight.await.expect("no panic");
            story.restart().await;
            let pilot = story.join(&pilot).await;
            pilot.run(reading, AnswerPolicy::AnswersOneTurn).await.expect("no panic");
            let journals = story.check_alive(&pilot).await;
            let cut = interrupted(&journals, &pilot);
            let text = cut["item"]["text"].as_str().expect("text");
            assert!(!text.is_empty() && "one two three four".starts_with(text), "{point}: {text:?}");
            let requests = story.daemon.models.requests();
            assert_eq!(requests.len(), 2);
            assert_eq!(requests[0].body, requests[1].body, "the partial message is not in the next request");
            let journals = story.finish_and_check().await;
            resumed_once(&journals, &pilot);
            lost_attempt_is_booked(&journals, &pilot);
        }
    }
}

/// The only message that was interrupted.
fn interrupted<'a>(journals: &'a Journals, pilot: &CrashTolerantClient) -> &'a Value {
    let messages = of_kind(journals, pilot, "message.completed");
    let mut cut = messages.into_iter().filter(|event| event["item"]["status"] == "interrupted");
    let first = cut.next().expect("a message was cut short");
    assert_eq!(cut.next(), None, "one message was cut short");
    first
}

async fn c6(way: CrashMode) {
    for api in MESSAGE_APIS {
        for point in ["C6", "C6:2"] {
            let mut story =
                CrashScenario::begin(TestDaemon::builder().api(api).config(ALLOWED), point, way).await;
            let step = Step::calls([bash("echo once >> log.txt")]).say("I log it.");
            // The arguments arrive in two parts after three words; the end never arrives.
            let (gate, shut) = (Gate::new(), Gate::new());
            let step = step.hold_after(5, &shut);
            story.daemon.models.push(if point == "C6" { step } else { step.hold_after(4, &gate) });
            story.daemon.models.push(Step::text("Never mind."));
            let pilot = story.session().await;
            pilot.submit("log it", "k").await;
            if point != "C6" {
                let mut log = pilot.log(0).await.expect("it lives");
                log.wait_for("message.tool_input_delta").await;
                gate.open();
            }
            story.crashed().await;
            goes_on(&mut story, &pilot).await;
            let journals = story.check_alive(&pilot).await;
            interrupted(&journals, &pilot);
            for kind in ["tool.requested", "tool.started", "tool.completed", "permission.requested"] {
                assert_eq!(of_kind(&journals, &pilot, kind).len(), 0, "{point}: {kind}");
            }
            assert_eq!(story.daemon.read("log.txt"), "", "{point}: it ran");
            let requests = story.daemon.models.requests();
            assert_eq!(requests[0].body, requests[1].body);
            story.finish_and_check().await;
        }
    }
}

const ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

async fn c7(way: CrashMode) {
    for (calls, at_once) in [(false, false), (true, false), (false, true), (true, true)] {
        // A call that starts while its answer streams keeps the answer.
        let whole = format!("{ALLOWED}\n[session.ablation]\nstreaming_execution = true");
        let mut story = CrashScenario::begin(TestDaemon::builder().config(&whole), "C7", way).await;
        let first = Step::text("lost words").thinking("well");
        let lost = Step::calls([bash("echo lost >> log.txt")]).say("lost words");
        let (words, step) = if calls { (2, lost) } else { (3, first) };
        let gate = Gate::new();
        story.daemon.models.push(if at_once { step } else { step.hold_after(words, &gate) });
        story.daemon.models.push(Step::text("whole answer"));
        let pilot = story.session().await;
        pilot.submit("tell me", "k").await;
        if !at_once {
            let mut log = pilot.log(0).await.expect("it lives");
            let is_last = |it: &Value| it["type"] == "message.text_delta" && says(it, "words");
            log.find("the last word", is_last).await;
            gate.open();
        }
        story.crashed().await;
        goes_on(&mut story, &pilot).await;
        let journals = story.check_alive(&pilot).await;
        if at_once {
            // The deltas may have arrived before the end or together with it.
            let messages = of_kind(&journals, &pilot, "message.completed");
            let cut: Vec<&&Value> =
                messages.iter().filter(|it| it["item"]["status"] == "interrupted").collect();
            assert!(cut.len() <= 1, "{cut:?}");
            assert!(
                cut.iter().all(|it| "lost words".starts_with(it["item"]["text"].as_str().unwrap_or("?")))
            );
        } else {
            assert_eq!(interrupted(&journals, &pilot)["item"]["text"], "lost words");
        }
        assert_eq!(of_kind(&journals, &pilot, "tool.requested").len(), 0);
        assert_eq!(story.daemon.read("log.txt"), "");
        let requests = story.daemon.models.requests();
        assert_eq!((requests.len(), &requests[0].body), (2, &requests[1].body));
        let journals = story.finish_and_check().await;
        resumed_once(&journals, &pilot);
        lost_attempt_is_booked(&journals, &pilot);
    }
}

fn says(event: &Value, word: &str) -> bool {
    event["text"].as_str().is_some_and(|text| text.contains(word))
}

/// A helper call is closed, charged and not repeated; the session is unchanged.
async fn title(way: CrashMode) {
    for (point, sent) in [("C3.helper", 0), ("C7.helper", 1)] {
        let plan = TestDaemon::builder().config("quick = \"scripted/small\"");
        let mut story = CrashScenario::begin(plan, point, way).await;
        story.daemon.models.otherwise(|request| match request.body["model"] == "small" {
            true => Step::text("A title"),
            false => Step::text("Hello."),
        });
        let pilot = story.session().await;
        pilot.submit("hello", "k").await;
        story.crashed().await;
        assert_eq!(story.daemon.models.requests().len(), 1 + sent);
        story.restart().await;
        let journals = story.check_alive(&pilot).await;
        assert_eq!(of_kind(&journals, &pilot, "turn.completed").len(), 1, "{point}");
        let (session, mut log) = story.reopen_session(&pilot).await;
        let turn = session.submit("again").await;
        log.find("the end", |it| it["type"] == "turn.completed" && it["turn_id"] == turn.as_str()).await;
        log.find("a title", |it| it["title"] == "A title").await;
        let journals = story.check_alive(&pilot).await;
        let ends = of_kind(&journals, &pilot, "helper.completed");
        assert_eq!(
            (ends.len(), &ends[0]["fault"], ends[1].get("fault")),
            (2, &json!("stopped"), None),
            "{point}"
        );
        let booked = of_kind(&journals, &pilot, "usage");
        let reasons: Vec<&Value> = booked.iter().map(|event| &event["reason"]).collect();
        assert_eq!(reasons, ["lost_attempt", "helper"], "{point}: once each");
        story.finish_and_check().await;
    }
}

async fn c17(way: CrashMode) {
    let mut story = CrashScenario::begin(TestDaemon::builder().config(ALLOWED), "C17", way).await;
    story
        .daemon
        .models
        .push(Step::calls([bash("echo once >> log.txt; echo said"), ("LS", json!({"path": "."}))]));
    story.daemon.models.push(Step::text("It is logged."));
    let pilot = story.session().await;
    pilot.submit("log it", "k").await;
    story.crashed().await;
    assert_eq!(story.daemon.models.requests().len(), 1, "the results were not sent");
    goes_on(&mut story, &pilot).await;
    let requests = story.daemon.models.requests();
    assert_eq!(requests.len(), 2);
    let results = requests[1].tool_results();
    assert_eq!(results.len(), 2);
    assert!(results[0].1.contains("said") && results[1].1.contains("log.txt"), "{results:?}");
    assert_eq!(story.daemon.read("log.txt"), "once\n");
    let journals = story.finish_and_check().await;
    resumed_once(&journals, &pilot);
    let outcomes = of_kind(&journals, &pilot, "tool.completed");
    assert!(outcomes.iter().all(|event| event["status"] == "completed"), "{outcomes:?}");
}
