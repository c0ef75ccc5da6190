//! A daemon that `agentctl` starts keeps nothing of the shell: no lock, no pipe, no terminal. It makes its socket again
//! if that is removed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::agentctl::{CliOutput, DaemonStopper, command, ctl, ended};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;
use crate::support::wait::poll_until;

/// Runs a shell script in which `agentctl` is `$0`, with the test's environment and these variables removed.
async fn shell(daemon: &TestDaemon, script: &str, removed: &[&str]) -> CliOutput {
    let prepared = command(daemon, &[]);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", script, env!("CARGO_BIN_EXE_agentctl")])
        .env_clear()
        .envs(prepared.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(daemon.workspace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for name in removed {
        shell.env_remove(name);
    }
    ended(daemon, shell.spawn().expect("sh starts")).await
}

#[tokio::test]
async fn started_daemon_keeps_no_lock_pipe_or_closed_stream_of_shell() {
    let scripts = [
        ("a lock", "flock -n lock \"$0\" run hi && flock -n lock \"$0\" run hi"),
        ("a pipe", "\"$0\" ps 3>&1 | cat; \"$0\" run hi"),
        ("stdin closed", "\"$0\" run hi <&-"),
        ("stdout closed", "\"$0\" run hi >&-; \"$0\" run hi"),
        ("stderr closed", "\"$0\" run hi 2>&-"),
        ("all closed", "\"$0\" run hi <&- >&- 2>&-; \"$0\" run hi"),
    ];
    for (case, script) in scripts {
        let daemon = TestDaemon::builder().build().await;
        let _stop = DaemonStopper(&daemon);
        daemon.models.set_fallback(|_| Step::text("Hello."));
        let said = shell(&daemon, script, &[]).await;
        assert!(said.code == 0 && said.out.ends_with("Hello.\n"), "{case}: {said:?}");
        let pid = ctl(&daemon, &["daemon", "status", "--json"]).await.json()["pid"].to_string();
        let fields = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let fields: Vec<&str> = fields.rsplit(')').next().expect("fields").split_whitespace().collect();
        assert_eq!(
            (fields[3], fields[4]),
            (pid.as_str(), "0"),
            "{case}: its own process session, no terminal"
        );
        // A folder that can be unmounted and removed.
        let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).expect("it runs");
        assert_eq!(folder.to_str(), Some("/"), "{case}");
    }
}

/// As a line of a crontab: a lock, no terminal, an empty environment, no open streams.
#[tokio::test]
async fn script_without_terminal_environment_and_streams_starts_ten_jobs_in_a_row() {
    let daemon = TestDaemon::builder().build().await;
    let _stop = DaemonStopper(&daemon);
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let (config, socket) = (daemon.path("config.toml"), daemon.socket());
    let script = format!(
        r#"ctl="env -i HOME=$HOME setsid -w flock -n lock $0 --config {} --socket {}"
for n in 1 2 3 4 5 6 7 8 9 10; do
  $ctl jobs add --wait -p "job $n" <&- >&- 2>&- || exit $n
done
for n in 1 2 3 4 5 6 7 8 9 10; do
  $ctl run -q "run $n" <&- 2>&- >>answers || exit $((10 + n))
done
flock -n lock true"#,
        config.display(),
        socket.display()
    );
    let said = shell(&daemon, &script, &[]).await;
    assert_eq!(said.code, 0, "{said:?}\n{}", daemon.log());
    assert_eq!(daemon.read("answers"), "Hello.\n".repeat(10));
    let jobs = ctl(&daemon, &["jobs", "--json"]).await.json();
    let jobs = jobs.as_array().or_else(|| jobs["jobs"].as_array()).expect("a list");
    let ended: Vec<_> = jobs.iter().filter(|job| job["state"] == "succeeded").collect();
    assert_eq!((jobs.len(), ended.len()), (10, 10), "{jobs:?}");
}

#[tokio::test]
async fn daemon_starts_without_home_and_path() {
    let daemon = TestDaemon::builder().build().await;
    let _stop = DaemonStopper(&daemon);
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let said = shell(&daemon, "\"$0\" run hi", &["HOME", "PATH"]).await;
    assert!(said.code == 0 && said.out == "Hello.\n", "{said:?}");
}

#[tokio::test]
async fn removed_socket_is_made_again_and_sessions_go_on() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let session = daemon.client("alice").await.create(&daemon).await;
    for folder in [false, true] {
        match folder {
            false => std::fs::remove_file(daemon.socket()).expect("removed"),
            true => std::fs::remove_dir_all(daemon.socket().parent().expect("a folder")).expect("removed"),
        }
        let start = Instant::now();
        let said = ctl(&daemon, &["ps", "-A"]).await;
        assert!(said.code == 0 && start.elapsed() < Duration::from_secs(5), "{said:?}");
        poll_until("the socket", || daemon.log(), || daemon.socket().exists().then_some(())).await;
    }
    let log = daemon.log();
    assert!(log.contains("the socket was removed; made it again"), "{log}");
    let listed = ctl(&daemon, &["ps", "-A", "--json"]).await.json();
    assert_eq!(listed[0]["session_id"], session.id.as_str());
}

#[tokio::test]
async fn too_long_socket_path_is_refused_with_remedy_by_client_and_daemon() {
    let daemon = TestDaemon::builder().build().await;
    let long = format!("/tmp/{}/agentd.sock", "x".repeat(110));
    let by_flag = ["--socket", &long, "ps"];
    let said = ctl(&daemon, &by_flag).await;
    assert!(said.code == 64 && said.err.contains("AGENTD_SOCKET"), "{said:?}");
    for variable in ["AGENTD_SOCKET", "XDG_RUNTIME_DIR"] {
        let mut command = command(&daemon, &["run", "hi"]);
        let said = ended(&daemon, command.env(variable, &long).spawn().expect("started")).await;
        assert!(said.code == 64 && said.err.contains("107") && !said.err.contains("SUN_LEN"), "{said:?}");
    }
    let mut agentd = daemon.command();
    let output = agentd.args(["--socket", &long]).output().await.expect("started");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(78), "{text}");
    assert!(text.contains("AGENTD_SOCKET") && text.contains("107"), "{text}");
}

#[tokio::test]
async fn idle_daemon_without_key_is_started_again_once_client_has_one() {
    let daemon = TestDaemon::builder().build().await;
    let _stop = DaemonStopper(&daemon);
    std::fs::write(daemon.path("config.toml"), "").expect("written");
    let said = ctl(&daemon, &["run", "hi"]).await;
    assert!(said.code == 4 && said.err.contains("no model is configured"), "{said:?}");
    assert!(said.err.contains("agentctl login") && !said.err.contains("daemon stop"), "{said:?}");
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let mut command = command(&daemon, &["run", "-m", "openai/model", "hi"]);
    command.env("OPENAI_API_KEY", "key").env("OPENAI_BASE_URL", daemon.models.openai_url());
    let said = ended(&daemon, command.spawn().expect("started")).await;
    assert!(said.err.contains("does not see OPENAI_API_KEY yet; starting it again"), "{said:?}");
    assert!(said.code == 0 && said.out == "Hello.\n", "{said:?}");
}
