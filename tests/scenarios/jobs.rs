//! Jobs: from their creation to their result, over the socket.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};

/// The content of a job in the daemon's workspace, with these members.
pub(super) fn content(daemon: &TestDaemon, more: Value) -> Value {
    let mut job = json!({"prompt": "Do it.", "cwd": daemon.workspace()});
    let members = more.as_object().expect("members").clone();
    job.as_object_mut().expect("an object").extend(members);
    job
}

pub(super) async fn create(client: &Client, daemon: &TestDaemon, more: Value) -> Value {
    client.call("job.create", content(daemon, more)).await["job"].clone()
}

pub(super) async fn wait(client: &Client, job: &Value) -> Value {
    let reply = client.call("job.wait", json!({"job_id": job["job_id"], "timeout_ms": 20_000})).await;
    assert_eq!(reply["timed_out"], json!(false), "{reply}");
    reply["job"].clone()
}

pub(super) async fn get(client: &Client, job: &Value) -> Value {
    client.call("job.get", json!({"job_id": job["job_id"]})).await["job"].clone()
}

/// Waits until the job has this state.
pub(super) async fn reaches(client: &Client, job: &Value, state: &str) -> Value {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let now = get(client, job).await;
        if now["state"] == state {
            return now;
        }
        assert!(std::time::Instant::now() < deadline, "not {state}: {now}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

pub(super) async fn kinds(client: &Client, job: &Value) -> Vec<String> {
    let events = client.call("job.events", json!({"job_id": job["job_id"]})).await;
    let events = events["events"].as_array().expect("events").clone();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], json!(index + 1), "{event}");
    }
    events.iter().map(|event| event["type"].as_str().expect("a type").to_owned()).collect()
}

#[tokio::test]
async fn job_works_on_its_prompt_and_keeps_result_and_log() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    daemon.write("out/report.txt", "all good\n");
    daemon.models.push(Step::text("It is done."));
    let more = json!({"labels": {"team": "red"}, "artifacts": ["out/*.txt"], "title": "nightly"});
    let job = create(&client, &daemon, more).await;
    assert_eq!(
        (&job["state"], &job["attempt"], &job["title"]),
        (&json!("queued"), &json!(0), &json!("nightly"))
    );
    let done = wait(&client, &job).await;
    assert_eq!(done["state"], "succeeded", "{done}");
    assert_eq!(
        (&done["result"]["text"], &done["result"]["subtype"]),
        (&json!("It is done."), &json!("success"))
    );
    assert_eq!(done["result"]["attempts"][0]["subtype"], "success");
    assert!(done["usage"]["output_tokens"].as_u64() > Some(0), "{done}");
    let artifact = &done["result"]["artifacts"][0];
    assert_eq!((&artifact["path"], &artifact["bytes"]), (&json!("out/report.txt"), &json!(9)));
    let blob = json!({"session_id": done["session_id"], "blob_id": artifact["blob_id"]});
    assert_eq!(client.call("session.blob", blob).await["content"], "all good\n");
    let expected = ["job.created", "job.queued", "job.started", "job.completed"];
    assert_eq!(kinds(&client, &job).await, expected);
    // The prompt reached the model as it was written, in an unattended session that knows its job.
    let request = daemon.models.requests().remove(0);
    assert!(request.messages()[0].to_string().contains("Do it."));
    let session =
        client.call("session.get", json!({"session_id": done["session_id"]})).await["session"].clone();
    assert_eq!((&session["background"], &session["job_id"]), (&json!(true), &job["job_id"]));
    let logs = client.call("job.logs", json!({"job_id": job["job_id"]})).await;
    assert_eq!(logs["session_id"], done["session_id"]);
    let types: Vec<&Value> =
        logs["events"].as_array().expect("events").iter().map(|event| &event["type"]).collect();
    assert!(types.contains(&&json!("turn.completed")), "{types:?}");
    let listed = client.call("job.list", json!({"label": "team=red"})).await;
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(1));
    assert!(listed["jobs"][0]["result"].is_null(), "lists omit results");
    for filter in [json!({"label": "team=blue"}), json!({"states": ["failed"]}), json!({"cwd": "/nowhere"})] {
        let none = client.call("job.list", filter).await;
        assert_eq!(none["jobs"], json!([]));
    }
    let audit = client.call("permission.audit", json!({})).await.to_string();
    assert!(audit.contains("created") && audit.contains(job["job_id"].as_str().expect("an id")), "{audit}");
}

#[tokio::test]
async fn bad_content_is_refused_with_the_path_of_the_field() {
    let daemon = TestDaemon::builder()
        .config("[jobs]\nusd_per_day = 2.0\n[jobs.notify.cmd]\ncommand = [\"true\"]")
        .start()
        .await;
    let client = daemon.client("alice").await;
    daemon.write("a-file", "");
    let file = daemon.workspace().join("a-file");
    let long_name = format!("labels.{}", "x".repeat(40));
    let cases: Vec<(Value, &str)> = vec![
        (json!({"prompt": " "}), "prompt"),
        (json!({"prompt": "a", "template": "nope"}), "template"),
        (json!({"prompt": null}), "prompt"),
        (json!({"cwd": "relative"}), "cwd"),
        (json!({"cwd": "/does/not/exist"}), "cwd"),
        (json!({"cwd": file}), "cwd"),
        (json!({"priority": 101}), "priority"),
        (json!({"budgets": {"usd_micros": 0}}), "budgets.usd_micros"),
        (json!({"budgets": {"usd_micros": 3_000_000}}), "budgets.usd_micros"),
        (json!({"budgets": {"money": 1}}), "budgets.money"),
        (json!({"model": "unknown/nothing"}), "model"),
        (json!({"agent": "unknown"}), "agent"),
        (json!({"mode": "sometimes"}), "mode"),
        (json!({"tools": {"allow": ["Nope"]}}), "tools"),
        (json!({"output_schema": {"type": "nonsense"}}), "output_schema"),
        (json!({"retry": {"attempts": 0}}), "retry.attempts"),
        (json!({"retry": {"attempts": 2, "often": true}}), "retry.often"),
        (json!({"retry": {"attempts": 2, "on": ["sometimes"]}}), "retry.on[0]"),
        (json!({"concurrency": {"key": "", "limit": 1}}), "concurrency.key"),
        (json!({"concurrency": {"key": "a", "limit": 0}}), "concurrency.limit"),
        (json!({"unique": {"key": ""}}), "unique.key"),
        (json!({"unique": {"key": "a", "scope": "week"}}), "unique.scope"),
        (json!({"delay": "soon"}), "delay"),
        (json!({"delay": "1m", "run_at_ms": 1}), "delay"),
        (json!({"run_at_ms": 1, "start_deadline": "1s"}), "start_deadline"),
        (json!({"artifacts": ["ok", "../up"]}), "artifacts[1]"),
        (json!({"on_complete": [{"webhook": "unknown"}]}), "on_complete[0].webhook"),
        (json!({"on_complete": [{"webhook": "cmd"}]}), "on_complete[0].webhook"),
        (json!({"on_complete": [{}]}), "on_complete[0]"),
        (json!({"on_complete": [{"command": "cmd", "on": ["sometimes"]}]}), "on_complete[0].on[0]"),
        (json!({"labels": {"a=b": "c"}}), "labels.a=b"),
        (json!({"labels": {"x".repeat(65): "c"}}), long_name.as_str()),
        (json!({"labels": {"a\nb": "c"}}), "labels.a?b"),
        (json!({"labels": {"a": "x".repeat(257)}}), "labels.a"),
        (json!({"labels": {"a": "b\nc"}}), "labels.a"),
        (json!({"prompt": "a\u{0}b"}), "prompt"),
        (json!({"title": "a\u{0}b"}), "title"),
        (json!({"worktree": {"branch": "a\u{0}b"}}), "worktree.branch"),
        (json!({"worktree": {"base": "a\u{0}b"}}), "worktree.base"),
        (json!({"run_at_ms": -1}), "run_at_ms"),
        (json!({"run_at_ms": i64::MIN}), "run_at_ms"),
        (json!({"run_at_ms": i64::MAX}), "run_at_ms"),
        (json!({"delay": "4000000d"}), "delay"),
        (json!({"start_deadline": "4000000d"}), "start_deadline"),
        (json!({"retry": {"attempts": 2, "max_backoff": "4000000d"}}), "retry.max_backoff"),
        (json!({"worktree": {"from": "HEAD"}}), "worktree.from"),
        (json!({"nonsense": 1}), "nonsense"),
        (json!({"prompt": "x".repeat(1 << 20)}), "prompt"),
    ];
    for (more, path) in cases {
        let refusal = client.refused("job.create", content(&daemon, more.clone())).await;
        let shown: String = more.to_string().chars().take(100).collect();
        assert_eq!(
            (refusal.code, refusal.data["path"].as_str()),
            (-32602, Some(path)),
            "{shown}: {refusal:?}"
        );
    }
    client.call("job.pause", json!({})).await;
    let job = create(&client, &daemon, json!({"delay": "1h"})).await;
    let too_many: serde_json::Map<String, Value> = (0..33).map(|n| (format!("l{n}"), json!(""))).collect();
    for (method, member, value, path) in [
        ("job.update", "priority", json!(-101), "priority"),
        ("job.update", "run_at_ms", json!(i64::MIN), "run_at_ms"),
        ("job.update", "labels", json!({"a": "b\u{7}"}), "labels.a"),
        ("job.update", "labels", Value::Object(too_many), "labels"),
        ("job.cancel", "reason", json!("x".repeat(1_001)), "reason"),
    ] {
        let refusal = client.refused(method, json!({"job_id": job["job_id"], member: value})).await;
        assert_eq!((refusal.code, refusal.data["path"].as_str()), (-32602, Some(path)), "{refusal:?}");
    }
    client.call("job.cancel", json!({"job_id": job["job_id"], "reason": "x".repeat(1_000)})).await;
    let unknown = json!({"job_id": "job_0190f2a4-0000-7000-8000-000000000001"});
    for method in ["job.get", "job.cancel", "job.retry", "job.wait", "job.logs", "job.events", "job.update"] {
        assert_eq!(client.refused(method, unknown.clone()).await.code, -32002, "{method}");
    }
    assert_eq!(client.call("job.list", json!({})).await["jobs"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn unique_key_makes_one_job_of_a_hundred() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    client.call("job.pause", json!({})).await;
    let unique = |on_conflict: &str| json!({"unique": {"key": "nightly", "on_conflict": on_conflict}});
    let mut sent = Vec::new();
    for _ in 0..100 {
        sent.push(client.send("job.create", content(&daemon, unique("return"))).await);
    }
    let mut ids = std::collections::BTreeSet::new();
    let mut new = 0;
    for id in sent {
        let reply = client.reply(id).await.expect("a job");
        ids.insert(reply["job"]["job_id"].to_string());
        new += usize::from(reply["existing"] == json!(false));
    }
    assert_eq!((ids.len(), new), (1, 1));
    let refusal = client.refused("job.create", content(&daemon, unique("reject"))).await;
    assert_eq!((refusal.code, refusal.data["path"].as_str()), (-32010, Some("unique.key")));
    let replacing = client.call("job.create", content(&daemon, unique("replace"))).await;
    assert_eq!(replacing["existing"], json!(false));
    let listed = client.call("job.list", json!({})).await;
    let states: Vec<&Value> =
        listed["jobs"].as_array().expect("jobs").iter().map(|job| &job["state"]).collect();
    assert_eq!(states, ["queued", "cancelled"]);
    // A key is free again when its job is over.
    client.call("job.cancel", json!({"job_id": replacing["job"]["job_id"]})).await;
    assert_eq!(client.call("job.create", content(&daemon, unique("reject"))).await["existing"], json!(false));
}

#[tokio::test]
async fn same_idempotency_key_returns_the_same_job_also_after_a_restart() {
    let mut daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    client.call("job.pause", json!({})).await;
    let keyed = content(&daemon, json!({"idempotency_key": "k1"}));
    let first = client.call("job.create", keyed.clone()).await["job"]["job_id"].clone();
    daemon.crash_and_restart().await;
    let client = daemon.client("alice").await;
    assert_eq!(client.call("job.create", keyed).await["job"]["job_id"], first);
    let other = content(&daemon, json!({"idempotency_key": "k1", "priority": 5}));
    assert_eq!(client.refused("job.create", other).await.code, -32010);
}

#[tokio::test]
async fn each_change_of_a_job_repeats_its_reply_for_one_key() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let repeats = async |method: &str, params: Value, other: Option<Value>| {
        let keyed = |mut params: Value| {
            params["idempotency_key"] = json!("k");
            params
        };
        let first = client.call(method, keyed(params.clone())).await;
        assert_eq!(client.call(method, keyed(params)).await, first, "{method}");
        if let Some(other) = other {
            assert_eq!(client.refused(method, keyed(other)).await.code, -32010, "{method}");
        }
        first
    };
    repeats("job.pause", json!({}), None).await;
    let other = content(&daemon, json!({"priority": 1}));
    let job = repeats("job.create", content(&daemon, json!({})), Some(other)).await["job"].clone();
    let of_job = |more: Value| {
        let mut params = json!({"job_id": job["job_id"]});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("members").clone());
        params
    };
    repeats("job.update", of_job(json!({"priority": 3})), Some(of_job(json!({"priority": 4})))).await;
    let cancelled = repeats("job.cancel", of_job(json!({})), Some(of_job(json!({"reason": "other"})))).await;
    assert_eq!(cancelled["job"]["state"], "cancelled");
    let retried = repeats("job.retry", of_job(json!({})), Some(of_job(json!({"mode": "continue"})))).await;
    assert_eq!(retried["job"]["state"], "queued");
    daemon.models.push(Step::text("Done."));
    repeats("job.resume", json!({}), None).await;
    let done = wait(&client, &job).await;
    assert_eq!((&done["state"], &done["priority"]), (&json!("succeeded"), &json!(3)));
}

#[tokio::test]
async fn jobs_start_by_priority_within_slots_and_keys_and_tell_why_they_wait() {
    let daemon = TestDaemon::builder().config("[jobs]\nconcurrent = 1").start().await;
    let client = daemon.client("alice").await;
    let gate = Gate::new();
    daemon.models.push(Step::text("One.").hold(&gate));
    let first = create(&client, &daemon, json!({"prompt": "first"})).await;
    gate.wait_reached().await;
    let key = |key: &str| json!({"key": key, "limit": 5});
    let low =
        create(&client, &daemon, json!({"prompt": "low", "concurrency": key("a"), "priority": -1})).await;
    let high =
        create(&client, &daemon, json!({"prompt": "high", "concurrency": key("b"), "priority": 9})).await;
    let same = create(&client, &daemon, json!({"prompt": "same folder"})).await;
    let later = create(&client, &daemon, json!({"prompt": "later", "delay": "1h"})).await;
    let reason = async |job: &Value| get(&client, job).await["reason"].clone();
    assert_eq!(reason(&high).await, "slots");
    assert_eq!(reason(&same).await, "concurrency");
    assert_eq!(reason(&later).await, "not_due");
    assert_eq!(get(&client, &later).await["state"], "scheduled");
    client.call("job.pause", json!({})).await;
    assert_eq!(reason(&high).await, "paused");
    for text in ["Two.", "Three.", "Four."] {
        daemon.models.push(Step::text(text));
    }
    gate.open();
    assert_eq!(wait(&client, &first).await["state"], "succeeded");
    assert_eq!(get(&client, &high).await["state"], "queued", "paused");
    client.call("job.resume", json!({})).await;
    for job in [&high, &same, &low] {
        assert_eq!(wait(&client, job).await["state"], "succeeded");
    }
    let prompts: Vec<String> =
        daemon.models.requests().iter().map(|it| it.messages()[0].to_string()).collect();
    let order = ["first", "high", "same folder", "low"];
    assert!(prompts.iter().zip(order).all(|(prompt, text)| prompt.contains(text)), "{prompts:?}");
    let moved = client.call("job.update", json!({"job_id": later["job_id"], "run_at_ms": 1})).await;
    assert_eq!(moved["job"]["state"], "queued");
    daemon.models.push(Step::text("Five."));
    assert_eq!(wait(&client, &later).await["state"], "succeeded");
    let refusal = client.refused("job.update", json!({"job_id": later["job_id"], "priority": 1})).await;
    assert_eq!(refusal.code, -32014);
}

#[tokio::test]
async fn failed_attempt_is_repeated_only_if_the_job_asks() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let refused = || Step::error(400, "invalid_request_error", "no");
    daemon.models.push(refused());
    let once = create(&client, &daemon, json!({})).await;
    let failed = wait(&client, &once).await;
    assert_eq!((&failed["state"], &failed["attempt"]), (&json!("failed"), &json!(1)), "{failed}");
    assert!(failed["error"]["message"].as_str().is_some_and(|text| text.contains("no")), "{failed}");
    daemon.models.push(refused());
    daemon.models.push(refused());
    daemon.models.push(Step::text("At last."));
    let retry = json!({"retry": {"attempts": 3, "backoff": "10ms", "max_backoff": "10ms"}});
    let again = create(&client, &daemon, retry).await;
    let done = wait(&client, &again).await;
    assert_eq!(
        (&done["state"], &done["attempt"], &done["attempts_max"]),
        (&json!("succeeded"), &json!(3), &json!(3))
    );
    let told = kinds(&client, &again).await;
    assert_eq!(
        told[..6],
        ["job.created", "job.queued", "job.started", "job.retrying", "job.queued", "job.started"]
    );
    let attempts = done["result"]["attempts"].as_array().expect("attempts").clone();
    let ended: Vec<&Value> = attempts.iter().map(|attempt| &attempt["subtype"]).collect();
    assert_eq!(ended, ["llm_error", "llm_error", "success"]);
    let sessions: std::collections::BTreeSet<String> =
        attempts.iter().map(|attempt| attempt["session_id"].to_string()).collect();
    assert_eq!(sessions.len(), 3, "each attempt has a session of its own");
    // A user may repeat a failed job.
    daemon.models.push(Step::text("By hand."));
    let params = json!({"job_id": once["job_id"], "mode": "continue"});
    let retried = client.call("job.retry", params).await["job"].clone();
    assert_eq!(retried["state"], "queued");
    let done = wait(&client, &once).await;
    assert_eq!((&done["state"], &done["attempt"]), (&json!("succeeded"), &json!(2)));
    let attempts = done["result"]["attempts"].as_array().expect("attempts").clone();
    assert_eq!(attempts[0]["session_id"], attempts[1]["session_id"], "it continues in the same session");
    assert_eq!(client.refused("job.retry", json!({"job_id": once["job_id"]})).await.code, -32014);
}

#[tokio::test]
async fn cancel_returns_when_the_work_has_stopped() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let client = daemon.client("alice").await;
    daemon.models.push(Step::calls([bash("sleep 600")]));
    let job = create(&client, &daemon, json!({})).await;
    daemon.tool_processes_reach(|count| count > 0).await;
    let queued = create(&client, &daemon, json!({})).await;
    let cancelled = client.call("job.cancel", json!({"job_id": queued["job_id"]})).await;
    assert_eq!((&cancelled["stopped"], &cancelled["job"]["state"]), (&json!(false), &json!("cancelled")));
    let params = json!({"job_id": job["job_id"], "reason": "not needed", "idempotency_key": "c"});
    let cancelled = client.call("job.cancel", params.clone()).await;
    assert_eq!(cancelled["stopped"], json!(true));
    assert_eq!((&cancelled["job"]["state"], &cancelled["survivors"]), (&json!("cancelled"), &json!([])));
    assert!(daemon.tool_processes().is_empty(), "the work has stopped");
    assert_eq!(
        client.call("job.cancel", params).await["job"]["state"],
        "cancelled",
        "the same key, the same answer"
    );
    assert_eq!(client.refused("job.cancel", json!({"job_id": job["job_id"]})).await.code, -32014);
    let expected = ["job.created", "job.queued", "job.started", "job.cancelling", "job.completed"];
    assert_eq!(kinds(&client, &job).await, expected);
    daemon.models.push(Step::text("Again."));
    client.call("job.retry", json!({"job_id": job["job_id"]})).await;
    assert_eq!(wait(&client, &job).await["state"], "succeeded");
}

#[tokio::test]
async fn job_waits_for_a_person_without_holding_a_slot() {
    let daemon = TestDaemon::builder().config("[jobs]\nconcurrent = 1").start().await;
    let client = daemon.client("alice").await;
    daemon.models.push(Step::calls([bash("touch made")]));
    let job = create(&client, &daemon, json!({})).await;
    let waiting = reaches(&client, &job, "waiting").await;
    assert_eq!(waiting["waiting_for"], "permission");
    daemon.models.push(Step::text("Elsewhere."));
    let other = json!({"concurrency": {"key": "elsewhere", "limit": 1}});
    let other = create(&client, &daemon, other).await;
    assert_eq!(wait(&client, &other).await["state"], "succeeded");
    let refusal = client.refused("job.update", json!({"job_id": job["job_id"], "priority": 1})).await;
    assert_eq!(refusal.code, -32012);
    let pending = client.call("permission.list", json!({"session_id": waiting["session_id"]})).await;
    let request = pending["requests"][0].clone();
    daemon.models.push(Step::text("Made."));
    let answer = json!({"request_id": request["request_id"], "decision": "allow"});
    client.call("session.approve", answer).await;
    assert_eq!(wait(&client, &job).await["state"], "succeeded");
    assert!(daemon.workspace().join("made").exists());
    let expected =
        ["job.created", "job.queued", "job.started", "job.waiting", "job.resumed", "job.completed"];
    assert_eq!(kinds(&client, &job).await, expected);
}

#[tokio::test]
async fn jobs_survive_a_kill_of_the_daemon() {
    let mut daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let gate = Gate::new();
    daemon.models.push(Step::text("Cut off.").hold(&gate));
    let running = create(&client, &daemon, json!({})).await;
    gate.wait_reached().await;
    let queued = create(&client, &daemon, json!({})).await;
    let later = create(&client, &daemon, json!({"delay": "1h"})).await;
    daemon.models.push(Step::text("One."));
    daemon.models.push(Step::text("Two."));
    daemon.crash_and_restart().await;
    let client = daemon.client("alice").await;
    let done = wait(&client, &running).await;
    assert_eq!(
        (&done["state"], &done["attempt"]),
        (&json!("succeeded"), &json!(1)),
        "a restart is no attempt"
    );
    assert_eq!(wait(&client, &queued).await["state"], "succeeded");
    assert_eq!(get(&client, &later).await["state"], "scheduled");
}

#[tokio::test]
async fn limits_hold_for_the_job_over_all_attempts() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    daemon.models.push(Step::error(400, "invalid_request_error", "no"));
    let limited = json!({
        "budgets": {"model_calls": 1},
        "retry": {"attempts": 5, "backoff": "10ms", "max_backoff": "10ms"},
    });
    let job = create(&client, &daemon, limited).await;
    let failed = wait(&client, &job).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    assert!(daemon.models.requests().len() <= 2, "{}", daemon.models.requests().len());
}

#[tokio::test]
async fn expired_job_never_starts() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    client.call("job.pause", json!({})).await;
    let job = create(&client, &daemon, json!({"start_deadline": "50ms"})).await;
    let expired = wait(&client, &job).await;
    assert_eq!((&expired["state"], &expired["attempt"]), (&json!("expired"), &json!(0)));
    client.call("job.resume", json!({})).await;
    daemon.models.push(Step::text("Now."));
    client.call("job.retry", json!({"job_id": job["job_id"]})).await;
    assert_eq!(wait(&client, &job).await["state"], "succeeded");
}

#[tokio::test]
async fn job_without_valid_structured_result_fails() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    daemon.models.set_fallback(|_| Step::text("not JSON"));
    let job = create(&client, &daemon, json!({"output_schema": schema})).await;
    let failed = wait(&client, &job).await;
    assert_eq!(
        (&failed["state"], &failed["error"]["kind"]),
        (&json!("failed"), &json!("structured_output_invalid"))
    );
}

#[tokio::test]
async fn killed_or_deleted_session_ends_its_job() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    // A deletion kills the session first, and the job may see either.
    for (method, kinds) in [("session.kill", &["killed"][..]), ("session.delete", &["killed", "session"][..])]
    {
        let gate = Gate::new();
        daemon.models.push(Step::text("Never.").hold(&gate));
        let job = create(&client, &daemon, json!({})).await;
        gate.wait_reached().await;
        let session_id = get(&client, &job).await["session_id"].clone();
        client.call(method, json!({"session_id": session_id})).await;
        let failed = wait(&client, &job).await;
        assert_eq!(failed["state"], "failed", "{failed}");
        assert!(kinds.iter().any(|kind| failed["error"]["kind"] == *kind), "{method}: {failed}");
    }
}

#[tokio::test]
async fn changes_of_jobs_are_pushed_to_daemon_subscribers() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let watcher = daemon.client("bob").await;
    let subscription = watcher.call("daemon.subscribe", json!({})).await;
    let mut changes = Log::new(watcher.clone(), subscription.as_str().expect("an id").to_owned());
    daemon.models.push(Step::text("Done."));
    let job = create(&client, &daemon, json!({})).await;
    wait(&client, &job).await;
    for kind in ["job.created", "job.queued", "job.started", "job.completed"] {
        let is_wanted = |event: &Value| event["kind"] == kind && event["job"]["job_id"] == job["job_id"];
        changes.find(kind, is_wanted).await;
    }
}
