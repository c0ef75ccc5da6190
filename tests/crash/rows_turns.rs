//! C1 and C2: a submit and its acknowledgement.

use super::client_log::StreamCursor;
use super::matrix_ways;
use super::scenario::CrashScenario;
use super::tolerant_client::AnswerPolicy;
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::{Gate, Step};

matrix_ways! {
    c1_uncommitted_submit_creates_no_turn => c1,
    c2_committed_submit_creates_one_turn => c2,
    c2_committed_queued_submit_creates_one_turn => c2_queued,
}

async fn c1(way: CrashMode) {
    for point in ["C1.received", "C1.decided"] {
        let mut scenario = CrashScenario::begin(TestDaemon::builder(), point, way).await;
        let tolerant = scenario.session().await;
        assert_eq!(tolerant.submit("hello", "k").await, None, "nothing is acknowledged");
        let journals = scenario.wait_crashed().await;
        let is_of_a_turn = |kind: &str| kind.starts_with("turn.") || kind.starts_with("message.");
        let kinds = journals[&tolerant.session].values().map(|event| event["type"].as_str().expect("a type"));
        assert_eq!(kinds.filter(|kind| is_of_a_turn(kind)).count(), 0, "{point}: there is a turn");

        scenario.restart().await;
        scenario.daemon.models.push(Step::text("Hello."));
        let tolerant = scenario.join(&tolerant).await;
        tolerant.submit("hello", "k").await.expect("a reply").expect("accepted");
        tolerant.run(StreamCursor::default(), AnswerPolicy::AnswersOneTurn).await.expect("no panic");
        let journals = scenario.finish_and_check().await;
        let started = journals[&tolerant.session].values().filter(|event| event["type"] == "turn.started");
        assert_eq!(started.count(), 2, "{point}: the turn, and the one that ends the scenario");
    }
}

async fn c2(way: CrashMode) {
    for point in ["C2.committed", "C2.performed"] {
        let mut scenario = CrashScenario::begin(TestDaemon::builder(), point, way).await;
        let gate = Gate::new();
        scenario.daemon.models.set_fallback(move |_| Step::text("Hello.").hold(&gate));
        let tolerant = scenario.session().await;
        assert_eq!(tolerant.submit("hello", "k").await, None, "nothing is acknowledged");
        let journals = scenario.wait_crashed().await;
        let mut turns = journals[&tolerant.session].values().filter(|event| event["type"] == "turn.started");
        let turn = turns.next().expect("there is a turn")["turn_id"].clone();
        assert_eq!(turns.next(), None);

        scenario.daemon.models.set_fallback(|_| Step::text("Hello."));
        scenario.restart().await;
        let tolerant = scenario.join(&tolerant).await;
        let again = tolerant.submit("hello", "k").await.expect("a reply").expect("accepted");
        assert_eq!(again["turn_id"], turn, "{point}: the same turn");
        tolerant.run(StreamCursor::default(), AnswerPolicy::AnswersOneTurn).await.expect("no panic");
        let again = tolerant.submit("hello", "k").await.expect("a reply").expect("accepted");
        assert_eq!(again["turn_id"], turn, "{point}: also when it is over");
        let journals = scenario.finish_and_check().await;
        let started = journals[&tolerant.session].values().filter(|event| event["type"] == "turn.started");
        assert_eq!(started.count(), 2, "{point}: the turn, and the one that ends the scenario");
    }
}

async fn c2_queued(way: CrashMode) {
    for point in ["C2.committed:2", "C2.performed:2"] {
        let mut scenario = CrashScenario::begin(TestDaemon::builder(), point, way).await;
        let gate = Gate::new();
        let hold = gate.clone();
        scenario.daemon.models.set_fallback(move |_| Step::text("one two").hold_after(1, &hold));
        let tolerant = scenario.session().await;
        tolerant.submit("first", "k1").await.expect("a reply").expect("accepted");
        assert_eq!(tolerant.submit("second", "k2").await, None, "nothing is acknowledged");
        let journals = scenario.wait_crashed().await;
        let mut queued = journals[&tolerant.session].values().filter(|event| event["type"] == "turn.queued");
        let turn = queued.next().expect("it waits")["turn_id"].clone();
        assert_eq!(queued.next(), None);

        gate.open();
        scenario.restart().await;
        let tolerant = scenario.join(&tolerant).await;
        let again = tolerant.submit("second", "k2").await.expect("a reply").expect("accepted");
        assert_eq!(again["turn_id"], turn, "{point}: the same turn");
        let (_, mut log) = scenario.reopen_session(&tolerant).await;
        log.turn_ends("success").await;
        assert_eq!(log.wait_for("turn.completed").await["turn_id"], turn);
        scenario.finish_and_check().await;
    }
}
