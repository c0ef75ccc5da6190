//! `agentctl attach` with a terminal and with pipes.

use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;

use super::agentctl::{command, ctl, ended};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;
use crate::support::wait::with_deadline;

#[tokio::test]
async fn attach_submits_each_line_and_prints_answer() {
    let daemon = TestDaemon::start().await;
    daemon.models.push(Step::text("Hello."));
    let id = ctl(&daemon, &["run", "--output", "json", "hello"]).await.json()["session_id"].clone();
    let id = id.as_str().expect("an id");
    // Attach with the session id, then without an id to the newest session of this folder.
    for args in [&["attach", id][..], &["attach"]] {
        daemon.models.push(Step::text("Very well indeed."));
        let mut child = command(&daemon, args).stdin(Stdio::piped()).spawn().expect("agentctl starts");
        child.stdin.take().expect("piped").write_all(b"how are you?\n").await.expect("read");
        let out = ended(&daemon, child).await.stdout();
        assert!(out.contains("hello") && out.contains("Hello."), "the history: {out}");
        assert!(out.contains("Very well indeed.\n"), "{out}");
    }
    let asked = daemon.models.requests();
    assert!(asked[1].messages().last().expect("a message").to_string().contains("how are you?"));
    assert_eq!(asked.len(), 3);
    daemon.models.assert_no_breach();
}

/// `agentctl attach` in its own terminal, and the other end of that terminal.
async fn attached(daemon: &TestDaemon, session: &str) -> (Child, tokio::fs::File) {
    let size = nix::pty::Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = nix::pty::openpty(&size, None).expect("a terminal");
    // No other process may hold the terminal open, or it would not close with the test.
    let own = nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC);
    nix::fcntl::fcntl(&pty.master, own).expect("set");
    let slave = || Stdio::from(pty.slave.try_clone().expect("a copy"));
    let mut command = command(daemon, &["attach", session]);
    command.env("TERM", "xterm").stdin(slave()).stdout(slave()).stderr(slave());
    let child = command.spawn().expect("agentctl starts");
    drop((command, pty.slave));
    let mut terminal = tokio::fs::File::from_std(std::fs::File::from(pty.master));
    let look = async {
        let mut seen = String::new();
        let mut bytes = [0; 4096];
        while !seen.contains("detaches") {
            let count = terminal.read(&mut bytes).await.expect("a screen");
            let part = String::from_utf8_lossy(&bytes[..count]).into_owned();
            // The program asks for the cursor position.
            if part.contains("\u{1b}[6n") {
                terminal.write_all(b"\x1b[1;1R").await.expect("written");
                terminal.flush().await.expect("written");
            }
            seen += &part;
        }
    };
    with_deadline("the attached screen", || daemon.log(), look).await;
    (child, terminal)
}

#[tokio::test]
async fn attach_ends_on_terminal_hangup_and_quit_command() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let made = ctl(&daemon, &["run", "--output", "json", "go"]).await.json();
    let session = made["session_id"].as_str().expect("an id");

    let (mut child, terminal) = attached(&daemon, session).await;
    drop(terminal);
    let status =
        with_deadline("the end without a terminal", || daemon.log(), child.wait()).await.expect("it ran");
    assert!(status.code().is_some_and(|code| code != 0), "{status:?}");

    for told in [nix::sys::signal::SIGTERM, nix::sys::signal::SIGHUP] {
        let (mut child, terminal) = attached(&daemon, session).await;
        let pid = i32::try_from(child.id().expect("it runs")).expect("a number");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), told).expect("sent");
        let status =
            with_deadline("the end after a signal", || daemon.log(), child.wait()).await.expect("it ran");
        assert_eq!(status.code(), Some(3), "{told}");
        drop(terminal);
    }
}
