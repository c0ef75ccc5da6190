//! Values that are too large for an event or for a model: truncated on the wire, stored in full, read
//! in parts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{bash, permanent};
use crate::support::client::{Client, Session};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// Maximum bytes of a value in a wire event.
const MAX_WIRE_BYTES: usize = 64 * 1024;

/// Reads a whole blob in parts of this many bytes.
async fn blob(client: &Client, session: &Session, blob_id: &Value, part: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let params =
            json!({"session_id": session.id, "blob_id": blob_id, "offset": bytes.len(), "limit": part});
        let reply = client.call("session.blob", params).await;
        assert_eq!(reply["offset"], bytes.len());
        let content = reply["content"].as_str().expect("a content");
        let more = match reply["encoding"].as_str() {
            Some("text") => content.as_bytes().to_vec(),
            Some("base64") => STANDARD.decode(content).expect("base64"),
            other => panic!("encoding {other:?}"),
        };
        assert!(!more.is_empty() && more.len() <= part, "{} bytes for {part}", more.len());
        bytes.extend(more);
        match reply["next_offset"].as_u64() {
            Some(next) => assert_eq!(next, bytes.len() as u64),
            None => {
                assert_eq!(reply["bytes"], bytes.len());
                return bytes;
            }
        }
    }
}

/// An event or an item with its truncated fields replaced by the full values.
pub(super) async fn whole(client: &Client, session: &Session, entry: &Value) -> Value {
    let mut whole = entry.clone();
    for cut in entry["truncated_fields"].as_array().into_iter().flatten() {
        let bytes = blob(client, session, &cut["blob_id"], 1 << 20).await;
        assert_eq!(cut["bytes"], bytes.len());
        let text = String::from_utf8(bytes).expect("text");
        let place = whole.pointer_mut(cut["pointer"].as_str().expect("a pointer")).expect("a value");
        *place = match cut["media_type"].as_str() {
            Some("application/json") => serde_json::from_str(&text).expect("json"),
            _ => {
                let kept = place.as_str().expect("a text");
                assert!(text.starts_with(kept) && kept.len() < text.len(), "it shows the beginning");
                json!(text)
            }
        };
    }
    whole
}

fn long_text(megabytes: usize) -> Vec<String> {
    (0..megabytes * 128).map(|n| format!("{n:07} ").repeat(1024)).collect()
}

#[tokio::test]
async fn oversized_event_is_truncated_and_full_value_is_readable() {
    let mut daemon =
        TestDaemon::builder().config("[permissions]\nallow = [\"Bash\", \"Write\"]").start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    // Each of these characters takes two bytes in JSON.
    let input = "\"é".repeat(1 << 20);
    let many: Vec<Value> = (0..20_000).map(|n| json!({"n": n})).collect();
    let arguments = json!({"file_path": "f", "content": "line\n".repeat(60_000), "odd": many});
    daemon.models.push(
        Step::calls([("Write", arguments.clone()), bash("for i in $(seq 3000); do echo \"line $i\"; done")])
            .say("Now. "),
    );
    let answer = long_text(2).concat();
    daemon.models.push(Step::pieces(long_text(2)));
    session.submit(&input).await;
    seen.turn_ends("success").await;

    let events = seen.events();
    let mut cut = Vec::new();
    for event in &events {
        let bytes = event.to_string().len();
        assert!(bytes <= MAX_WIRE_BYTES, "{} has {bytes} bytes", event["type"]);
        if event.get("truncated_fields").is_some() {
            cut.push(event["type"].as_str().expect("a type").to_owned());
        }
    }
    cut.sort();
    cut.dedup();
    for kind in ["message.completed", "tool.requested", "turn.completed"] {
        assert!(cut.iter().any(|cut| *cut == kind), "{kind} was not cut: {cut:?}");
    }
    let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    let said = whole(&alice, &session, of("message.completed").next().expect("the input")).await;
    assert!(said["item"]["text"] == input.as_str(), "the input has changed");
    let asked = whole(&alice, &session, of("tool.requested").next().expect("the call")).await;
    assert_eq!(asked["input"], arguments);
    let ended = whole(&alice, &session, of("turn.completed").next_back().expect("the end")).await;
    assert!(ended["result"]["text"] == answer.as_str(), "the answer has changed");
    // Equal texts are stored once.
    let last = of("message.completed").next_back().expect("the answer");
    let ids: Vec<&Value> =
        last["truncated_fields"].as_array().expect("cuts").iter().map(|cut| &cut["blob_id"]).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");

    // The same holds in pages of events and of items.
    let last_seq = events.last().and_then(|event| event["seq"].as_u64());
    let mut paged = session.events().await;
    paged.retain(|event| event["seq"].as_u64() <= last_seq);
    assert_eq!(permanent(paged), permanent(events.clone()));
    let items = session.items().await;
    for item in &items {
        let bytes = item.to_string().len();
        assert!(bytes <= 2 * MAX_WIRE_BYTES, "{} has {bytes} bytes", item["kind"]);
    }
    assert!(whole(&alice, &session, &items[0]).await["text"] == input.as_str());
    let call = items.iter().find(|item| item["call"]["tool"] == "Write").expect("the call");
    assert_eq!(whole(&alice, &session, call).await["call"]["input"], arguments);
    assert!(whole(&alice, &session, items.last().expect("the answer")).await["text"] == answer.as_str());

    // A client may read any range of the blob, but no blobs of other sessions.
    let id = &last["truncated_fields"][0]["blob_id"];
    assert!(blob(&alice, &session, id, 77_777).await == answer.as_bytes());
    let other = alice.create(&daemon).await;
    let refusal = other.refused("blob", json!({"blob_id": id})).await;
    assert_eq!(refusal.kind, "not_found", "{}", refusal.message);
    let refusal = session.refused("blob", json!({"blob_id": id, "offset": answer.len() + 1})).await;
    assert_eq!((refusal.kind.as_str(), &refusal.data["path"]), ("invalid_params", &json!("offset")));
    let unknown = json!({"blob_id": "blob_0190f2a4-0000-8000-8000-000000000009"});
    let refusal = session.refused("blob", unknown).await;
    assert_eq!(refusal.kind, "not_found", "{}", refusal.message);
    let at_end = json!({"session_id": session.id, "blob_id": id, "offset": answer.len()});
    assert_eq!(alice.call("session.blob", at_end).await["content"], "");

    // After a restart the model receives the same history as before, plus the new messages.
    let before = daemon.models.requests().len();
    let last_seq = seen.last_seq();
    drop((seen, alice));
    daemon.crash_and_restart().await;
    let bob = daemon.client("bob").await;
    let session = bob.join(&session);
    let mut seen = session.follow_after(last_seq).await;
    daemon.models.push(Step::text("Fine."));
    session.submit("And?").await;
    seen.turn_ends("success").await;
    let requests = daemon.models.requests();
    let told = requests[before].body.to_string();
    assert!(told.contains(&serde_json::to_string(&input).expect("json")), "the input was lost");
    assert!(told.contains(&serde_json::to_string(&answer).expect("json")), "the answer was lost");
    assert!(told.contains(&arguments["odd"].to_string()), "the arguments were lost");
}

/// The tool results at the end of the last model request.
fn last_results(daemon: &TestDaemon) -> Vec<String> {
    let requests = daemon.models.requests();
    let last = requests.last().expect("a request");
    last.tool_results().into_iter().map(|(_, text)| text).collect()
}

#[tokio::test]
async fn long_result_is_excerpted_and_read_opens_full_text() {
    let config = "[permissions]\nallow = [\"Bash\"]\n[tools]\nmax_result_size = \"8KiB\"\nmax_results_total = \"12KiB\"";
    let mut daemon = TestDaemon::builder().config(config).start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    // Three results of about 7 KB: each one fits, but together they exceed the limit.
    let calls = ["a", "b", "c"].map(|name| bash(&format!("for i in $(seq 1200); do echo {name} $i; done")));
    daemon.models.push(Step::calls(calls));
    daemon.models.push(Step::calls([bash("seq 20000")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let completed = seen.events_of("tool.completed");
    let shown: Vec<&str> = completed.iter().map(|event| event["output"].as_str().expect("output")).collect();
    assert!(completed[0].get("output_blob").is_none() && shown[0].len() > 4_000, "{}", completed[0]);
    assert!(shown[..3].iter().map(|output| output.len()).sum::<usize>() <= 15 * 1024);
    assert!(completed[2]["output_blob"].is_object(), "{}", completed[2]);
    // A result that is too long by itself: the model receives its head and tail, and where to find the
    // rest.
    let long = &completed[3];
    let whole: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    let output = long["output"].as_str().expect("output");
    assert!(output.starts_with("1\n2\n") && output.contains("20000") && output.len() < 9 * 1024, "{output}");
    let id = &long["output_blob"]["blob_id"];
    assert!(output.contains(id.as_str().expect("an id")), "{output}");
    assert!(blob(&alice, &session, id, 1 << 20).await == whole.as_bytes());
    assert_eq!(last_results(&daemon), [output]);

    // The model reads any part of its own session's blob without a permission request, but of no other
    // session's.
    let read = |offset: u64| ("Read", json!({"file_path": id, "offset": offset, "limit": 3}));
    daemon.models.push(Step::calls([read(12_345), read(1_000_000)]));
    daemon.models.push(Step::text("Seen."));
    session.submit("look").await;
    seen.turn_ends("success").await;
    let told = last_results(&daemon);
    assert!(
        told[0].contains("12345\t12345\n") && told[0].contains("lines 12345 to 12347 of 20000"),
        "{told:?}"
    );
    assert!(told[1].contains("20000 lines"), "{told:?}");
    assert!(seen.events_of("permission.requested").is_empty());
    let other = alice.create(&daemon).await;
    let mut others = other.follow().await;
    daemon.models.push(Step::calls([read(1)]));
    daemon.models.push(Step::text("No."));
    other.submit("look").await;
    others.turn_ends("success").await;
    assert_eq!(others.events_of("tool.completed")[0]["code"], "blob_not_found");

    // The history that the model received stays identical, byte for byte, after a crash and with other
    // settings.
    let before = daemon.models.requests()[4].messages().to_vec();
    let last_seq = seen.last_seq();
    drop((seen, others, alice));
    let file = daemon.path("config.toml");
    let config = std::fs::read_to_string(&file).expect("read").replace("8KiB", "64KiB");
    std::fs::write(&file, config).expect("written");
    daemon.crash_and_restart().await;
    let bob = daemon.client("bob").await;
    let session = bob.join(&session);
    let mut seen = session.follow_after(last_seq).await;
    daemon.models.push(Step::text("Still."));
    session.submit("again").await;
    seen.turn_ends("success").await;
    let requests = daemon.models.requests();
    let after = requests.last().expect("a request").messages();
    let plain = |messages: &[Value]| {
        json!(messages).to_string().replace(r#""cache_control":{"type":"ephemeral"},"#, "")
    };
    assert!(plain(after).starts_with(plain(&before[..before.len() - 1]).trim_end_matches(']')));
}

#[tokio::test]
async fn command_spool_is_limited_and_deleted_with_session() {
    let config = "[permissions]\nallow = [\"Bash\"]\n[tools]\nmax_spool_size = \"3MB\"";
    let daemon = TestDaemon::builder().config(config).start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("seq 300000; exit 3")]));
    daemon.models.push(Step::calls([bash("head -c 40000000 /dev/zero | tr '\\0' x; echo the end")]));
    daemon.models.push(Step::text("Done."));
    let before = resident_kib(&daemon);
    session.submit("go").await;
    seen.turn_ends("success").await;
    let completed = seen.events_of("tool.completed");
    let ids: Vec<&Value> = completed.iter().map(|event| &event["output_blob"]["blob_id"]).collect();
    let whole: String = (1..=300_000).map(|n| format!("{n}\n")).collect();
    assert!(blob(&alice, &session, ids[0], 1 << 20).await == whole.as_bytes(), "the whole output");
    let output = completed[0]["output"].as_str().expect("output");
    assert!(output.contains(ids[0].as_str().expect("an id")) && output.contains("Exit code 3"), "{output}");
    // Beyond the quota the daemon stores the head, the tail and a note about the rest.
    let flood = blob(&alice, &session, ids[1], 1 << 20).await;
    assert!(flood.len() < 3_500_000, "{}", flood.len());
    assert!(flood.starts_with(b"xxx") && flood.ends_with(b"the end\n"));
    let note = String::from_utf8_lossy(&flood[3_000_000 - 10..3_000_000 + 100]).into_owned();
    assert!(note.contains("bytes were left out here"), "{note}");
    let output = completed[1]["output"].as_str().expect("output");
    assert!(output.contains("from the middle are not"), "{output}");
    let grown = resident_kib(&daemon).saturating_sub(before);
    assert!(grown < 30 * 1024, "40 MB of output cost {grown} KiB");
    // Only the owner may read the files; they exist as long as the session does.
    let folder = daemon.path("data/agentd/blobs");
    let files = || std::fs::read_dir(&folder).expect("there").flatten().collect::<Vec<_>>();
    assert_eq!(files().len(), 2);
    for file in files() {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    }
    session.call("delete", json!({})).await;
    assert_eq!(files().len(), 0, "the spools of a removed session are left");
}

/// Resident memory in KiB.
fn resident_kib(daemon: &TestDaemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test]
async fn results_of_one_message_share_size_limit() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Write\"]").start().await;
    let text = format!("{}\n", "x".repeat(50)).repeat(1_800);
    let names: Vec<String> = (0..40).map(|n| format!("f{n:02}.txt")).collect();
    names.iter().for_each(|name| daemon.write(name, &text));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls(names.iter().map(|name| ("Read", json!({"file_path": name})))));
    // The result that ends first is shown in full, so the order is not fixed.
    let all = names.clone();
    daemon.models.set_fallback(move |request| {
        let shown = request.tool_results();
        if shown.len() != all.len() {
            return Step::text("Done.");
        }
        let is_whole = |at: &usize| !shown[*at].1.contains("bytes left out");
        let (whole, cut): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(is_whole);
        let overwrite =
            |at: usize, content: &str| ("Write", json!({"file_path": all[at], "content": content}));
        Step::calls([overwrite(whole[0], "known"), overwrite(cut[0], "unknown")])
    });
    session.submit("read them").await;
    seen.turn_ends("success").await;
    let shown = daemon.models.requests()[1].tool_results();
    let sizes: Vec<usize> = shown.iter().map(|(_, text)| text.len()).collect();
    assert_eq!(sizes.len(), 40);
    assert!(sizes.iter().sum::<usize>() <= 256 * 1024, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size >= 1_500), "the model gets a part of each result: {sizes:?}");
    let written = |content: &str| names.iter().filter(|name| daemon.read(name) == content).count();
    assert_eq!((written("known"), written("unknown")), (1, 0), "only files shown whole: {sizes:?}");
}
