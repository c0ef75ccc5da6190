//! Invariants I1–I5, which hold after every crash. They are read from the files that the dead daemon
//! left. The files are copied first, so that the next daemon finds them unchanged, including the
//! write-ahead log. I6, I7 and I8 need a running daemon: see `CrashScenario`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _, SqliteConnection};

use super::client_log::{ReceivedMessages, SessionMessages, is_delta};

/// The journals of all sessions: for each session, its events by seq.
pub type Journals = BTreeMap<String, BTreeMap<u64, Value>>;

/// Checks I1 to I4 and returns the journals.
pub async fn check(database: &Path, notes: &ReceivedMessages) -> Journals {
    let (_folder, mut connection) = open_copy(database).await;
    is_sound(&mut connection).await;
    let journals = read(&mut connection).await;
    for (session, journal) in &journals {
        let told = notes.sessions.get(session);
        if let Some(told) = told {
            check_received_events(session, journal, told);
        }
        happens_once(session, journal);
    }
    for session in notes.sessions.keys() {
        assert!(journals.contains_key(session), "I2: {session} is missing in the database");
    }
    summaries_agree(&mut connection, &journals).await;
    audit_agrees(&audit(&mut connection).await, &journals);
    blobs_are_there(&mut connection, &journals, &database.with_file_name("blobs")).await;
    connection.close().await.expect("closed");
    journals
}

/// Copies the files in their current state and opens the copy. A running daemon may continue to use the
/// originals.
pub(super) async fn open_copy(database: &Path) -> (tempfile::TempDir, SqliteConnection) {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy.db");
    for ending in ["", "-wal"] {
        let part = |path: &Path| format!("{}{ending}", path.display());
        if Path::new(&part(database)).exists() {
            std::fs::copy(part(database), part(&copy)).expect("copied");
        }
    }
    let connection = SqliteConnectOptions::new().filename(&copy).connect().await.expect("it opens");
    (folder, connection)
}

/// Returns the rows of the audit log after checking the hash chain.
pub async fn decisions(database: &Path) -> Vec<Value> {
    let (_folder, mut connection) = open_copy(database).await;
    audit(&mut connection).await
}

/// Columns of the audit log that enter the hash of a row, after the hash of the row before it.
const AUDIT: [&str; 16] = [
    "id",
    "at_ms",
    "kind",
    "session_id",
    "seq",
    "call_id",
    "tool",
    "digest",
    "verdict",
    "rule",
    "reason",
    "client",
    "uid",
    "pid",
    "exe",
    "sandbox",
];

/// I9: the audit log is a hash chain. The test computes the hashes from the reference, not with the
/// daemon's code.
async fn audit(connection: &mut SqliteConnection) -> Vec<Value> {
    let rows = sqlx::query("select * from audit order by id").fetch_all(connection).await.expect("read");
    let mut before = String::new();
    let mut all = Vec::new();
    for (row, id) in rows.iter().zip(1..) {
        let value = |name: &&str| match row.try_get::<Option<i64>, _>(*name) {
            Ok(number) => json!(number),
            Err(_) => json!(row.get::<Option<String>, _>(*name)),
        };
        let values: Vec<Value> = std::iter::once(json!(before)).chain(AUDIT.iter().map(value)).collect();
        assert_eq!(values[1], id, "I9: the audit log has a gap");
        let text = serde_json::to_string(&values).expect("JSON");
        let hash: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            row.get::<String, _>("prev"),
            before,
            "I9: row {id} of the audit log does not follow the last"
        );
        assert_eq!(row.get::<String, _>("hash"), hash, "I9: row {id} of the audit log has another hash");
        before = hash;
        all.push(
            AUDIT.iter().zip(&values[1..]).map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        );
    }
    all
}

/// I9: each decision in the journals has exactly one audit row, and each audit row has its event.
fn audit_agrees(rows: &[Value], journals: &Journals) {
    let mut told: BTreeMap<(&str, u64), u32> = BTreeMap::new();
    for row in rows {
        if let (Some(session), Some(seq)) = (row["session_id"].as_str(), row["seq"].as_u64()) {
            *told.entry((session, seq)).or_default() += 1;
        }
    }
    for (session, journal) in journals {
        for (seq, event) in journal {
            let is_decision = matches!(
                event["type"].as_str(),
                Some("tool.status" | "permission.resolved" | "question.resolved" | "session.rewound")
            ) || event["code"] == "denied_by_rule";
            let times = told.remove(&(session.as_str(), *seq)).unwrap_or_default();
            assert!(!is_decision || times == 1, "I9: {times} rows of the audit log for {event}");
            let may_be = is_decision || event["mode"].is_string();
            assert!(may_be || times == 0, "I9: a row of the audit log for {event}");
        }
    }
    let strays: Vec<_> = told.keys().filter(|(session, _)| journals.contains_key(*session)).collect();
    assert!(strays.is_empty(), "I9: rows of the audit log without their event: {strays:?}");
}

/// I1: the database is intact.
async fn is_sound(connection: &mut SqliteConnection) {
    let verdict: Vec<String> =
        sqlx::query_scalar("pragma integrity_check").fetch_all(&mut *connection).await.expect("checked");
    assert_eq!(verdict, ["ok"], "I1: integrity_check");
    let dangling = sqlx::query("pragma foreign_key_check").fetch_all(connection).await.expect("checked");
    assert_eq!(dangling.len(), 0, "I1: foreign_key_check");
}

async fn read(connection: &mut SqliteConnection) -> Journals {
    let mut journals = Journals::new();
    for row in sqlx::query("select session_id from session").fetch_all(&mut *connection).await.expect("read")
    {
        journals.insert(row.get(0), BTreeMap::new());
    }
    let rows = sqlx::query(
        "select session_id, seq, body from event join session on session.id = event.session order by 1, 2",
    );
    for row in rows.fetch_all(connection).await.expect("read") {
        let (session, seq, body): (String, i64, String) = (row.get(0), row.get(1), row.get(2));
        let event: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(event["seq"], seq, "I3: {session}: a row and its body have different numbers");
        assert_eq!(event["session_id"], session.as_str(), "I3: an event of another session");
        let seq = u64::try_from(seq).expect("positive");
        journals.get_mut(&session).expect("foreign keys hold").insert(seq, event);
    }
    journals
}

/// I2 and I3: every event that a client received is in the journal, unchanged. No seq that a client saw
/// is free for reuse.
fn check_received_events(session: &str, journal: &BTreeMap<u64, Value>, told: &SessionMessages) {
    let last = journal.keys().next_back().copied().unwrap_or_default();
    assert!(told.last_seq <= last, "I3: {session}: {} was seen, the journal ends at {last}", told.last_seq);
    for (seq, event) in &told.events {
        let kept = journal.get(seq);
        assert_eq!(kept, Some(event), "I3: {session}: a client received another event {seq}");
    }
    for (turn, seq) in &told.turns {
        let event = journal.get(seq).unwrap_or_else(|| panic!("I2: {session}: {turn} at {seq} is lost"));
        assert_eq!(event["turn_id"], turn.as_str(), "I2: {session}: {seq} is {event}");
    }
    for (request, seq) in &told.answers {
        let event = journal.get(seq).unwrap_or_else(|| panic!("I2: {session}: the answer at {seq} is lost"));
        let kind = if request.starts_with("ask_") { "question.resolved" } else { "permission.resolved" };
        let is_it = event["request_id"] == request.as_str() && event["type"] == kind;
        assert!(is_it, "I2: {session}: {seq} is {event}, not the answer to {request}");
    }
    for turn in &told.aborts {
        let ended = |event: &&Value| event["type"] == "turn.completed" && event["turn_id"] == turn.as_str();
        assert!(journal.values().any(|event| ended(&event)), "I2: {session}: aborted {turn} has not ended");
    }
}

/// I3 and I4: a row may be missing only if a complete event replaced it. Nothing that may happen once
/// happens twice.
fn happens_once(session: &str, journal: &BTreeMap<u64, Value>) {
    const ONCE: &[(&str, &str)] = &[
        ("tool.requested", "call_id"),
        ("permission.requested", "call_id"),
        ("tool.started", "call_id"),
        ("tool.blocked", "call_id"),
        ("tool.completed", "call_id"),
        ("permission.resolved", "request_id"),
        ("question.requested", "request_id"),
        ("question.resolved", "request_id"),
        ("turn.started", "turn_id"),
        ("turn.completed", "turn_id"),
    ];
    let mut times: HashMap<(&str, &str), u32> = HashMap::new();
    // A second run without the sandbox has its own intent and its own permission request. They are
    // counted separately, and they come after the end of the first run.
    let mut blocked: HashSet<&str> = HashSet::new();
    for event in journal.values() {
        let kind = event["type"].as_str().expect("a type");
        let again = event["attempt"] == 2 || event["kind"] == "sandbox";
        for (once, id) in ONCE {
            if kind == *once {
                let id = event[*id].as_str().expect("an id");
                let once = match (kind, again) {
                    ("tool.started", true) => "tool.started again",
                    ("permission.requested", true) => "permission.requested again",
                    _ => once,
                };
                let call = event["call_id"].as_str().unwrap_or_default();
                assert!(
                    !once.ends_with("again") || blocked.contains(call),
                    "I4: {session}: {event} came before the first run was blocked"
                );
                *times.entry((once, id)).or_default() += 1;
            }
        }
        if kind == "tool.blocked" {
            blocked.insert(event["call_id"].as_str().expect("an id"));
        }
    }
    let twice: Vec<_> = times.into_iter().filter(|(_, times)| *times > 1).collect();
    assert!(twice.is_empty(), "I4: {session}: {twice:?}");

    // A completed call or message replaces the delta rows that were streamed before it completed.
    let mut opened: HashMap<&str, u64> = HashMap::new();
    // Background tasks, by their call.
    let mut behind: HashMap<&str, u64> = HashMap::new();
    let mut whole: Vec<(u64, u64)> = Vec::new();
    for (seq, event) in journal {
        let kind = event["type"].as_str().expect("a type");
        let id = event["call_id"].as_str().or(event["item_id"].as_str()).unwrap_or_default();
        match kind {
            "tool.background" if event["state"] == "running" => {
                assert!(behind.insert(id, *seq).is_none(), "I4: {session}: task {id} starts twice");
            }
            "tool.background" => {
                let first = behind.remove(id);
                whole.push((first.unwrap_or_else(|| panic!("I4: {session}: task {id} ends twice")), *seq));
            }
            "message.started" | "tool.started" => drop(opened.insert(id, *seq)),
            "message.completed" | "tool.completed" | "tool.blocked" => {
                if let Some(first) = opened.remove(id) {
                    whole.push((first, *seq));
                }
            }
            _ => {}
        }
    }
    let mut before = 0;
    for seq in journal.keys() {
        let is_covered = *seq == before + 1
            || whole.iter().any(|(first, last)| *first <= before && *seq <= *last)
            || (before + 1..*seq).all(|gone| whole.iter().any(|(a, b)| *a < gone && gone < *b));
        assert!(is_covered, "I3: {session}: no complete event replaces the rows between {before} and {seq}");
        before = *seq;
    }
    let kept_pieces = journal.values().filter(|event| is_delta(event));
    for piece in kept_pieces {
        let seq = piece["seq"].as_u64().expect("a number");
        let id = piece["call_id"].as_str().or(piece["item_id"].as_str()).unwrap_or_default();
        let is_open = opened.contains_key(id) || behind.contains_key(id);
        assert!(is_open, "I3: {session}: delta {seq} belongs to no open item or task");
    }
}

/// The session summaries agree with the journals.
async fn summaries_agree(connection: &mut SqliteConnection, journals: &Journals) {
    let rows = sqlx::query("select request_id, settled_seq is null from permission_request");
    let mut pending: HashSet<String> = HashSet::new();
    for row in rows.fetch_all(&mut *connection).await.expect("read") {
        if row.get::<bool, _>(1) {
            pending.insert(row.get(0));
        }
    }
    let mut expected: HashSet<String> = HashSet::new();
    for event in journals.values().flat_map(BTreeMap::values) {
        let request = event["request_id"].as_str().map(str::to_owned);
        match (event["type"].as_str(), request) {
            (Some("permission.requested"), Some(request)) => drop(expected.insert(request)),
            (Some("permission.resolved"), Some(request)) => drop(expected.remove(&request)),
            _ => {}
        }
    }
    assert_eq!(pending, expected, "I3: the pending requests are those of the journal");
    let rows = sqlx::query("select request_id, settled_seq is null from question");
    let mut questions: BTreeMap<String, bool> = BTreeMap::new();
    for row in rows.fetch_all(&mut *connection).await.expect("read") {
        questions.insert(row.get(0), row.get(1));
    }
    let mut asked: BTreeMap<String, bool> = BTreeMap::new();
    for event in journals.values().flat_map(BTreeMap::values) {
        match (event["type"].as_str(), event["request_id"].as_str()) {
            (Some("question.requested"), Some(id)) => drop(asked.insert(id.to_owned(), true)),
            (Some("question.resolved"), Some(id)) => drop(asked.insert(id.to_owned(), false)),
            _ => {}
        }
    }
    assert_eq!(questions, asked, "I3: the questions are those of the journal");
    items_agree(connection, journals).await;
    keys_agree(connection, journals).await;
    let rows =
        sqlx::query("select session_id, state from session").fetch_all(connection).await.expect("read");
    for row in rows {
        let (session, state): (String, String) = (row.get(0), row.get(1));
        let told = journals[&session].values().rev().find(|event| event["type"] == "session.status");
        let told = told.and_then(|event| event["state"].as_str()).unwrap_or("idle");
        assert_eq!(state, told, "I3: {session}: its state");
    }
}

/// I3: each item has its row, and the rows end at the same seq as the journal.
async fn items_agree(connection: &mut SqliteConnection, journals: &Journals) {
    let rows = sqlx::query(
        "select session_id, first_seq, item.last_seq from item join session on session.id = item.session",
    );
    let mut items: BTreeMap<(String, u64), u64> = BTreeMap::new();
    for row in rows.fetch_all(connection).await.expect("read") {
        let (first, last): (i64, i64) = (row.get(1), row.get(2));
        items.insert((row.get(0), first as u64), last as u64);
    }
    let mut expected: BTreeMap<(String, u64), u64> = BTreeMap::new();
    for (session, journal) in journals {
        let mut calls: HashMap<&str, u64> = HashMap::new();
        let mut compactions: HashMap<&str, u64> = HashMap::new();
        for (seq, event) in journal {
            let kind = event["type"].as_str().unwrap_or_default();
            let call = event["call_id"].as_str();
            let first = match (kind, call) {
                ("compact.started", _) => {
                    compactions.insert(event["item_id"].as_str().unwrap_or_default(), *seq);
                    Some(*seq)
                }
                ("compact.completed", _) => {
                    compactions.get(event["item_id"].as_str().unwrap_or_default()).copied()
                }
                ("message.started", _) => Some(*seq),
                ("message.completed", _) => {
                    if event["reasoning_item_id"].is_string() {
                        expected.insert((session.clone(), *seq), *seq);
                    }
                    event["item"]["first_seq"].as_u64()
                }
                ("error", _) if event["item_id"].is_string() => Some(*seq),
                ("tool.requested", Some(call)) => {
                    calls.insert(call, *seq);
                    Some(*seq)
                }
                (
                    "tool.status"
                    | "tool.started"
                    | "tool.blocked"
                    | "tool.completed"
                    | "permission.requested"
                    | "permission.resolved"
                    | "question.requested"
                    | "question.resolved",
                    Some(call),
                ) => calls.get(call).copied(),
                ("session.rewound", _) => {
                    let last = event["last_item_seq"].as_u64().unwrap_or(u64::MAX);
                    expected.retain(|(of, first), _| of != session || *first <= last);
                    None
                }
                _ => None,
            };
            if let Some(first) = first {
                expected.insert((session.clone(), first), *seq);
            }
        }
    }
    assert_eq!(items, expected, "I3: the items are those of the journal");
}

/// I3: stored keys of a session refer to events in its journal, and stored processes belong to running
/// calls.
async fn keys_agree(connection: &mut SqliteConnection, journals: &Journals) {
    let sql = "select session_id, reply from idempotency join session on session.id = idempotency.session";
    for row in sqlx::query(sql).fetch_all(&mut *connection).await.expect("read") {
        let (session, reply): (String, String) = (row.get(0), row.get(1));
        let reply: Value = serde_json::from_str(&reply).unwrap_or_default();
        if let Some(seq) = reply["seq"].as_u64() {
            assert!(journals[&session].contains_key(&seq), "I2: {session}: no event for {reply}");
        }
    }
    let sql = "select session_id, call_id from process join session on session.id = process.session";
    for row in sqlx::query(sql).fetch_all(connection).await.expect("read") {
        let (session, call): (String, String) = (row.get(0), row.get(1));
        let of_call = |kind: &str| {
            journals[&session]
                .values()
                .any(|event| event["type"] == kind && event["call_id"] == call.as_str())
        };
        assert!(of_call("tool.started"), "I3: a process is recorded for {call}, which never started");
    }
}

/// I10: every blob that an event refers to exists, is complete and belongs to the event's session.
async fn blobs_are_there(connection: &mut SqliteConnection, journals: &Journals, folder: &Path) {
    let rows = sqlx::query(
        "select session_id, blob_id, bytes, in_file, \
         (select coalesce(sum(octet_length(content)), 0) from blob_part where blob = blob.id) \
         from blob join session on session.id = blob.session",
    );
    let mut known: HashMap<(String, String), u64> = HashMap::new();
    for row in rows.fetch_all(connection).await.expect("read") {
        let (session, blob_id, bytes): (String, String, i64) = (row.get(0), row.get(1), row.get(2));
        let there = if row.get::<bool, _>(3) {
            std::fs::metadata(folder.join(&blob_id)).map_or(-1, |meta| meta.len() as i64)
        } else {
            row.get(4)
        };
        assert_eq!(there, bytes, "I10: {blob_id} of {session} is not complete");
        known.insert((session, blob_id), bytes as u64);
    }
    for (session, journal) in journals {
        for event in journal.values() {
            let cuts = event["truncated_fields"].as_array().into_iter().flatten();
            let shown = event["attachments"].as_array().into_iter().flatten();
            let whole = event.get("output_blob").into_iter();
            for named in cuts.chain(shown).chain(whole) {
                let blob_id = named["blob_id"].as_str().expect("an id").to_owned();
                let bytes = known.get(&(session.clone(), blob_id));
                assert_eq!(bytes.copied(), named["bytes"].as_u64(), "I10: {named} of {event}");
            }
        }
    }
}

/// I5: each tool call appended at most one line. `done` are the lines of calls whose result says that
/// they completed.
pub fn appended_once<'a>(file: &str, done: impl IntoIterator<Item = &'a str>) {
    let mut times: HashMap<&str, u32> = HashMap::new();
    file.lines().for_each(|line| *times.entry(line).or_default() += 1);
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "I5: {twice:?}");
    for line in done {
        assert!(times.contains_key(line), "I5: the call of {line} completed, but the file lacks the line");
    }
}
