//! A folder says something of itself: its text is read as data, and nothing in it is run.

use serde_json::json;

use super::agentctl::ctl;
use super::bash;
use crate::support::daemon::{BOTH_APIS, TestDaemon};
use crate::support::model_server::Step;

#[tokio::test]
async fn what_would_run_is_left_out_and_people_are_told() {
    let house = TestDaemon::start().await;
    house.write(".mcp.json", r#"{"mcpServers": {"x": {"command": "touch", "args": ["pwned"]}}}"#);
    house.write(".git/HEAD", "ref: refs/heads/main\n");
    house.write(".git/config", "[core]\n\tfsmonitor = touch pwned\n");
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::text("Hello."));
    session.submit("hello").await;
    let required = seen.wait_for("workspace.trust_required").await;
    assert_eq!(required["cwd"], json!(house.workspace()));
    let parts = required["parts"].to_string();
    assert!(parts.contains(".mcp.json") && parts.contains("git"), "{parts}");
    let notice = seen.wait_for("notice").await;
    assert_eq!(notice["kind"], "workspace_untrusted");
    assert!(notice["text"].as_str().expect("words").contains(".mcp.json"));
    seen.turn_ends("success").await;
    assert!(!house.workspace().join("pwned").exists());
    house.models.assert_no_breach();

    house.models.push(Step::text("Hello."));
    session.submit("again").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.seen_of("workspace.trust_required").len(), 1, "it is told once");
}

#[tokio::test]
async fn a_plain_folder_asks_for_no_trust() {
    let house = TestDaemon::start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    assert!(seen.seen_of("workspace.trust_required").is_empty() && seen.seen_of("notice").is_empty());
}

#[tokio::test]
async fn project_instructions_are_told_to_the_model_and_stay_the_same_for_the_session() {
    for api in BOTH_APIS {
        let mut house = TestDaemon::builder().api(api).start().await;
        house.write("AGENTS.md", "Always indent with tabs. See @docs/style.md\n");
        house.write("docs/style.md", "Never use emojis.\n");
        let session = house.client("alice").await.create(&house).await;
        let mut seen = session.follow().await;
        house.models.otherwise(|_| Step::text("Hello."));
        session.submit("hello").await;
        seen.turn_ends("success").await;
        let context = &seen.seen_of("session.context")[0];
        assert!(context["sources"].to_string().contains("AGENTS.md"));

        house.write("AGENTS.md", "Always indent with spaces.\n");
        house.crash_and_restart().await;
        let session = house.client("alice").await.join(&session);
        let mut seen = session.follow_after(seen.last_seq()).await;
        session.submit("again").await;
        seen.turn_ends("success").await;
        let system = |n: usize| {
            let request = &house.models.requests()[n];
            match request.body.get("system") {
                Some(system) => system[0]["text"].clone(),
                None => request.messages()[0]["content"].clone(),
            }
        };
        let first = system(0);
        let text = first.as_str().expect("text");
        assert!(text.contains("Always indent with tabs.") && text.contains("Never use emojis."), "{text}");
        assert_eq!(first, system(1), "byte for byte");
        house.models.assert_no_breach();
    }
}

const RULES: &str = "[permissions]\nallow = [\"Bash(touch allowed)\"]\ndeny = [\"Bash(touch denied)\"]\n";

#[tokio::test]
async fn a_project_s_own_rules_allow_only_while_it_is_trusted_as_it_is() {
    let house = TestDaemon::start().await;
    house.write(".agentd/config.toml", RULES);
    let alice = house.client("alice").await;
    let cwd = json!({"cwd": house.workspace()});
    let found = alice.call("workspace.status", cwd.clone()).await;
    assert_eq!((&found["trusted"], &found["cwd"]), (&json!(false), &json!(house.workspace())));
    assert_eq!(found["parts"], json!([".agentd/config.toml: allow Bash(touch allowed)"]));

    // What forbids counts at once, what allows does not.
    let session = alice.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::calls([bash("touch denied"), bash("touch allowed")]));
    house.models.otherwise(|_| Step::text("Done."));
    session.submit("go").await;
    let required = seen.wait_for("workspace.trust_required").await;
    assert_eq!(required["digest"], found["digest"]);
    let denied = seen.find("the denied call", |event| event["code"] == "denied_by_rule").await;
    assert!(denied["output"].as_str().expect("words").contains("Bash(touch denied)"), "{denied}");
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;

    // Trust is given to what was seen, and to nothing else.
    let other = json!({"cwd": house.workspace(), "digest": "0".repeat(64)});
    let stale = alice.refused("workspace.trust", other).await;
    assert_eq!((stale.kind.as_str(), &stale.data["digest"]), ("stale_precondition", &found["digest"]));
    let trust = json!({"cwd": house.workspace(), "digest": found["digest"]});
    assert_eq!(alice.call("workspace.trust", trust).await["trusted"], true);
    house.models.push(Step::calls([bash("touch allowed")]));
    session.submit("again").await;
    seen.turn_ends("success").await;
    assert!(house.workspace().join("allowed").exists(), "nobody was asked");

    // Another content asks again, and allows nothing meanwhile.
    house.write(".agentd/config.toml", &RULES.replace("touch allowed", "touch more"));
    house.models.push(Step::calls([bash("touch more")]));
    session.submit("more").await;
    let again = seen.wait_for("workspace.trust_required").await;
    assert_ne!(again["digest"], found["digest"]);
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(!house.workspace().join("more").exists());

    // And it is written down who trusted what.
    let log = alice.call("permission.audit", json!({"limit": 500})).await;
    let rows: Vec<_> =
        log["entries"].as_array().expect("rows").iter().filter(|row| row["kind"] == "trust").collect();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["verdict"], &rows[0]["client"]), (&json!("trusted"), &json!("alice")));
    assert_eq!(rows[0]["digest"], found["digest"]);

    // As it is now, whatever that is, and back.
    let cwd = json!({"cwd": house.workspace()});
    let now = alice.call("workspace.trust", cwd.clone()).await;
    assert_eq!((&now["trusted"], &now["digest"]), (&json!(true), &again["digest"]));
    let then = alice.call("workspace.untrust", cwd).await;
    assert_eq!(
        (&then["trusted"], &then["digest"], &then["parts"]),
        (&json!(false), &now["digest"], &now["parts"])
    );
    let gone = alice.call("workspace.untrust", json!({"cwd": house.workspace().join("gone")})).await;
    assert_eq!((&gone["trusted"], &gone["digest"], &gone["parts"]), (&json!(false), &json!(""), &json!([])));
}

#[tokio::test]
async fn a_damaged_project_file_still_forbids_and_allows_nothing() {
    let plan = TestDaemon::builder().config("[permissions]\nallow = [\"Bash(touch mine)\"]");
    let house = plan.start().await;
    let alice = house.client("alice").await;
    let session = alice.create(&house).await;
    let mut seen = session.follow().await;
    house.models.otherwise(|_| Step::text("Done."));
    let status = async || {
        let found = alice.call("workspace.status", json!({"cwd": house.workspace()})).await;
        found["parts"][0].as_str().expect("a part").to_owned()
    };
    let trust = async || {
        let cwd = house.workspace();
        let found = alice.call("workspace.status", json!({"cwd": cwd})).await;
        alice.call("workspace.trust", json!({"cwd": cwd, "digest": found["digest"]})).await;
    };

    // One key that nobody knows: what it allows is gone, even where it is trusted; what it forbids is not.
    house.write(".agentd/config.toml", &format!("zork = 1\n{RULES}"));
    assert!(status().await.contains("line 1: unknown field `zork`"), "{}", status().await);
    trust().await;
    house.models.push(Step::calls([bash("touch denied"), bash("touch allowed"), bash("touch mine")]));
    session.submit("go").await;
    let denied = seen.find("the denied call", |event| event["code"] == "denied_by_rule").await;
    assert!(denied["output"].as_str().expect("words").contains("Bash(touch denied)"), "{denied}");
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(asked["input"]["command"], "touch allowed");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(house.workspace().join("mine").exists(), "what the user allows counts");

    // No TOML at all: nobody knows what it was to forbid, so the user's own rules allow nothing here either.
    house.write(".agentd/config.toml", "[permissions\ndeny = [\"Bash(touch mine)\"]\n");
    assert!(status().await.contains("every call asks: line 1"), "{}", status().await);
    trust().await;
    house.models.push(Step::calls([bash("touch mine")]));
    session.submit("again").await;
    let asked = seen.wait_for("permission.requested").await;
    assert!(asked["reason"].as_str().expect("a reason").contains("line 1"), "{asked}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn trust_outlasts_a_crash_and_is_taken_back() {
    let mut house = TestDaemon::start().await;
    house.write(".agentd/config.toml", RULES);
    let shown = ctl(&house, &["trust"]).await;
    assert_eq!(shown.code, 64, "nobody can be asked: {shown:?}");
    assert!(shown.out.contains("allow Bash(touch allowed)"), "{shown:?}");
    ctl(&house, &["trust", "--yes"]).await.fine();
    house.crash_and_restart().await;
    let cwd = json!({"cwd": house.workspace()});
    assert_eq!(house.client("bob").await.call("workspace.status", cwd.clone()).await["trusted"], true);
    ctl(&house, &["untrust"]).await.fine();
    assert_eq!(house.client("bob").await.call("workspace.status", cwd.clone()).await["trusted"], false);
    house.models.otherwise(|_| Step::text("Done."));
    ctl(&house, &["run", "--trust", "go"]).await.fine();
    assert_eq!(house.client("bob").await.call("workspace.status", cwd).await["trusted"], true);
    assert!(ctl(&house, &["audit", "verify"]).await.fine().contains("is whole"));
}

#[tokio::test]
async fn the_model_is_told_of_a_repository_once_it_is_trusted_and_nothing_of_it_is_run() {
    let house = TestDaemon::start().await;
    let work = house.workspace();
    let git = |args: &[&str]| {
        let git = std::process::Command::new("git").arg("-C").arg(&work).args(args).output();
        git.is_ok_and(|output| output.status.success())
    };
    if !git(&["init", "-q", "-b", "trunk"]) {
        eprintln!("SKIPPED: there is no git");
        return;
    }
    house.write("a.txt", "one");
    assert!(git(&["config", "core.fsmonitor", "touch pwned"]));
    house.models.otherwise(|_| Step::text("Hello."));
    let told = async |yes: bool| {
        if yes {
            ctl(&house, &["trust", "--yes"]).await.fine();
        }
        let session = house.client("alice").await.create(&house).await;
        let mut seen = session.follow().await;
        session.submit("hello").await;
        seen.turn_ends("success").await;
        seen.seen_of("session.context")[0]["system"].as_str().expect("text").to_owned()
    };
    assert!(!told(false).await.contains("trunk"), "not before it is trusted");
    let system = told(true).await;
    assert!(system.contains("Branch: trunk") && system.contains("?? a.txt"), "{system}");
    assert!(!work.join("pwned").exists(), "something of the repository was run");
}
