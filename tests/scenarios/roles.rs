//! No command can approve itself: however it reaches the daemon, the daemon recognises its origin,
//! refuses the request and records it.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// The attack of a command. It gets the socket, the program `agentctl` and the request that it tries to
/// answer; each way writes the reply into its own file.
const ATTACK: &str = include_str!("roles/attack.py");
/// The same for a process whose environment, process session and parent are gone. The daemon is its ancestor.
const SCRUBBED: &str = include_str!("roles/scrubbed.py");

/// The ways, and the method at which the daemon refuses each.
const WAYS: [(&str, &str); 11] = [
    ("raw", "session.approve"),
    ("agentctl", "session.approve"),
    ("approve", "session.approve"),
    ("orphan", "session.approve"),
    ("scrubbed", "session.approve"),
    ("inherited", "session.approve"),
    ("dead", "session.approve"),
    ("post", "session.approve"),
    ("header", "session.approve"),
    ("websocket", "session.approve"),
    ("claims", "session.approve"),
];

async fn audit(daemon: &TestDaemon, kind: &str) -> Vec<Value> {
    let reply = daemon.client("auditor").await.call("permission.audit", json!({"limit": 500})).await;
    let rows = reply["entries"].as_array().expect("a list").iter();
    rows.filter(|row| row["kind"] == kind).cloned().collect()
}

#[tokio::test]
async fn command_cannot_answer_permission_request_over_any_path() {
    let daemon =
        TestDaemon::builder().config("[permissions]\nallow = [\"Bash(python3 attack.py)\"]").start().await;
    daemon.write("attack.py", ATTACK);
    daemon.write("scrubbed.py", SCRUBBED);
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("python3 attack.py"), bash("touch prize")]));
    daemon.models.push(Step::text("Done."));
    session.submit("attack").await;
    let asked = seen.wait_for("permission.requested").await;
    let request = asked["request_id"].as_str().expect("an id");
    let target = format!("{}\n{}\n{request}", daemon.socket().display(), env!("CARGO_BIN_EXE_agentctl"));
    // Write the file atomically.
    daemon.write("target.part", &target);
    let work = daemon.workspace();
    std::fs::rename(work.join("target.part"), work.join("target")).expect("renamed");

    let attacked = seen.wait_for("tool.completed").await;
    assert!(attacked["output"].as_str().expect("text").contains("tried everything"), "{attacked:#}");
    assert_eq!(session.pending().await.len(), 1, "the request is still pending");
    for (way, _) in WAYS {
        let told = daemon.read(way);
        let is_refused = told.contains("not_authorised") || told.contains("not for processes of a tool");
        assert!(is_refused, "{way} was told {told:?}");
    }
    assert!(daemon.read("approve").starts_with("exit 1: "), "permission denied: {}", daemon.read("approve"));
    let hello: Value = serde_json::from_str(&daemon.read("hello")).expect("JSON");
    assert_eq!(hello["result"]["role"], "tool", "the daemon ignores a requested role");

    let refused = audit(&daemon, "refused").await;
    let mut methods: Vec<&str> = refused.iter().map(|row| row["tool"].as_str().expect("a method")).collect();
    let mut expected: Vec<&str> = WAYS.iter().map(|(_, method)| *method).collect();
    methods.sort_unstable();
    expected.sort_unstable();
    assert_eq!(methods, expected, "the audit log has each attempt");
    assert!(refused.iter().all(|row| row["verdict"] == "refused" && row["uid"].is_u64()));
    let names = refused.iter().filter_map(|row| row["exe"].as_str());
    assert!(names.filter(|exe| exe.contains("python")).count() >= 5, "{refused:#?}");

    // The user answers, and only that answer counts.
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert!(daemon.workspace().join("prize").exists());
    let answered = audit(&daemon, "permission").await;
    assert_eq!(answered.len(), 1);
    assert_eq!((&answered[0]["verdict"], &answered[0]["client"]), (&json!("allow"), &json!("alice")));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn tool_client_can_call_discovery_and_status_only() {
    const ASK: &str = r#"
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(30)
s.connect(sys.argv[1])
f = s.makefile("rw")
for line in open("calls"):
    f.write(line)
    f.flush()
    answer = json.loads(f.readline())
    # Whole answers would not fit into the stored output.
    shown = {"id": answer["id"], "data": answer.get("error", {}).get("data")}
    print(json.dumps(shown, separators=(",", ":")))
"#;
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash(sh ask.sh)\"]").start().await;
    daemon.write("ask.py", ASK);
    daemon.write("ask.sh", &format!("python3 ask.py {}", daemon.socket().display()));
    let session = daemon.client("alice").await.create(&daemon).await;
    let methods: Vec<&str> = agentd::api::methods::METHODS.iter().map(|method| method.name).collect();
    let calls = methods.iter().map(|name| {
        let params =
            json!({"session_id": session.id, "cwd": daemon.workspace(), "input": "x", "mode": "now"});
        format!("{}\n", json!({"jsonrpc": "2.0", "id": name, "method": name, "params": params}))
    });
    daemon.write("calls", &calls.collect::<String>());
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("sh ask.sh")]));
    daemon.models.push(Step::text("Done."));
    session.submit("ask").await;
    let asked = seen.wait_for("tool.completed").await;
    let output = asked["output"].as_str().expect("text").to_owned();
    let allowed = ["rpc.discover", "daemon.hello", "daemon.status"];
    for name in methods {
        let answer = output.lines().find(|line| line.contains(&format!("\"id\":\"{name}\"")));
        let answer = answer.unwrap_or_else(|| panic!("no answer to {name}: {output}"));
        let is_refused = answer.contains("not_authorised") && answer.contains("\"role\":\"tool\"");
        assert_eq!(is_refused, !allowed.contains(&name), "{answer}");
    }
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn observer_attempt_is_refused_and_audited() {
    let daemon = TestDaemon::start().await;
    let looker = daemon.client("looker").await;
    looker.call("daemon.hello", json!({"name": "looker", "role": "observer"})).await;
    let refusal = looker.refused("session.create", json!({"cwd": daemon.workspace()})).await;
    assert_eq!((refusal.kind.as_str(), &refusal.data["role"]), ("not_authorised", &json!("observer")));
    let rows = audit(&daemon, "refused").await;
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["tool"], &rows[0]["client"]), (&json!("session.create"), &json!("looker")));
}

#[tokio::test]
async fn agentctl_of_user_has_controller_role() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch one")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    ctl(&daemon, &["approve", asked["request_id"].as_str().expect("an id")]).await.stdout();
    seen.turn_ends("success").await;
    let rows = audit(&daemon, "permission").await;
    let exe = rows[0]["exe"].as_str().expect("a program");
    assert!(exe.contains("agentctl"), "{exe}");
    assert_eq!(rows[0]["client"], "agentctl");
    // `agentctl audit` shows the same values, and the hash chain is intact.
    let shown = ctl(&daemon, &["audit"]).await.stdout();
    assert!(shown.contains("permission") && shown.contains("agentctl"), "{shown}");
    let verified = ctl(&daemon, &["audit", "verify"]).await.stdout();
    assert!(verified.contains("is intact"), "{verified}");
}

#[tokio::test]
async fn tool_process_of_other_daemon_has_tool_role() {
    const ASK: &str = r#"
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(30)
s.connect(sys.argv[1])
s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"session.list","params":{}}\n')
print(s.makefile().readline(), end="")
"#;
    let config = "[permissions]\nallow = [\"Bash\"]\n[sandbox]\nlevel = \"off\"";
    let (daemon, other) =
        (TestDaemon::builder().config(config).start().await, TestDaemon::builder().start().await);
    let script = daemon.workspace().join("ask.py");
    daemon.write("ask.py", ASK);
    let ask = format!("python3 {} {}", script.display(), other.socket().display());
    // Ask from the command itself, and from a process without environment, process session and parent.
    let scrubbed = format!(
        "(env -i PATH=\"$PATH\" setsid {ask} > told &); until [ -s told ]; do sleep 0.01; done; cat told"
    );
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash(&ask), bash(&scrubbed)]));
    daemon.models.push(Step::text("Done."));
    session.submit("ask").await;
    seen.turn_ends("success").await;
    let told = seen.events_of("tool.completed");
    assert_eq!(told.len(), 2);
    for told in told {
        let output = told["output"].as_str().expect("text");
        assert!(output.contains("not_authorised") && output.contains("\"role\":\"tool\""), "{output}");
    }
    assert_eq!(audit(&other, "refused").await.len(), 2, "the other daemon records both attempts");
}
