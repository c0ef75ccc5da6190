//! Skills: listed in the prompt by name, loaded on demand, used from a project only with trust.

use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

const SKILL: &str = "---\nname: report\ndescription: Write a report\n---\nUse the template in template.txt.";

/// Lets the model load a skill, and returns its result.
async fn load(daemon: &TestDaemon, session: &Session, seen: &mut Log, name: &str) -> Value {
    daemon.models.push(Step::calls([("Skill", json!({ "name": name }))]));
    daemon.models.push(Step::text("Loaded."));
    session.submit("load it").await;
    let done = seen.wait_for("tool.completed").await;
    seen.turn_ends("success").await;
    done
}

#[tokio::test]
async fn project_skill_is_used_only_after_trust() {
    let daemon = TestDaemon::start().await;
    for (folder, name) in [(".agentd", "one"), (".claude", "two"), (".kode", "three")] {
        let text = SKILL.replace("report", name);
        daemon.write(&format!("{folder}/skills/{name}/SKILL.md"), &text);
        daemon.write(&format!("{folder}/skills/{name}/template.txt"), "Dear …");
    }
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let done = load(&daemon, &session, &mut seen, "one").await;
    assert_eq!((&done["status"], &done["code"]), (&json!("failed"), &json!("unknown_skill")));
    assert!(!daemon.models.requests()[0].body.to_string().contains("# Skills"));
    let list = alice.call("command.list", json!({"cwd": daemon.workspace()})).await;
    assert!(list["diagnostics"].to_string().contains("these skills are not used"), "{list}");

    daemon.trust().await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    for name in ["one", "two", "three"] {
        let done = load(&daemon, &session, &mut seen, name).await;
        assert_eq!(done["status"], "completed", "{done}");
        let output = done["output"].to_string();
        assert!(output.contains("template.txt") && output.contains(&format!("skills/{name}")), "{output}");
    }
    assert!(seen.events_of("permission.requested").is_empty());
    let first = daemon.models.requests()[2].body.to_string();
    assert!(first.contains("# Skills") && first.contains("- one: Write a one"), "{first}");
    assert!(!first.contains("Use the template"), "only names and descriptions are in the prompt");
    let list = alice.call("command.list", json!({"cwd": daemon.workspace()})).await;
    let one = list["commands"].as_array().expect("a list").iter().find(|it| it["name"] == "one");
    assert_eq!(one.expect("the skill")["source"], "skill");

    // A change of the content needs trust again.
    daemon.write(".agentd/skills/one/SKILL.md", "Something else");
    let done = load(&daemon, &session, &mut seen, "one").await;
    assert_eq!(done["code"], "unknown_skill");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn user_skill_runs_as_command_and_bad_ones_are_reported() {
    let daemon = TestDaemon::start().await;
    let home = daemon.path("home/.claude/skills");
    let put = |name: &str, text: &str| {
        std::fs::create_dir_all(home.join(name)).expect("made");
        std::fs::write(home.join(name).join("SKILL.md"), text).expect("written");
    };
    put("report", SKILL);
    put("broken", "---\ndescription: [\n---\nx");
    put("long", &"x".repeat(300_000));
    std::fs::write(daemon.path(".env"), "TOPSECRET").expect("written");
    std::fs::create_dir_all(home.join("leak")).expect("made");
    std::os::unix::fs::symlink(daemon.path(".env"), home.join("leak/SKILL.md")).expect("linked");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Reported."));
    session.call("submit", json!({"input": "/report of today"})).await;
    seen.turn_ends("success").await;
    let sent = daemon.models.requests()[0].body.to_string();
    assert!(
        sent.contains("Use the template in template.txt.") && sent.contains("Arguments: of today"),
        "{sent}"
    );
    assert!(sent.contains("- report: Write a report"), "the prompt lists it");
    let said = ctl(&daemon, &["commands"]).await;
    assert!(said.out.lines().any(|line| line.starts_with("/report") && line.contains("skill")), "{said:?}");
    assert!(said.out.contains("/broken"), "a description that is no YAML is read as text: {said:?}");
    for bad in ["long", "leak"] {
        assert!(said.err.contains(&format!("{bad}/SKILL.md")), "{bad}: {said:?}");
    }
    assert!(!said.out.contains("TOPSECRET") && !sent.contains("TOPSECRET"));
}

#[tokio::test]
async fn linked_skills_are_used_with_trust_and_found_by_query() {
    let daemon = TestDaemon::start().await;
    daemon.write("shared/plan/SKILL.md", &SKILL.replace("report", "plan"));
    daemon.write(".agents/skills/check/SKILL.md", &SKILL.replace("report", "check"));
    let link = |target: &std::path::Path, at: std::path::PathBuf| {
        std::fs::create_dir_all(at.parent().expect("a folder")).expect("made");
        std::os::unix::fs::symlink(target, at).expect("linked");
    };
    link(std::path::Path::new("../../.agents/skills/check"), daemon.workspace().join(".claude/skills/check"));
    // A link of the user leads into the workspace.
    link(&daemon.workspace().join("shared/plan"), daemon.path("home/.claude/skills/plan"));
    let alice = daemon.client("alice").await;
    let names = |list: &Value| -> Vec<String> {
        let commands = list["commands"].as_array().expect("a list").iter();
        let skills = commands.filter(|command| command["source"] == "skill");
        skills.map(|skill| skill["name"].as_str().expect("a name").to_owned()).collect()
    };
    let list = alice.call("command.list", json!({"cwd": daemon.workspace()})).await;
    assert_eq!(names(&list), Vec::<String>::new(), "{list}");
    assert!(list["diagnostics"].to_string().contains("not trusted (agentctl trust)"), "{list}");
    daemon.trust().await;
    let list = alice.call("command.list", json!({"cwd": daemon.workspace()})).await;
    assert_eq!(names(&list), ["check", "plan"], "{list}");
    assert_eq!(list["diagnostics"], json!([]), "the same skill for two programs is no problem");

    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("Skill", json!({"query": "write check"}))]));
    daemon.models.push(Step::text("Found."));
    session.submit("find it").await;
    let done = seen.wait_for("tool.completed").await;
    assert!(done["output"].to_string().contains("- check: Write a check"), "{done}");
    seen.turn_ends("success").await;
    for input in [json!({}), json!({"name": "check", "query": "x"})] {
        daemon.models.push(Step::calls([("Skill", input)]));
        daemon.models.push(Step::text("Oh."));
        session.submit("again").await;
        assert_eq!(seen.wait_for("tool.completed").await["code"], "invalid_input");
        seen.turn_ends("success").await;
    }
    // What the link leads to is bound by trust.
    daemon.write(".agents/skills/check/SKILL.md", "Something else");
    let list = alice.call("command.list", json!({"cwd": daemon.workspace()})).await;
    assert_eq!(names(&list), Vec::<String>::new(), "{list}");
    daemon.models.assert_no_breach();
}
