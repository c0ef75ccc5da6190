//! Files of a workspace: the daemon reads their text as data and runs nothing in it without trust.

use serde_json::json;

use super::agentctl::ctl;
use super::bash;
use crate::support::daemon::{MESSAGE_APIS, TestDaemon};
use crate::support::model_server::Step;

#[tokio::test]
async fn untrusted_executable_files_are_ignored_and_reported() {
    let daemon = TestDaemon::start().await;
    daemon.write(".mcp.json", r#"{"mcpServers": {"x": {"command": "touch", "args": ["pwned"]}}}"#);
    daemon.write(".git/HEAD", "ref: refs/heads/main\n");
    daemon.write(".git/config", "[core]\n\tfsmonitor = touch pwned\n");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    let required = seen.wait_for("workspace.trust_required").await;
    assert_eq!(required["cwd"], json!(daemon.workspace()));
    let parts = required["parts"].to_string();
    assert!(parts.contains(".mcp.json") && parts.contains("git"), "{parts}");
    let notice = seen.wait_for("notice").await;
    assert_eq!(notice["kind"], "workspace_untrusted");
    assert!(notice["text"].as_str().expect("words").contains(".mcp.json"));
    seen.turn_ends("success").await;
    assert!(!daemon.workspace().join("pwned").exists());
    daemon.models.assert_no_breach();

    daemon.models.push(Step::text("Hello."));
    session.submit("again").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("workspace.trust_required").len(), 1, "it is told once");
}

#[tokio::test]
async fn folder_without_executable_files_requires_no_trust() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("workspace.trust_required").is_empty() && seen.events_of("notice").is_empty());
}

#[tokio::test]
async fn project_instructions_are_sent_and_fixed_for_session() {
    for api in MESSAGE_APIS {
        let mut daemon = TestDaemon::builder().api(api).start().await;
        daemon.write("AGENTS.md", "Always indent with tabs. See @docs/style.md\n");
        daemon.write("docs/style.md", "Never use emojis.\n");
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        daemon.models.set_fallback(|_| Step::text("Hello."));
        session.submit("hello").await;
        seen.turn_ends("success").await;
        let context = &seen.events_of("session.prompt_built")[0];
        assert!(context["sources"].to_string().contains("AGENTS.md"));

        daemon.write("AGENTS.md", "Always indent with spaces.\n");
        daemon.crash_and_restart().await;
        let session = daemon.client("alice").await.join(&session);
        let mut seen = session.follow_after(seen.last_seq()).await;
        session.submit("again").await;
        seen.turn_ends("success").await;
        let system = |n: usize| {
            let request = &daemon.models.requests()[n];
            match request.body.get("system") {
                Some(system) => system[0]["text"].clone(),
                None => request.messages()[0]["content"].clone(),
            }
        };
        let first = system(0);
        let text = first.as_str().expect("text");
        assert!(text.contains("Always indent with tabs.") && text.contains("Never use emojis."), "{text}");
        assert_eq!(first, system(1), "byte for byte");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn skipped_include_is_reported_once_with_reason() {
    let mut daemon = TestDaemon::start().await;
    daemon.write("AGENTS.md", "Use tabs. See @../outside.md, @docs/a.md and @types/node.\n");
    daemon.write("docs/a.md", "Never use emojis. @../AGENTS.md @gone.md\n");
    std::fs::write(daemon.workspace().parent().expect("a folder").join("outside.md"), "secret")
        .expect("written");
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.set_fallback(|_| Step::text("Hello."));
    session.submit("hello").await;
    let notice = seen.wait_for("notice").await;
    assert_eq!(notice["kind"], "instructions_skipped");
    let text = notice["text"].as_str().expect("words");
    for part in [
        "@../outside.md in ",
        "is outside ",
        "@../AGENTS.md in ",
        "docs/a.md includes itself in a loop",
        "@gone.md in ",
        "does not exist",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("types/node"), "{text}");
    seen.turn_ends("success").await;

    // A prompt of the turn itself is built from the same files, also after a restart.
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    session.submit_with(json!({"input": "again", "append_system_prompt": "Be brief."})).await;
    seen.wait_for("turn.prompt_built").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("notice").len(), 1, "it is told once");
    let first = &daemon.models.requests()[0].body["system"][0]["text"];
    assert!(
        first.as_str().is_some_and(|text| text.contains("emojis") && !text.contains("secret")),
        "{first}"
    );
}

const RULES: &str = "[permissions]\nallow = [\"Bash(touch allowed)\"]\ndeny = [\"Bash(touch denied)\"]\n";

#[tokio::test]
async fn project_allow_rules_apply_only_while_trusted() {
    let daemon = TestDaemon::start().await;
    daemon.write(".agentd/config.toml", RULES);
    let alice = daemon.client("alice").await;
    let cwd = json!({"cwd": daemon.workspace()});
    let found = alice.call("workspace.status", cwd.clone()).await;
    assert_eq!((&found["trusted"], &found["cwd"]), (&json!(false), &json!(daemon.workspace())));
    assert_eq!(found["parts"], json!([".agentd/config.toml: allow Bash(touch allowed)"]));

    // Deny rules apply at once; allow rules need trust.
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch denied"), bash("touch allowed")]));
    daemon.models.set_fallback(|_| Step::text("Done."));
    session.submit("go").await;
    let required = seen.wait_for("workspace.trust_required").await;
    assert_eq!(required["digest"], found["digest"]);
    let denied = seen.find("the denied call", |event| event["code"] == "denied_by_rule").await;
    assert!(denied["output"].as_str().expect("words").contains("Bash(touch denied)"), "{denied}");
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;

    // Trust applies to the digest that the user saw, and to nothing else.
    let other = json!({"cwd": daemon.workspace(), "digest": "0".repeat(64)});
    let stale = alice.refused("workspace.trust", other).await;
    assert_eq!((stale.kind.as_str(), &stale.data["digest"]), ("stale_precondition", &found["digest"]));
    let trust = json!({"cwd": daemon.workspace(), "digest": found["digest"]});
    assert_eq!(alice.call("workspace.trust", trust).await["trusted"], true);
    daemon.models.push(Step::calls([bash("touch allowed")]));
    session.submit("again").await;
    seen.turn_ends("success").await;
    assert!(daemon.workspace().join("allowed").exists(), "no user was asked");

    // Changed content needs trust again, and until then allows nothing.
    daemon.write(".agentd/config.toml", &RULES.replace("touch allowed", "touch more"));
    daemon.models.push(Step::calls([bash("touch more")]));
    session.submit("more").await;
    let again = seen.wait_for("workspace.trust_required").await;
    assert_ne!(again["digest"], found["digest"]);
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(!daemon.workspace().join("more").exists());

    // The audit log records the client that gave trust, and the trusted digest.
    let log = alice.call("permission.audit", json!({"limit": 500})).await;
    let rows: Vec<_> =
        log["entries"].as_array().expect("rows").iter().filter(|row| row["kind"] == "trust").collect();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["verdict"], &rows[0]["client"]), (&json!("trusted"), &json!("alice")));
    assert_eq!(rows[0]["digest"], found["digest"]);

    // Trust the current content, whatever it is, and revoke it again.
    let cwd = json!({"cwd": daemon.workspace()});
    let now = alice.call("workspace.trust", cwd.clone()).await;
    assert_eq!((&now["trusted"], &now["digest"]), (&json!(true), &again["digest"]));
    let then = alice.call("workspace.untrust", cwd).await;
    assert_eq!(
        (&then["trusted"], &then["digest"], &then["parts"]),
        (&json!(false), &now["digest"], &now["parts"])
    );
    let gone = alice.call("workspace.untrust", json!({"cwd": daemon.workspace().join("gone")})).await;
    assert_eq!((&gone["trusted"], &gone["digest"], &gone["parts"]), (&json!(false), &json!(""), &json!([])));
}

#[tokio::test]
async fn damaged_project_rule_file_allows_nothing() {
    let plan = TestDaemon::builder().config("[permissions]\nallow = [\"Bash(touch mine)\"]");
    let daemon = plan.start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let status = async || {
        let found = alice.call("workspace.status", json!({"cwd": daemon.workspace()})).await;
        found["parts"][0].as_str().expect("a part").to_owned()
    };
    let trust = async || {
        let cwd = daemon.workspace();
        let found = alice.call("workspace.status", json!({"cwd": cwd})).await;
        alice.call("workspace.trust", json!({"cwd": cwd, "digest": found["digest"]})).await;
    };

    // With one unknown key, the file's allow rules do not apply, even with trust. Its deny rules do.
    daemon.write(".agentd/config.toml", &format!("zork = 1\n{RULES}"));
    assert!(status().await.contains("line 1: unknown field `zork`"), "{}", status().await);
    trust().await;
    daemon.models.push(Step::calls([bash("touch denied"), bash("touch allowed"), bash("touch mine")]));
    session.submit("go").await;
    let denied = seen.find("the denied call", |event| event["code"] == "denied_by_rule").await;
    assert!(denied["output"].as_str().expect("words").contains("Bash(touch denied)"), "{denied}");
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(asked["input"]["command"], "touch allowed");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
    assert!(daemon.workspace().join("mine").exists(), "the user's own rules apply");

    // With invalid TOML, the file's deny rules are unknown, so the user's own allow rules do not apply here either.
    daemon.write(".agentd/config.toml", "[permissions\ndeny = [\"Bash(touch mine)\"]\n");
    assert!(status().await.contains("every call asks: line 1"), "{}", status().await);
    trust().await;
    daemon.models.push(Step::calls([bash("touch mine")]));
    session.submit("again").await;
    let asked = seen.wait_for("permission.requested").await;
    assert!(asked["reason"].as_str().expect("a reason").contains("line 1"), "{asked}");
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn trust_survives_crash_and_can_be_revoked() {
    let mut daemon = TestDaemon::start().await;
    daemon.write(".agentd/config.toml", RULES);
    let shown = ctl(&daemon, &["trust"]).await;
    assert_eq!(shown.code, 64, "no user can be asked: {shown:?}");
    assert!(shown.out.contains("allow Bash(touch allowed)"), "{shown:?}");
    ctl(&daemon, &["trust", "--yes"]).await.stdout();
    daemon.crash_and_restart().await;
    let cwd = json!({"cwd": daemon.workspace()});
    assert_eq!(daemon.client("bob").await.call("workspace.status", cwd.clone()).await["trusted"], true);
    ctl(&daemon, &["untrust"]).await.stdout();
    assert_eq!(daemon.client("bob").await.call("workspace.status", cwd.clone()).await["trusted"], false);
    daemon.models.set_fallback(|_| Step::text("Done."));
    ctl(&daemon, &["run", "--trust", "go"]).await.stdout();
    assert_eq!(daemon.client("bob").await.call("workspace.status", cwd).await["trusted"], true);
    assert!(ctl(&daemon, &["audit", "verify"]).await.stdout().contains("is intact"));
}

#[tokio::test]
async fn trusted_repository_is_described_without_running_its_files() {
    let daemon = TestDaemon::start().await;
    let work = daemon.workspace();
    let git = |args: &[&str]| {
        let git = std::process::Command::new("git").arg("-C").arg(&work).args(args).output();
        git.is_ok_and(|output| output.status.success())
    };
    if !git(&["init", "-q", "-b", "trunk"]) {
        base::skip_test!("there is no git");
        return;
    }
    daemon.write("a.txt", "one");
    assert!(git(&["config", "core.fsmonitor", "touch pwned"]));
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let told = async |yes: bool| {
        if yes {
            ctl(&daemon, &["trust", "--yes"]).await.stdout();
        }
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        session.submit("hello").await;
        seen.turn_ends("success").await;
        seen.events_of("session.prompt_built")[0]["system"].as_str().expect("text").to_owned()
    };
    assert!(!told(false).await.contains("trunk"), "git is not described without trust");
    let system = told(true).await;
    assert!(system.contains("Branch: trunk") && system.contains("?? a.txt"), "{system}");
    assert!(!work.join("pwned").exists(), "something of the repository was run");
}

#[tokio::test]
async fn changed_files_are_counted_only_with_trust() {
    let daemon = TestDaemon::start().await;
    let git = std::process::Command::new("git").args(["init", "-q"]).current_dir(daemon.workspace()).status();
    if !git.is_ok_and(|status| status.success()) {
        base::skip_test!("there is no git");
        return;
    }
    daemon.write("a.txt", "one\n");
    let client = daemon.client("alice").await;
    let status = async |count: bool| {
        let params = json!({"cwd": daemon.workspace(), "count_changes": count});
        client.call("workspace.status", params).await["changed_files"].clone()
    };
    assert_eq!(status(true).await, json!(null), "git does not run without trust");
    client.call("workspace.trust", json!({"cwd": daemon.workspace()})).await;
    assert_eq!((status(true).await, status(false).await), (json!(1), json!(null)));
}

#[tokio::test]
async fn run_names_untrusted_folder_once_a_day() {
    let daemon = TestDaemon::start().await;
    daemon.write(".mcp.json", "{\"mcpServers\": {\"x\": {\"command\": \"true\"}}}");
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let says = async || {
        let said = ctl(&daemon, &["run", "hello"]).await;
        assert_eq!((said.code, said.out.as_str()), (0, "Hello.\n"));
        said.err
    };
    let (first, second) = (says().await, says().await);
    assert!(first.contains("not trusted") && !second.contains("not trusted"), "{first:?} {second:?}");
    let said = ctl(&daemon, &["run", "-q", "hello"]).await;
    assert_eq!((said.out.as_str(), said.err.as_str()), ("Hello.\n", ""), "the answer alone");
}
