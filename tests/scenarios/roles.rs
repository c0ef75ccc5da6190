//! Nobody approves himself (S21): whatever a command does to reach the daemon, it is told from a person,
//! refused, and written down.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// What a command tries. It gets the socket, the program `agentctl`, and the request that it is to
/// answer; each way writes what it was told into a file of its own.
const ATTACK: &str = include_str!("roles/attack.py");
/// The same for a process of which nothing but its descent is left.
const SCRUBBED: &str = include_str!("roles/scrubbed.py");

/// The ways, and the method that each is refused at.
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

async fn audit(house: &TestDaemon, kind: &str) -> Vec<Value> {
    let reply = house.client("auditor").await.call("permission.audit", json!({"limit": 500})).await;
    let rows = reply["entries"].as_array().expect("a list").iter();
    rows.filter(|row| row["kind"] == kind).cloned().collect()
}

#[tokio::test]
async fn no_way_that_a_command_has_lets_it_answer_a_request() {
    let house =
        TestDaemon::builder().config("[permissions]\nallow = [\"Bash(python3 attack.py)\"]").start().await;
    house.write("attack.py", ATTACK);
    house.write("scrubbed.py", SCRUBBED);
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash("python3 attack.py"), bash("touch prize")]));
    house.models.push(Step::text("Done."));
    session.submit("attack").await;
    let asked = seen.wait_for("permission.requested").await;
    let request = asked["request_id"].as_str().expect("an id");
    let target = format!("{}\n{}\n{request}", house.socket().display(), env!("CARGO_BIN_EXE_agentctl"));
    // Whole at once.
    house.write("target.part", &target);
    let work = house.workspace();
    std::fs::rename(work.join("target.part"), work.join("target")).expect("renamed");

    let attacked = seen.wait_for("tool.completed").await;
    assert!(attacked["output"].as_str().expect("text").contains("tried everything"), "{attacked:#}");
    assert_eq!(session.pending().await.len(), 1, "nobody answered it");
    for (way, _) in WAYS {
        let told = house.read(way);
        let is_refused = told.contains("not_authorised") || told.contains("not for processes of a tool");
        assert!(is_refused, "{way} was told {told:?}");
    }
    assert!(house.read("approve").starts_with("exit 1: "), "permission denied: {}", house.read("approve"));
    let hello: Value = serde_json::from_str(&house.read("hello")).expect("JSON");
    assert_eq!(hello["result"]["role"], "tool", "a role is given, whatever is asked for");

    let refused = audit(&house, "refused").await;
    let mut methods: Vec<&str> = refused.iter().map(|row| row["tool"].as_str().expect("a method")).collect();
    let mut expected: Vec<&str> = WAYS.iter().map(|(_, method)| *method).collect();
    methods.sort_unstable();
    expected.sort_unstable();
    assert_eq!(methods, expected, "each attempt is written down");
    assert!(refused.iter().all(|row| row["verdict"] == "refused" && row["uid"].is_u64()));
    let names = refused.iter().filter_map(|row| row["exe"].as_str());
    assert!(names.filter(|exe| exe.contains("python")).count() >= 5, "{refused:#?}");

    // A person answers, and it is that which counts.
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert!(house.workspace().join("prize").exists());
    let answered = audit(&house, "permission").await;
    assert_eq!(answered.len(), 1);
    assert_eq!((&answered[0]["verdict"], &answered[0]["client"]), (&json!("allow"), &json!("alice")));
    house.models.assert_no_breach();
}

#[tokio::test]
async fn a_command_can_ask_who_the_daemon_is_and_nothing_else() {
    const ASK: &str = r#"
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(30)
s.connect(sys.argv[1])
f = s.makefile("rw")
for line in open("calls"):
    f.write(line)
    f.flush()
    print(f.readline(), end="")
"#;
    let house = TestDaemon::builder().config("[permissions]\nallow = [\"Bash(sh ask.sh)\"]").start().await;
    house.write("ask.py", ASK);
    house.write("ask.sh", &format!("python3 ask.py {}", house.socket().display()));
    let session = house.client("alice").await.create(&house).await;
    let methods: Vec<&str> = agentd::api::methods::METHODS.iter().map(|method| method.name).collect();
    let calls = methods.iter().map(|name| {
        let params = json!({"session_id": session.id, "cwd": house.workspace(), "input": "x", "mode": "now"});
        format!("{}\n", json!({"jsonrpc": "2.0", "id": name, "method": name, "params": params}))
    });
    house.write("calls", &calls.collect::<String>());
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash("sh ask.sh")]));
    house.models.push(Step::text("Done."));
    session.submit("ask").await;
    let asked = seen.wait_for("tool.completed").await;
    let output = asked["output"].as_str().expect("text").to_owned();
    let allowed = ["rpc.discover", "daemon.hello", "daemon.status"];
    for name in methods {
        let answer = output.lines().find(|line| line.contains(&format!("\"id\":\"{name}\"")));
        // The document is longer than what is kept of a command's output.
        let Some(answer) = answer else {
            assert_eq!(name, "rpc.discover", "{output}");
            continue;
        };
        let is_refused = answer.contains("not_authorised") && answer.contains("\"role\":\"tool\"");
        assert_eq!(is_refused, !allowed.contains(&name), "{answer}");
    }
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn what_observers_try_is_refused_and_written_down() {
    let house = TestDaemon::start().await;
    let looker = house.client("looker").await;
    looker.call("daemon.hello", json!({"name": "looker", "role": "observer"})).await;
    let refusal = looker.refused("session.create", json!({"cwd": house.workspace()})).await;
    assert_eq!((refusal.kind.as_str(), &refusal.data["role"]), ("not_authorised", &json!("observer")));
    let rows = audit(&house, "refused").await;
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["tool"], &rows[0]["client"]), (&json!("session.create"), &json!("looker")));
}

#[tokio::test]
async fn a_person_s_agentctl_is_a_person_s() {
    let house = TestDaemon::start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash("touch one")]));
    house.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    ctl(&house, &["approve", asked["request_id"].as_str().expect("an id")]).await.fine();
    seen.turn_ends("success").await;
    let rows = audit(&house, "permission").await;
    let exe = rows[0]["exe"].as_str().expect("a program");
    assert!(exe.contains("agentctl"), "{exe}");
    assert_eq!(rows[0]["client"], "agentctl");
    // The rows say the same to people, and the whole is whole.
    let shown = ctl(&house, &["audit"]).await.fine();
    assert!(shown.contains("permission") && shown.contains("agentctl"), "{shown}");
    let verified = ctl(&house, &["audit", "verify"]).await.fine();
    assert!(verified.contains("is whole"), "{verified}");
}

#[tokio::test]
async fn a_tool_of_another_daemon_is_a_tool_here() {
    const ASK: &str = r#"
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(30)
s.connect(sys.argv[1])
s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"session.list","params":{}}\n')
print(s.makefile().readline(), end="")
"#;
    let config = "[permissions]\nallow = [\"Bash\"]\n[sandbox]\nlevel = \"off\"";
    let (house, other) =
        (TestDaemon::builder().config(config).start().await, TestDaemon::builder().start().await);
    let script = house.workspace().join("ask.py");
    house.write("ask.py", ASK);
    let ask = format!("python3 {} {}", script.display(), other.socket().display());
    // As it is, and of one that has left everything but its descent.
    let scrubbed = format!(
        "(env -i PATH=\"$PATH\" setsid {ask} > told &); until [ -s told ]; do sleep 0.01; done; cat told"
    );
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash(&ask), bash(&scrubbed)]));
    house.models.push(Step::text("Done."));
    session.submit("ask").await;
    seen.turn_ends("success").await;
    let told = seen.seen_of("tool.completed");
    assert_eq!(told.len(), 2);
    for told in told {
        let output = told["output"].as_str().expect("text");
        assert!(output.contains("not_authorised") && output.contains("\"role\":\"tool\""), "{output}");
    }
    assert_eq!(audit(&other, "refused").await.len(), 2, "and written down there");
}
