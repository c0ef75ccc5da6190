//! File changes of a session, as a user inspects them afterwards.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

const TOOLS_ALLOWED: &str =
    "[permissions]\nallow = [\"Bash\", \"Edit\", \"Delete\"]\n[tools]\nedit_requires_read = false";

async fn run(daemon: &TestDaemon, session: &Session, seen: &mut Log, calls: Vec<(&'static str, Value)>) {
    for call in calls {
        daemon.models.push(Step::calls([call]));
    }
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("Edit", json!({"file_path": path, "old_string": old, "new_string": new}))
}

async fn diff(session: &Session) -> Vec<Value> {
    session.call("diff", json!({})).await["files"].as_array().expect("files").clone()
}

#[tokio::test]
async fn session_changes_form_one_diff_per_file_after_restart() {
    let mut daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    assert_eq!(diff(&session).await, [] as [Value; 0]);
    daemon.write("src/a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    daemon.write("gone.txt", "bye\n");
    daemon.write("back.txt", "same\n");
    let patch = "*** Begin Patch\n*** Delete File: gone.txt\n*** Add File: new.txt\n+a\n*** End Patch";
    let calls = vec![
        edit("src/a.txt", "2\n", "two\n"),
        edit("src/a.txt", "two", "zwei"),
        edit("src/a.txt", "9", "neun"),
        ("ApplyPatch", json!({"input": patch})),
        edit("new.txt", "a", "b"),
        edit("back.txt", "same", "other"),
        edit("back.txt", "other", "same"),
    ];
    run(&daemon, &session, &mut seen, calls).await;
    let files = diff(&session).await;
    let told: Vec<(&str, &Value, &Value)> = files
        .iter()
        .map(|file| (file["change"].as_str().expect("a word"), &file["diff"], &file["exact"]))
        .collect();
    let exact = json!(true);
    assert_eq!(
        told,
        [
            ("removed", &json!("--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"), &exact),
            ("created", &json!("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+b\n"), &exact),
            (
                "modified",
                &json!(
                    "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,9 +1,9 @@\n 1\n-2\n+zwei\n 3\n 4\n 5\n 6\n 7\n 8\n-9\n+neun\n"
                ),
                &exact
            ),
        ]
    );
    let paged = session.call("diff", json!({"limit": 2})).await;
    assert_eq!((paged["files"].as_array().expect("files").len(), &paged["next_cursor"]), (2, &json!("2")));
    let rest = session.call("diff", json!({"cursor": "2"})).await;
    assert_eq!(rest, json!({"files": [files[2]]}));

    // Changes by other programs do not belong to the session.
    daemon.write("src/a.txt", "quite\nsomething\nelse\n");
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    assert_eq!(diff(&session).await, files);
    let mut seen = session.follow_after(session.view().await["last_seq"].as_u64().expect("a number")).await;
    let read = ("Read", json!({"file_path": "src/a.txt"}));
    run(&daemon, &session, &mut seen, vec![read, edit("src/a.txt", "else", "new")]).await;
    let after = diff(&session).await;
    assert_eq!(after[2]["exact"], false, "{after:?}");

    let id = session.view().await["session_id"].as_str().expect("an id").to_owned();
    let ctl = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
        command.arg("--socket").arg(daemon.socket()).args(["--no-start", "diff", &id]).args(args);
        let ended = command.output().expect("agentctl runs");
        assert!(ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stdout).expect("text")
    };
    let shown = ctl(&[]);
    for line in
        ["removed ", "    -bye", "created ", "    +b", "modified ", "    +zwei", "not the whole change"]
    {
        assert!(shown.contains(line), "{line:?} in {shown}");
    }
    assert_eq!(ctl(&["--stat"]).lines().count(), 3);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&ctl(&["--json"])).expect("JSON"), after);
}
