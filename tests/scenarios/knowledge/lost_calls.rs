//! Model calls that are cancelled or take too long: they end, and the ledger records their possible cost.

use serde_json::{Value, json};

use super::{follow, idle, index, query, start, start_with};
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{POLL_INTERVAL, with_deadline};

#[tokio::test]
async fn cancelled_query_ends_stream_once_and_is_not_cached() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let gate = Gate::new();
    daemon.models.push(Step::pieces(["one ", "two ", "three"]).hold_after(1, &gate));
    let params = json!({"stream": true, "mode": "naive", "query": "parser"});
    let started = query(&alice, &daemon, params).await;
    let work = json!({ "query_id": started["query_id"] });
    let mut seen = follow(&alice, &daemon, work.clone()).await;
    daemon.models.wait_for_requests(1).await;
    let cancel = json!({"workspace": daemon.workspace(), "queryId": started["query_id"]});
    assert_eq!(alice.call("knowledge.cancel", cancel).await["cancelled"], true);
    seen.wait_for("cancelled").await;
    daemon.models.wait_for_hangups(1).await;
    gate.open();
    daemon.models.push(Step::text("Again."));
    let again = query(&alice, &daemon, json!({"mode": "naive", "query": "parser"})).await;
    assert_eq!(again["response"], "Again.");
}

/// The ledger once it has this many calls without an answer.
async fn wait_lost_call(client: &Client, daemon: &TestDaemon, count: u64) -> Value {
    let wait = async {
        loop {
            let usage = client.call("model.usage", json!({})).await["total"].clone();
            if usage["lost_attempts"].as_u64() >= Some(count) {
                return usage;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let usage = with_deadline("the booking", || daemon.log(), wait).await;
    assert_eq!(
        (&usage["lost_attempts"], &usage["estimated_calls"]),
        (&json!(count), &json!(count)),
        "{usage}"
    );
    assert!(
        usage["input_tokens"].as_u64() > Some(100) && usage["output_tokens"].as_u64() > Some(0),
        "{usage}"
    );
    usage
}

#[tokio::test]
async fn calls_of_cancelled_and_abandoned_queries_are_booked() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let gate = Gate::new();
    daemon.models.push(Step::pieces(["one ", "two ", "three"]).hold_after(1, &gate));
    let params = json!({"stream": true, "mode": "naive", "query": "parser"});
    let started = query(&alice, &daemon, params).await;
    daemon.models.wait_for_requests(1).await;
    gate.wait_reached().await;
    let cancel = json!({"workspace": daemon.workspace(), "query_id": started["query_id"]});
    alice.call("knowledge.cancel", cancel).await;
    wait_lost_call(&alice, &daemon, 1).await;

    // A client that closes its connection cancels its query too.
    let gate = Gate::new();
    daemon.models.push(Step::pieces(["one ", "two ", "three"]).hold_after(1, &gate));
    let bob = daemon.client("bob").await;
    let ask = json!({"workspace": daemon.workspace(), "mode": "naive", "query": "lexer"});
    bob.send("knowledge.query", ask).await;
    daemon.models.wait_for_requests(2).await;
    gate.wait_reached().await;
    drop(bob);
    wait_lost_call(&alice, &daemon, 2).await;
}

#[tokio::test]
async fn calls_of_a_cancelled_job_are_booked_and_the_next_job_goes_on() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    let gate = Gate::new();
    daemon.models.push(Step::pieces(["entity", "<|#|>A"]).hold_after(1, &gate));
    daemon.models.set_fallback(|_| {
        Step::text("entity<|#|>Alpha<|#|>thing<|#|>It is there.\n<|COMPLETE|>").usage(10, 5)
    });
    let params =
        json!({"workspace": daemon.workspace(), "level": "semantic", "budget": {"tokens": 1_000_000}});
    let started = alice.call("knowledge.index", params).await;
    daemon.models.wait_for_requests(1).await;
    gate.wait_reached().await;
    let job = json!({"workspace": daemon.workspace(), "job_id": started["job_id"]});
    assert_eq!(alice.call("knowledge.cancel", job).await["cancelled"], true);
    follow(&alice, &daemon, json!({"job_id": started["job_id"]})).await.wait_for("cancelled").await;
    let usage = alice.call("model.usage", json!({})).await["total"].clone();
    assert!(usage["lost_attempts"].as_u64() >= Some(1), "the call is recorded before the job ends: {usage}");
    gate.open();
    let done = index(&alice, &daemon, json!({"level": "semantic", "budget": {"tokens": 1_000_000}})).await;
    assert_eq!((&done["type"], &done["summary"]["failed"]), (&json!("done"), &json!(0)), "{done}");
}

#[tokio::test]
async fn calls_beyond_the_time_limit_are_booked_and_count_in_the_budget() {
    let builder = TestDaemon::builder().config("[knowledge]\nmodel_timeout = \"300ms\"\nmax_gleaning = 0\n");
    let daemon = start_with(builder).await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let gate = Gate::new();
    daemon.models.set_fallback({
        let gate = gate.clone();
        move |_| Step::pieces(["one ", "two "]).hold_after(1, &gate)
    });
    let slow = query(&alice, &daemon, json!({"mode": "naive", "query": "parser"})).await;
    assert_eq!((&slow["status"], &slow["error"]["kind"]), (&json!("failed"), &json!("model")), "{slow}");
    wait_lost_call(&alice, &daemon, 1).await;
    // The job requests all three documents at the same time. The calls use up the budget without an answer.
    let params = json!({"workspace": daemon.workspace(), "level": "semantic", "budget": {"tokens": 1_000}});
    alice.call("knowledge.index", params).await;
    let ended = idle(&alice, &daemon).await;
    assert!(ended["job"]["progress"]["tokens"].as_u64() > Some(1_000), "lost calls count: {ended}");
    wait_lost_call(&alice, &daemon, 4).await;
    gate.open();
}

#[tokio::test]
async fn call_of_a_stopping_daemon_is_booked_before_its_end() {
    let mut daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let gate = Gate::new();
    daemon.models.push(Step::pieces(["entity", "<|#|>A"]).hold_after(1, &gate));
    daemon.models.set_fallback(|_| Step::text("<|COMPLETE|>").usage(10, 5));
    let params =
        json!({"workspace": daemon.workspace(), "level": "semantic", "budget": {"tokens": 1_000_000}});
    alice.call("knowledge.index", params).await;
    gate.wait_reached().await;
    daemon.stop().await;
    daemon.launch().await;
    let alice = daemon.client("alice").await;
    let usage = alice.call("model.usage", json!({})).await["total"].clone();
    assert!(usage["lost_attempts"].as_u64() >= Some(1), "{usage}");
    assert_eq!(idle(&alice, &daemon).await["job"]["state"], "done", "the job goes on after the start");
}
