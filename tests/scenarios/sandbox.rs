//! Sandboxing of commands, seen from outside: the configuration, the reported level, and what an
//! unattended session may do.

use serde_json::{Value, json};

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

/// The result of one command, and its journal event from before it ran.
async fn run(daemon: &TestDaemon, background: bool, command: &str) -> (Value, Option<Value>) {
    let session = daemon.client("alice").await.create_with(daemon, json!({"background": background})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash(command)]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let started = seen.events_of("tool.started").first().map(|event| event["sandbox"].clone());
    (seen.events_of("tool.completed").remove(0), started)
}

async fn works(daemon: &TestDaemon, level: &str) -> bool {
    let told = &daemon.client("eve").await.sandbox().await[level];
    if told != "works" {
        base::skip_test!("{level} does not work here: {told}");
    }
    told == "works"
}

/// The daemon is not dumpable, so its children cannot read its `/proc` entries. They need another
/// source for that data.
#[tokio::test]
async fn protected_paths_are_enforced_for_unprivileged_user() {
    if !nix::unistd::geteuid().is_root() {
        // The other tests already run as an ordinary user.
        base::skip_test!("only root can change its user");
        return;
    }
    const UNPRIVILEGED: [&str; 5] = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let mut reach = std::process::Command::new("setpriv");
    if !reach
        .args(UNPRIVILEGED)
        .args(["test", "-x", env!("CARGO_BIN_EXE_agentd")])
        .status()
        .is_ok_and(|status| status.success())
    {
        base::skip_test!("other users may not run {}", env!("CARGO_BIN_EXE_agentd"));
        return;
    }
    let as_nobody = format!(
        "set -- {} \"$0\" \"$@\"; chown -R 65534:65534 \"$TMPDIR\"; exec setpriv \"$@\"",
        UNPRIVILEGED.join(" ")
    );
    let config = format!(
        "{BASH_ALLOWED}\n[sandbox]\nlevel = \"landlock\"\noffer_unsandboxed_retry = false\n[limits]\nallow_root = true"
    );
    let mut daemon = TestDaemon::builder().config(&config).with_prelude(&as_nobody).build().await;
    daemon.write(".git/config", "[core]\n");
    daemon.write(".git/HEAD", "ref: refs/heads/main\n");
    daemon.write(".git/hooks/sample", "");
    daemon.write("plant.sh", "id -u; echo x > .git/hooks/pre-commit; echo x >> .git/config; ls .git/hooks");
    daemon.launch().await;
    if !works(&daemon, "landlock").await {
        return;
    }
    let (done, _) = run(&daemon, false, "bash plant.sh").await;
    let output = done["output"].as_str().expect("a text");
    // Output to two pipes arrives in any order.
    assert!(output.contains("65534\n") && output.contains("Read-only file system"), "{output}");
    assert_eq!(daemon.read(".git/config"), "[core]\n");
    assert!(!daemon.workspace().join(".git/hooks/pre-commit").exists());
    // An unreadable path is not a missing path, because its owner may make it readable again.
    run(&daemon, false, "chmod 0 .git").await;
    run(
        &daemon,
        false,
        "chmod 755 .git; echo x >> .git/config; echo x > .git/hooks/pre-commit; echo x > .git/commondir",
    )
    .await;
    assert_eq!(daemon.read(".git/config"), "[core]\n");
    assert!(!daemon.workspace().join(".git/hooks/pre-commit").exists());
    // A placeholder could not be removed after its folder was made read-only.
    assert!(!daemon.workspace().join(".git/commondir").exists() || daemon.read(".git/commondir") == "./\n");
    run(&daemon, false, "chmod 755 .git").await;
    let (done, _) = run(&daemon, false, "echo x > made && cat made").await;
    assert_eq!(done["output"], "x\n");
}

#[tokio::test]
async fn placeholders_are_removed_when_turn_completes() {
    let config = format!("{BASH_ALLOWED}\n[sandbox]\nlevel = \"bubblewrap\"");
    // Ask a daemon without a configured level: one with the level does not start without bubblewrap.
    if !works(&TestDaemon::start().await, "bubblewrap").await {
        return;
    }
    let daemon = TestDaemon::builder().config(&config).start().await;
    let (done, _) = run(&daemon, false, "ls -d .agentd .git").await;
    assert_eq!(done["output"], ".agentd\n.git\n", "placeholders exist while the command runs");
    assert!(!daemon.workspace().join(".agentd").exists() && !daemon.workspace().join(".git").exists());
}

#[tokio::test]
async fn sandbox_level_follows_attendance_and_is_recorded_per_call() {
    let config = format!("{BASH_ALLOWED}\n[sandbox]\noffer_unsandboxed_retry = false");
    let daemon = TestDaemon::builder().config(&config).start().await;
    if !works(&daemon, "landlock").await || !works(&daemon, "bubblewrap").await {
        return;
    }
    let outside = daemon.path("outside");
    for (background, level, network) in [(false, 2, true), (true, 3, false)] {
        let held = json!({"level": level, "network": network});
        let (done, started) = run(&daemon, background, "echo inside > made; cat made; pwd").await;
        assert_eq!(done["status"], "completed", "{done}");
        assert_eq!((&done["detail"]["sandbox"], started), (&held, Some(held.clone())));
        let (done, _) = run(&daemon, background, &format!("echo x > {}", outside.display())).await;
        assert!(!outside.exists(), "{done}");
        // The daemon's own folders and its socket.
        let hidden =
            format!("cat {}/*; ls {}", daemon.path("data/agentd").display(), daemon.path("run").display());
        let (done, _) = run(&daemon, background, &hidden).await;
        assert!(!done["output"].as_str().expect("a text").contains("SQLite"), "{done}");
    }
    // The rows of the audit log record the sandbox level as well.
    let log = daemon.client("bob").await.call("permission.audit", json!({})).await.to_string();
    for how in ["level 2, network on", "level 3, network off"] {
        assert!(log.contains(how), "{how}: {log}");
    }
    let sandbox = daemon.client("bob").await.sandbox().await;
    let told = |which: &str| (sandbox[which]["level"].clone(), sandbox[which]["network"].clone());
    assert_eq!((told("attended"), told("unattended")), ((2.into(), true.into()), (3.into(), false.into())));
}

#[tokio::test]
async fn bubblewrap_hides_daemon_socket_and_other_processes() {
    let config = format!("{BASH_ALLOWED}\n[sandbox]\nlevel = \"bubblewrap\"\nnetwork = \"on\"");
    let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    if !works(&daemon, "bubblewrap").await {
        return;
    }
    let daemon = TestDaemon::builder().config(&config).start().await;
    let socket = daemon.socket().display().to_string();
    let (done, _) =
        run(&daemon, false, &format!("test -S {socket} && echo there; ls -d /proc/[0-9]* | wc -l")).await;
    let said = done["output"].as_str().expect("a text");
    assert!(!said.contains("there"), "{done}");
    let processes: u32 = said.trim().parse().expect("a number");
    assert!(processes < 8, "only its own processes: {done}");
}

#[tokio::test]
async fn unavailable_sandbox_level_is_refused_at_start() {
    // A PATH without bubblewrap.
    let daemon = TestDaemon::builder()
        .config("[sandbox]\nlevel = \"bubblewrap\"")
        .environment("PATH", "/nonexistent")
        .build()
        .await;
    let output = daemon.run_until_exit().await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("[sandbox] level") && said.contains("bubblewrap"), "{said}");

    // An unattended session on a machine without confinement for commands.
    let config = format!("{BASH_ALLOWED}\n[sandbox]\nlevel = \"rlimits\"\nnetwork = \"off\"");
    let daemon = TestDaemon::builder().config(&config).build().await;
    let said = String::from_utf8_lossy(&daemon.run_until_exit().await.stderr).into_owned();
    assert!(said.contains("cannot be held"), "{said}");
}

#[tokio::test]
async fn configured_folders_are_writable_in_sandbox() {
    let config = format!("{BASH_ALLOWED}\n[sandbox]\nwritable = [\"more\"]");
    let daemon = TestDaemon::builder().config(&config).start().await;
    if !works(&daemon, "landlock").await || !works(&daemon, "bubblewrap").await {
        return;
    }
    // Relative to the configuration file's folder; the path exists when a command starts.
    std::fs::create_dir(daemon.path("more")).expect("made");
    for (background, name) in [(false, "attended"), (true, "unattended")] {
        let file = daemon.path("more").join(name);
        let (done, _) = run(&daemon, background, &format!("echo x > {}", file.display())).await;
        assert!(file.exists(), "{done}");
    }
}
