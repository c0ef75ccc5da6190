//! The project's configuration file as a layer of new sessions, and `daemon.config`.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use super::export::{exported, imported};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

const PROJECT: &str = "[models]\nmain = \"scripted/project\"\n\
    [session]\nmode = \"plan\"\nthinking = \"low\"\nsafe_mode = true\n\
    [session.budgets]\nmodel_calls = 50\noutput_tokens = 5000\n\
    [compaction]\nkeep_recent_tokens = 1000\n\
    [tools]\nbash_timeout = \"3s\"\nparallel = 2\nmax_result_size = \"5GiB\"\n";

/// The row of a key in a reply of `daemon.config`.
fn row<'a>(reply: &'a Value, key: &str) -> &'a Value {
    let rows = reply["values"].as_array().expect("values");
    rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key}: {reply}"))
}

#[tokio::test]
async fn trusted_project_settings_apply_to_new_sessions_only() {
    let mut daemon = TestDaemon::builder().config("[session.budgets]\nmodel_calls = 20").start().await;
    let alice = daemon.client("alice").await;
    daemon.write(".agentd/config.toml", PROJECT);
    let cwd = json!({"cwd": daemon.workspace()});
    let parts = alice.call("workspace.status", cwd.clone()).await["parts"].to_string();
    assert!(parts.contains("models.main") && parts.contains("session.mode"), "{parts}");
    let before = alice.create(&daemon).await.view().await;
    assert_eq!((&before["model"], &before["mode"]), (&json!("scripted/model"), &json!("default")));

    alice.call("workspace.trust", cwd).await;
    let session = alice.create(&daemon).await;
    let view = session.view().await;
    for (key, expected) in [
        ("model", json!("scripted/project")),
        ("mode", json!("plan")),
        ("thinking", json!("low")),
        ("safe_mode", json!(true)),
        // The user's limit is stricter than 50.
        ("budgets", json!({"model_calls": 20, "output_tokens": 5000})),
    ] {
        assert_eq!(view[key], expected, "{key}: {view}");
    }
    let settings = &view["project_settings"];
    assert_eq!(settings["compaction"], json!({"keep_recent_tokens": 1000}));
    assert_eq!((&settings["bash_timeout_ms"], &settings["parallel_tools"]), (&json!(3000), &json!(2)));

    // Parameters of the request override the file. A change of the file does not affect existing sessions.
    let own = json!({"model": "scripted/own", "mode": "accept_edits", "budgets": {"model_calls": 30}});
    let given = alice.create_with(&daemon, own).await.view().await;
    assert_eq!((&given["model"], &given["mode"]), (&json!("scripted/own"), &json!("accept_edits")));
    assert_eq!(given["budgets"], json!({"model_calls": 30}));
    daemon.write(".agentd/config.toml", "");
    daemon.crash_and_restart().await;
    let after = daemon.client("bob").await.join(&session).view().await;
    assert_eq!(after["project_settings"], *settings);
    let later = daemon.client("bob").await.create(&daemon).await.view().await;
    assert_eq!((&later["model"], later.get("project_settings")), (&json!("scripted/model"), None));
}

#[tokio::test]
async fn project_time_limit_ends_command_and_is_not_imported() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let alice = daemon.client("alice").await;
    daemon.write(".agentd/config.toml", "[tools]\nbash_timeout = \"300ms\"\n");
    alice.call("workspace.trust", json!({"cwd": daemon.workspace()})).await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("sleep 30")]));
    daemon.models.push(Step::text("It was too slow."));
    session.submit("go").await;
    let completed = seen.wait_for("tool.completed").await;
    assert!(completed.to_string().contains("300"), "{completed}");
    seen.turn_ends("success").await;
    let copy = imported(&alice, &exported(&session, "jsonl").await).await.view().await;
    assert_eq!(copy.get("project_settings"), None, "{copy}");
}

#[tokio::test]
async fn project_file_mistake_gives_notice_and_users_settings() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    for (text, words) in [
        (
            "[session]\nmode = \"plan\"\nmdoe = 1\n",
            "line 3: unknown field `session.mdoe`; did you mean `mode`?",
        ),
        (
            "[providers.scripted]\nbase_url = \"http://evil\"\n",
            "line 1: `providers` cannot be set by a project; set it in ~/.config/agentd/config.toml",
        ),
        (
            "\"permissions.deny\" = [\"Read(.env)\"]\n",
            "line 1: unknown field `permissions.deny`; write the name without quotes",
        ),
        ("[session]\nmode = \"bypass\"\n", "line 2: session.mode: a project may not set `bypass`"),
        ("[models]\nmain = \"other/m\"\n", "models.main"),
        ("[session.budgets]\nusd = 1.0\n", "the price of scripted/model is not known"),
    ] {
        daemon.write(".agentd/config.toml", text);
        alice.call("workspace.trust", json!({"cwd": daemon.workspace()})).await;
        let session =
            alice.create_with(&daemon, json!({"initial_items": [{"role": "user", "content": "Hi"}]})).await;
        let view = session.view().await;
        assert_eq!((&view["model"], &view["mode"]), (&json!("scripted/model"), &json!("default")), "{text}");
        let mut seen = session.follow().await;
        let notice = seen.wait_for("notice").await;
        assert_eq!((&notice["kind"], &notice["seq"]), (&json!("project_config"), &json!(2)));
        assert!(notice["text"].as_str().is_some_and(|told| told.contains(words)), "{text}: {notice}");
        daemon.models.push(Step::text("Yes."));
        session.submit("hello").await;
        seen.turn_ends("success").await;
    }
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn unattended_limits_are_not_loosened_by_project() {
    let daemon = TestDaemon::builder().config("[permissions.unattended]\nmodel_calls = 7").start().await;
    daemon.write(".agentd/config.toml", "[session.budgets]\nmodel_calls = 1000\noutput_tokens = 10\n");
    let alice = daemon.client("alice").await;
    alice.call("workspace.trust", json!({"cwd": daemon.workspace()})).await;
    let view = alice.create_with(&daemon, json!({"background": true})).await.view().await;
    let budgets = &view["budgets"];
    assert_eq!((&budgets["model_calls"], &budgets["output_tokens"]), (&json!(7), &json!(10)), "{budgets}");
}

#[tokio::test]
async fn project_cannot_raise_money_limit_of_user() {
    let daemon = TestDaemon::builder().config("[permissions.unattended]\nusd = 1.0").start().await;
    let alice = daemon.client("alice").await;
    let params = json!({"cwd": daemon.workspace(), "background": true});
    let refused = alice.refused("session.create", params.clone()).await;
    assert!(refused.message.contains("price"), "the model has no price: {refused:?}");
    daemon.write(".agentd/config.toml", "[session.budgets]\nusd = 1.0\n");
    assert_eq!(alice.refused("session.create", params.clone()).await.kind, refused.kind, "untrusted");
    alice.call("workspace.trust", json!({"cwd": daemon.workspace()})).await;
    assert_eq!(alice.refused("session.create", params).await.kind, refused.kind, "trusted");
}

#[tokio::test]
async fn config_values_name_file_line_and_environment() {
    let daemon = TestDaemon::builder()
        .environment("SCRIPTED_KEY", "sk-canary-1234567890")
        .provider("api_key_env = \"SCRIPTED_KEY\"\nheaders = { x-team = \"canary-header\" }")
        .config("quick = \"scripted/sk-canary-1234567890\"\n[tools]\nparallel = 4\n[permissions]\ndeny = [\"Read(.env)\"]")
        .start()
        .await;
    let alice = daemon.client("alice").await;
    let shown = alice.call("daemon.config", json!({})).await;
    assert!(!shown.to_string().contains("canary"), "{shown}");
    let file = daemon.path("config.toml").display().to_string();
    for (key, value, origin, has_line) in [
        ("daemon.log", json!("debug"), file.as_str(), true),
        ("models.main", json!("scripted/model"), &file, true),
        ("tools.parallel", json!(4), &file, true),
        ("session.mode", json!("default"), "default", false),
        ("providers.scripted.headers.x-team", json!("***"), &file, true),
        ("providers.scripted.api_key_env", json!("SCRIPTED_KEY"), &file, true),
    ] {
        let row = row(&shown, key);
        assert_eq!((&row["value"], &row["origin"]), (&value, &json!(origin)), "{key}");
        assert_eq!(row.get("line").is_some(), has_line, "{key}");
    }
    assert!(row(&shown, "daemon.data_dir")["value"].is_string(), "{shown}");

    // The project's layer: stricter values of the user stay, and rules are added.
    daemon.write(".agentd/config.toml", &format!("{PROJECT}[permissions]\ndeny = [\"Bash(rm:*)\"]\n"));
    let cwd = json!({"cwd": daemon.workspace()});
    let project = daemon.workspace().join(".agentd/config.toml").display().to_string();
    let untrusted = alice.call("daemon.config", cwd.clone()).await;
    assert_eq!(untrusted["project"], json!({"file": project, "trusted": false}));
    assert_eq!(row(&untrusted, "models.main")["origin"], json!(file));
    let denied = |reply: &Value| {
        let rows = reply["values"].as_array().expect("values").iter();
        rows.filter(|row| row["key"] == "permissions.deny").count()
    };
    assert_eq!((denied(&shown), denied(&untrusted)), (1, 2));
    alice.call("workspace.trust", cwd.clone()).await;
    let trusted = alice.call("daemon.config", cwd).await;
    let main = row(&trusted, "models.main");
    assert_eq!(
        (&main["value"], &main["origin"], &main["line"]),
        (&json!("scripted/project"), &json!(project), &json!(2))
    );
    assert_eq!(row(&trusted, "tools.parallel")["value"], 2);
    assert_eq!(row(&trusted, "tools.max_result_size")["value"], "128KiB", "the user's is stricter");

    let text = ctl(&daemon, &["config", "show", "--origin"]).await.stdout();
    let line = text.lines().find(|line| line.starts_with("models.main ")).expect("a line");
    assert!(line.contains("scripted/project") && line.ends_with(&format!("{project}:2")), "{line}");
    assert!(!ctl(&daemon, &["config", "show"]).await.stdout().contains("ORIGIN"));
    let printed = ctl(&daemon, &["config", "show", "--json", "-w", "/"]).await.json();
    assert_eq!(row(&printed, "models.main")["value"], "scripted/model");
}

#[tokio::test]
async fn reloaded_values_are_shown_and_start_values_wait() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let file = daemon.path("config.toml");
    let text = std::fs::read_to_string(&file).expect("there");
    let text = text.replace("log = \"debug\"", "log = \"info\"\nlog_format = \"json\"");
    std::fs::write(&file, text).expect("written");
    assert_eq!(row(&alice.call("daemon.config", json!({})).await, "daemon.log")["value"], "debug");
    alice.call("daemon.reload", json!({})).await;
    let shown = alice.call("daemon.config", json!({})).await;
    assert_eq!(row(&shown, "daemon.log")["value"], "info");
    assert_eq!(row(&shown, "daemon.log_format")["value"], "auto", "it waits for the restart");
}
