//! A real sshd of this user on a port of its own, with keys of its own.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::write_program;
use crate::scenarios::agentctl::{CliOutput, command, ended};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;
use crate::support::wait::poll_until;

const SSHD: &str = "/usr/sbin/sshd";

/// A running server. It ends with the value.
struct Server {
    _child: Child,
    port: u16,
    user: String,
}

fn run(program: &str, args: &[&str]) -> String {
    let output =
        std::process::Command::new(program).args(args).stdin(Stdio::null()).output().expect("it runs");
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Starts a server that accepts the key `user` of the test's folder, and the ssh that uses this key.
async fn start(daemon: &TestDaemon) -> Option<Server> {
    let has_programs = Path::new(SSHD).exists() && Path::new("/usr/bin/ssh-keygen").exists();
    // A server of root needs this folder, which the package's service makes.
    let is_ready = !nix::unistd::geteuid().is_root() || Path::new("/run/sshd").is_dir();
    if !has_programs || !is_ready {
        base::skip_test!("there is no usable sshd");
        return None;
    }
    let folder = daemon.path("sshd");
    std::fs::create_dir(&folder).expect("made");
    let file = |name: &str| folder.join(name).display().to_string();
    for key in ["host", "user"] {
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &file(key)]);
    }
    let port = TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("an address").port();
    let programs = Path::new(env!("CARGO_BIN_EXE_agentctl")).parent().expect("a folder");
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {host}\nAuthorizedKeysFile {user}.pub\nStrictModes no\nUsePAM no\n\
         PidFile none\nAcceptEnv *\n\
         SetEnv PATH={programs}:/usr/bin:/bin HOME={home} XDG_RUNTIME_DIR={run} XDG_DATA_HOME={data} XDG_CONFIG_HOME={config}\n",
        host = file("host"),
        user = file("user"),
        programs = programs.display(),
        home = daemon.path("home").display(),
        run = daemon.path("run").display(),
        data = daemon.path("data").display(),
        config = daemon.path("config").display(),
    );
    std::fs::write(folder.join("sshd_config"), config).expect("written");
    let log = std::fs::File::create(folder.join("log")).expect("a log");
    let child = Command::new(SSHD)
        .args(["-D", "-e", "-f", &file("sshd_config")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .expect("sshd starts");
    let seen = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    poll_until("sshd to listen", seen, || seen().contains("listening on").then_some(())).await;
    // The user's own settings forward everything, and send every variable.
    let settings = format!(
        "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nStrictHostKeyChecking accept-new\nForwardAgent yes\n\
         SendEnv LANG LC_*\nRemoteForward 127.0.0.1:1 127.0.0.1:2\n",
        file("user"),
        file("known")
    );
    std::fs::write(folder.join("ssh_config"), settings).expect("written");
    write_program(&folder.join("ssh"), &format!("#!/bin/sh\nexec ssh -F {} \"$@\"\n", file("ssh_config")));
    Some(Server { _child: child, port, user: run("id", &["-un"]) })
}

impl Server {
    fn command(&self, daemon: &TestDaemon, args: &[&str]) -> Command {
        let host = format!("ssh://{}@127.0.0.1:{}", self.user, self.port);
        let mut command = command(daemon, &["-H", &host]);
        command.args(args).env("AGENTD_SSH", daemon.path("sshd/ssh"));
        command
    }

    async fn ctl(&self, daemon: &TestDaemon, args: &[&str]) -> CliOutput {
        ended(daemon, self.command(daemon, args).spawn().expect("agentctl starts")).await
    }
}

#[tokio::test]
async fn session_works_over_a_real_server_and_connections_are_shared() {
    let daemon = TestDaemon::start().await;
    let Some(server) = start(&daemon).await else { return };
    daemon.models.set_fallback(|_| Step::text("Done."));
    let workspace = daemon.workspace().display().to_string();
    let mut command = server.command(&daemon, &["run", "-w", &workspace, "go"]);
    command.env("LC_ALL", "C").env("SSH_AUTH_SOCK", daemon.path("agent")).current_dir("/");
    let said = ended(&daemon, command.spawn().expect("agentctl starts")).await;
    assert_eq!((said.code, said.out.as_str()), (0, "Done.\n"), "{said:?}");
    let listed = server.ctl(&daemon, &["ps", "--json"]).await.json();
    assert_eq!(listed[0]["cwd"], workspace, "{listed}");
    let log = std::fs::read_to_string(daemon.path("sshd/log")).expect("a log");
    assert_eq!(log.matches("Accepted publickey").count(), 1, "all commands share one connection: {log}");
    // Nothing stays there, although the daemon does not end a subscription whose client only stops to send.
    let remaining = || {
        let client = daemon.client("alice");
        async {
            client.await.call("session.list", serde_json::json!({})).await["sessions"][0]["clients"].clone()
        }
    };
    let gone = async {
        while remaining().await != 0 {
            tokio::time::sleep(crate::support::wait::POLL_INTERVAL).await;
        }
    };
    crate::support::wait::with_deadline("the subscription to end", || daemon.log(), gone).await;
    // Another key is not accepted, and ssh does not ask, because there is no terminal.
    std::fs::write(daemon.path("sshd/user.pub"), "").expect("written");
    let mut alone = server.command(&daemon, &["ps"]);
    alone.env("XDG_RUNTIME_DIR", daemon.path("home"));
    let said = ended(&daemon, alone.spawn().expect("agentctl starts")).await;
    assert!(said.code == 69 && said.err.contains("Permission denied"), "{said:?}");
    // The shared connection would stay for a minute.
    let control = format!("ControlPath={}/ssh-%C", daemon.path("run/agentd").display());
    let place = format!("{}@127.0.0.1", server.user);
    let ssh = daemon.path("sshd/ssh").display().to_string();
    run(&ssh, &["-O", "exit", "-o", &control, "-p", &server.port.to_string(), &place]);
}
