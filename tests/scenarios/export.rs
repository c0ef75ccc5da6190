//! `session.export` and `session.import`.

use serde_json::json;

use super::agentctl::ctl;
use crate::support::client::{Client, Session};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

const FREE: &str = "[permissions]\nallow = [\"Bash\", \"Edit\"]\n[tools]\nedit_requires_read = false";

async fn exported(session: &Session, format: &str) -> String {
    let (mut data, mut params) = (String::new(), json!({"format": format}));
    loop {
        let page = session.call("export", params.clone()).await;
        data += page["data"].as_str().expect("a text");
        match page.get("next_cursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => return data,
        }
    }
}

async fn imported(client: &Client, data: &str) -> Session {
    let half = data.floor_char_boundary(data.len() / 2);
    let first = client.call("session.import", json!({"data": &data[..half], "last": false})).await;
    let rest = json!({"data": &data[half..], "import_id": first["import_id"], "last": true});
    let reply = client.call("session.import", rest).await;
    let id = reply["session"]["session_id"].as_str().expect("an id").to_owned();
    Session { client: client.clone(), id }
}

/// A session with thinking, tools, a changed file, a large output and hostile text.
async fn a_session(daemon: &TestDaemon) -> Session {
    daemon.write("a.txt", "one\ntwo\n");
    let session = daemon.client("alice").await.create_with(daemon, json!({"title": "<b>export</b>"})).await;
    let write = ("Write", json!({"file_path": "a.txt", "content": "one\n2 <script>\n"}));
    let print = ("Bash", json!({"command": "seq 1 20000"}));
    daemon.models.push(Step::calls([write, print]).thinking("I think.").usage(100, 10));
    daemon.models.push(
        Step::text("**Done** <script>alert(1)</script> ![x](https://evil.example/x.png)").usage(200, 20),
    );
    session.submit("please <i>do</i> it").await;
    session.call("wait", json!({})).await;
    session
}

#[tokio::test]
async fn lines_are_equal_after_import_and_second_export() {
    let mut daemon = TestDaemon::builder().config(FREE).start().await;
    let session = a_session(&daemon).await;
    let first = exported(&session, "jsonl").await;
    let client = session.client.clone();
    let copy = imported(&client, &first).await;
    assert_ne!(copy.id, session.id);
    let second = exported(&copy, "jsonl").await;
    let (head, lines) = first.split_once('\n').expect("lines");
    let (_, again) = second.split_once('\n').expect("lines");
    // The only difference is the end of the import: the rules of the file do not count.
    let is_more = |line: &&str| !lines.lines().any(|known| known == *line);
    let more: Vec<&str> = again.lines().filter(is_more).collect();
    assert_eq!(more, [] as [&str; 0]);
    assert_eq!(again, lines);
    assert!(head.contains(&session.id) && !lines.contains(&session.id), "only the first line holds the id");
    session.call("delete", json!({})).await;
    daemon.kill().await;
    daemon.launch().await;
    let copy = daemon.client("bob").await.join(&copy);
    assert_eq!(copy.view().await["state"], "idle");
    daemon.models.push(Step::text("more"));
    copy.submit("go on").await;
    assert_eq!(copy.call("wait", json!({})).await["result"]["text"], "more");
    let request = daemon.models.requests().pop().expect("a request");
    assert!(serde_json::to_string(request.messages()).expect("json").contains("please <i>do</i> it"));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn damaged_or_hostile_import_creates_nothing_and_names_line() {
    let daemon = TestDaemon::builder().config(FREE).start().await;
    let session = a_session(&daemon).await;
    let data = exported(&session, "jsonl").await;
    let lines: Vec<&str> = data.lines().collect();
    let mut cut = lines.clone();
    cut[4] = &lines[4][..lines[4].len() / 2];
    let mut swapped = lines.clone();
    swapped.swap(3, 4);
    let mut unknown = lines.clone();
    unknown[3] = "{\"type\":\"evil.kind\",\"seq\":2,\"at_ms\":1}";
    // Of the blobs that are named by their content, not by a call.
    let is_digest = |line: &str| line.starts_with("{\"blob_id\"") && line.as_bytes().get(31) == Some(&b'8');
    let blob = lines.iter().position(|line| is_digest(line)).expect("a blob");
    let other = lines[blob].replace("\"content\":\"", "\"content\":\"AAAA");
    let mut forged = lines.clone();
    forged[blob] = &other;
    for (name, hostile, line) in [
        ("cut", cut, "line 5"),
        ("swapped", swapped, "line 5"),
        ("unknown", unknown, "line 4"),
        ("forged", forged, "line "),
    ] {
        let params = json!({"data": hostile.join("\n"), "last": true});
        let refusal = session.client.refused("session.import", params).await;
        assert_eq!((refusal.code, &refusal.data["path"]), (-32602, &json!("data")), "{name}");
        assert!(refusal.message.contains(line), "{name}: {}", refusal.message);
    }
    let unknown = json!({"data": "", "import_id": "import_x", "last": true});
    assert_eq!(session.client.refused("session.import", unknown).await.data["path"], "import_id");
    let listed = session.client.call("session.list", json!({})).await;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1), "nothing was created");
}

#[tokio::test]
async fn imported_session_brings_no_permissions_and_runs_nothing() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "accept_edits"})).await;
    let rule =
        json!({"rule": "Bash(touch:*)", "kind": "allow", "scope": "session", "session_id": session.id});
    session.client.call("permission.add_rule", rule).await;
    daemon.models.push(Step::calls([("Bash", json!({"command": "rm x"}))]));
    session.submit("remove it").await;
    session.call("wait", json!({})).await;
    session.submit_with(json!({"input": "then this", "when_busy": "queue"})).await;
    let copy = imported(&session.client, &exported(&session, "jsonl").await).await;
    let view = copy.view().await;
    assert_eq!((&view["state"], &view["mode"]), (&json!("idle"), &json!("default")));
    assert_eq!(copy.call("queue.list", json!({})).await["queue"], json!([]));
    assert_eq!(copy.pending().await.len(), 0);
    daemon.models.push(Step::calls([("Bash", json!({"command": "touch x"}))]));
    copy.submit("touch it").await;
    assert_eq!(copy.call("wait", json!({})).await["session"]["requires"], "permission");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn html_and_markdown_show_conversation_without_active_content() {
    let daemon = TestDaemon::builder().config(FREE).start().await;
    let session = a_session(&daemon).await;
    let page = exported(&session, "html").await;
    for bad in ["<script", "<i>do</i>", "<b>export</b>", "src=\"http", "<img alt=\"x\""] {
        assert!(!page.contains(bad), "{bad}");
    }
    for good in ["<strong>Done</strong>", "class=\"add\"", "I think.", "default-src 'none'", "scripted/model"]
    {
        assert!(page.contains(good), "{good}");
    }
    let hidden = json!({"format": "html", "include": {"thinking": "none"}});
    let page = session.call("export", hidden).await["data"].as_str().expect("a text").to_owned();
    assert!(!page.contains("I think."), "thinking follows the filter of session.events");
    let text = exported(&session, "markdown").await;
    assert!(text.contains("## User") && text.contains("```diff") && text.contains("## Costs"), "{text}");
}

#[tokio::test]
async fn agentctl_exports_to_file_and_imports_it() {
    let daemon = TestDaemon::builder().config(FREE).start().await;
    let session = a_session(&daemon).await;
    let file = daemon.path("session.jsonl");
    let name = file.to_str().expect("text");
    ctl(&daemon, &["export", &session.id, "-o", name]).await.fine();
    let id = ctl(&daemon, &["import", name]).await.fine().trim().to_owned();
    let copy = Session { client: session.client.clone(), id };
    assert_eq!(copy.items().await.len(), session.items().await.len());
    let page = ctl(&daemon, &["export", &session.id, "--format", "html"]).await.fine();
    assert!(page.ends_with("</html>\n"), "the page is complete");
    if let Ok(kept) = std::env::var("AGENTD_KEEP_PAGE") {
        std::fs::write(kept, page).expect("written");
    }
}
