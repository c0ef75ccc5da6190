//! C1 and C2: a submit and its acknowledgement.

use super::matrix_ways;
use super::pilot::AnswerPolicy;
use super::story::CrashScenario;
use super::witness::StreamCursor;
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::{Gate, Step};

matrix_ways! {
    c1_uncommitted_submit_creates_no_turn => c1,
    c2_committed_submit_creates_one_turn => c2,
    c2_committed_queued_submit_creates_one_turn => c2_queued,
}

async fn c1(way: CrashMode) {
    for point in ["C1.received", "C1.decided"] {
        let mut story = CrashScenario::begin(TestDaemon::builder(), point, way).await;
        let pilot = story.session().await;
        assert_eq!(pilot.submit("hello", "k").await, None, "nothing is acknowledged");
        let journals = story.crashed().await;
        let is_of_a_turn = |kind: &str| kind.starts_with("turn.") || kind.starts_with("message.");
        let kinds = journals[&pilot.session].values().map(|event| event["type"].as_str().expect("a type"));
        assert_eq!(kinds.filter(|kind| is_of_a_turn(kind)).count(), 0, "{point}: there is a turn");

        story.restart().await;
        story.daemon.models.push(Step::text("Hello."));
        let pilot = story.join(&pilot).await;
        pilot.submit("hello", "k").await.expect("it lives").expect("accepted");
        pilot.run(StreamCursor::default(), AnswerPolicy::AnswersOneTurn).await.expect("no panic");
        let journals = story.finish_and_check().await;
        let started = journals[&pilot.session].values().filter(|event| event["type"] == "turn.started");
        assert_eq!(started.count(), 2, "{point}: the turn, and the one that ends the story");
    }
}

async fn c2(way: CrashMode) {
    for point in ["C2.committed", "C2.performed"] {
        let mut story = CrashScenario::begin(TestDaemon::builder(), point, way).await;
        let gate = Gate::new();
        story.daemon.models.otherwise(move |_| Step::text("Hello.").hold(&gate));
        let pilot = story.session().await;
        assert_eq!(pilot.submit("hello", "k").await, None, "nothing is acknowledged");
        let journals = story.crashed().await;
        let mut turns = journals[&pilot.session].values().filter(|event| event["type"] == "turn.started");
        let turn = turns.next().expect("there is a turn")["turn_id"].clone();
        assert_eq!(turns.next(), None);

        story.daemon.models.otherwise(|_| Step::text("Hello."));
        story.restart().await;
        let pilot = story.join(&pilot).await;
        let again = pilot.submit("hello", "k").await.expect("it lives").expect("accepted");
        assert_eq!(again["turn_id"], turn, "{point}: the same turn");
        pilot.run(StreamCursor::default(), AnswerPolicy::AnswersOneTurn).await.expect("no panic");
        let again = pilot.submit("hello", "k").await.expect("it lives").expect("accepted");
        assert_eq!(again["turn_id"], turn, "{point}: also when it is over");
        let journals = story.finish_and_check().await;
        let started = journals[&pilot.session].values().filter(|event| event["type"] == "turn.started");
        assert_eq!(started.count(), 2, "{point}: the turn, and the one that ends the story");
    }
}

async fn c2_queued(way: CrashMode) {
    for point in ["C2.committed:2", "C2.performed:2"] {
        let mut story = CrashScenario::begin(TestDaemon::builder(), point, way).await;
        let gate = Gate::new();
        let hold = gate.clone();
        story.daemon.models.otherwise(move |_| Step::text("one two").hold_after(1, &hold));
        let pilot = story.session().await;
        pilot.submit("first", "k1").await.expect("it lives").expect("accepted");
        assert_eq!(pilot.submit("second", "k2").await, None, "nothing is acknowledged");
        let journals = story.crashed().await;
        let mut queued = journals[&pilot.session].values().filter(|event| event["type"] == "turn.queued");
        let turn = queued.next().expect("it waits")["turn_id"].clone();
        assert_eq!(queued.next(), None);

        gate.open();
        story.restart().await;
        let pilot = story.join(&pilot).await;
        let again = pilot.submit("second", "k2").await.expect("it lives").expect("accepted");
        assert_eq!(again["turn_id"], turn, "{point}: the same turn");
        let (_, mut log) = story.reopen_session(&pilot).await;
        log.turn_ends("success").await;
        assert_eq!(log.wait_for("turn.completed").await["turn_id"], turn);
        story.finish_and_check().await;
    }
}
