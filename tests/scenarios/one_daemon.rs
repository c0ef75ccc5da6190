//! One daemon per state folder and per socket, in folders that only their owner can access.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use tokio::process::{Child, Command};

use super::agentctl::{command as agentctl, ctl, ended};
use crate::support::daemon::TestDaemon;
use crate::support::wait::with_deadline;

/// Exit code if another daemon is running.
const EXIT_ALREADY_RUNNING: i32 = 75;
/// Exit code if the configuration or a folder is invalid.
const EXIT_INVALID_CONFIG: i32 = 78;
const ROUNDS: usize = 100;

fn spawn(mut command: Command, daemon: &TestDaemon) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(daemon.path("log")).expect("a log");
    command.stdout(Stdio::null()).stderr(log).spawn().expect("agentd starts")
}

/// Exit code and error output of a start that is refused.
async fn run_refused(daemon: &TestDaemon, mut command: Command) -> (Option<i32>, String) {
    let output = command.stderr(Stdio::piped()).output();
    let output = with_deadline("agentd to end", || daemon.log(), output).await.expect("agentd starts");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[tokio::test]
async fn two_concurrent_starts_leave_exactly_one_daemon() {
    let daemon = TestDaemon::builder().build().await;
    let other = daemon.path("run/agentd/other.sock");
    for round in 0..ROUNDS {
        let mut second = daemon.command();
        // Alternate between the same socket, and another socket over the same data.
        if round % 2 == 1 {
            second.arg("--socket").arg(&other);
        }
        let (mut first, mut second) = (spawn(daemon.command(), &daemon), spawn(second, &daemon));
        let race = async {
            tokio::select! {
                lost = first.wait() => (lost, false),
                lost = second.wait() => (lost, true),
            }
        };
        let (lost, is_first) = with_deadline("one of them to give way", || daemon.log(), race).await;
        let lost = lost.expect("waited");
        assert_eq!(lost.code(), Some(EXIT_ALREADY_RUNNING), "round {round}: {lost}\n{}", daemon.log());
        let winner = if is_first { &mut first } else { &mut second };
        let socket = if !is_first && round % 2 == 1 { other.clone() } else { daemon.socket() };
        let client = daemon.client_at(&socket).await;
        let status = client.call("daemon.status", json!({})).await;
        assert_eq!(status["pid"], json!(winner.id()), "round {round}");
        assert!(winner.try_wait().expect("waited").is_none(), "the winner still runs: round {round}");
        drop(client);
        // In half of the rounds it leaves its socket file behind.
        winner.start_kill().expect("it runs");
        with_deadline("the winner to die", || daemon.log(), winner.wait()).await.expect("waited");
    }
    let log = daemon.log();
    assert_eq!(log.matches("another agentd uses this state folder").count(), ROUNDS);
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test]
async fn daemon_with_other_data_cannot_take_live_socket() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let mut second = daemon.command();
    second.env("AGENTD_DATA_DIR", daemon.path("other-data"));
    let (code, told) = run_refused(&daemon, second).await;
    assert_eq!(code, Some(EXIT_ALREADY_RUNNING), "{told}");
    assert!(told.contains("answers on") && told.contains(&daemon.socket().display().to_string()), "{told}");
    assert_eq!(alice.call("daemon.status", json!({})).await["pid"], json!(daemon.pid().as_raw()));
    daemon.client("bob").await.call("daemon.status", json!({})).await;
}

fn make_private_folder(dir: &Path) {
    std::fs::create_dir_all(dir).expect("made");
    std::fs::set_permissions(dir, Permissions::from_mode(0o700)).expect("set");
}

#[tokio::test]
async fn only_stale_socket_is_replaced_at_socket_path() {
    let daemon = TestDaemon::builder().build().await;
    let socket = daemon.socket();
    make_private_folder(socket.parent().expect("a folder"));

    // A living socket of another program.
    let theirs = UnixListener::bind(&socket).expect("bound");
    let (code, told) = run_refused(&daemon, daemon.command()).await;
    assert_eq!(code, Some(EXIT_ALREADY_RUNNING), "{told}");
    StdStream::connect(&socket).expect("the other program still listens");
    drop(theirs);

    // A dead socket of another program.
    let mut child = spawn(daemon.command(), &daemon);
    // A child of another test, before its exec, may hold the dead socket open for a moment.
    let ready = async {
        while !daemon.is_answering(child.id()).await {
            tokio::task::yield_now().await;
        }
    };
    with_deadline("the daemon to answer", || daemon.log(), ready).await;
    daemon.client_at(&socket).await.call("daemon.status", json!({})).await;
    child.kill().await.expect("killed");
    std::fs::remove_file(&socket).expect("left over");

    // A file that is not a socket.
    std::fs::write(&socket, "precious").expect("written");
    let (code, told) = run_refused(&daemon, daemon.command()).await;
    assert_eq!(code, Some(EXIT_INVALID_CONFIG), "{told}");
    assert!(told.contains("not a socket"), "{told}");
    assert_eq!(std::fs::read_to_string(&socket).expect("there"), "precious");
    std::fs::remove_file(&socket).expect("removed");
    std::os::unix::fs::symlink("/nonexistent", &socket).expect("linked");
    let (code, _) = run_refused(&daemon, daemon.command()).await;
    assert_eq!(code, Some(EXIT_INVALID_CONFIG), "a link is refused, whatever its target is");
    assert!(socket.is_symlink());
}

#[tokio::test]
async fn concurrent_client_starts_reach_same_daemon() {
    let daemon = TestDaemon::builder().build().await;
    for _ in 0..3 {
        let starting: Vec<_> = (0..6)
            .map(|_| agentctl(&daemon, &["daemon", "start"]).spawn().expect("agentctl starts"))
            .collect();
        let mut said = Vec::new();
        for child in starting {
            said.push(ended(&daemon, child).await.stdout());
        }
        let pid = ctl(&daemon, &["daemon", "status", "--json"]).await.json()["pid"].to_string();
        for line in &said {
            assert!(line.contains(&format!("process {pid},")), "{pid}: {said:?}");
        }
        ctl(&daemon, &["daemon", "stop", "--now"]).await.stdout();
    }
}

/// A path at which the daemon must refuse its folder, and words that the error must contain.
struct RefusedFolder {
    name: &'static str,
    make: fn(&Path),
    words: &'static [&'static str],
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
}

fn make_folder_with_mode(path: &Path, bits: u32) {
    std::fs::create_dir(path).expect("made");
    std::fs::write(path.join("letters"), "").expect("written");
    mode(path, bits);
}

fn snapshot(path: &Path) -> (u32, u32, Option<PathBuf>) {
    let meta = std::fs::symlink_metadata(path).expect("there");
    (meta.mode(), meta.uid(), std::fs::read_link(path).ok())
}

#[tokio::test]
async fn shared_data_folder_is_refused_and_unchanged() {
    let mut places = vec![
        RefusedFolder {
            name: "readable",
            make: |path| make_folder_with_mode(path, 0o755),
            words: &["0755", "chmod", "0700"],
        },
        RefusedFolder {
            name: "group",
            make: |path| make_folder_with_mode(path, 0o770),
            words: &["0770", "chmod", "0700"],
        },
        RefusedFolder {
            name: "writable",
            make: |path| make_folder_with_mode(path, 0o777),
            words: &["0777", "of its own"],
        },
        RefusedFolder {
            name: "sticky",
            make: |path| make_folder_with_mode(path, 0o1777),
            words: &["1777", "of its own"],
        },
        RefusedFolder {
            name: "link",
            make: |path| {
                make_private_folder(&path.with_extension("real"));
                std::os::unix::fs::symlink(path.with_extension("real"), path).expect("linked");
            },
            words: &["a link", "the folder itself"],
        },
        RefusedFolder {
            name: "file",
            make: |path| std::fs::write(path, "").expect("written"),
            words: &["not a folder"],
        },
        RefusedFolder {
            name: "open/inner",
            make: |path| {
                let open = path.parent().expect("a folder");
                std::fs::create_dir(open).expect("made");
                make_private_folder(path);
                mode(open, 0o777);
            },
            words: &["replace it", "chmod o-w"],
        },
    ];
    if nix::unistd::geteuid().is_root() {
        places.push(RefusedFolder {
            name: "theirs",
            make: |path| {
                make_private_folder(path);
                std::os::unix::fs::chown(path, Some(65_534), None).expect("changed");
            },
            words: &["belongs to user 65534"],
        });
    } else {
        base::skip_test!("the folder of another user needs root");
    }
    for kind in ["socket", "data"] {
        let daemon = TestDaemon::builder().build().await;
        make_private_folder(&daemon.path("places"));
        for place in &places {
            let folder = daemon.path("places").join(place.name);
            (place.make)(&folder);
            let before = snapshot(&folder);
            let mut command = daemon.command();
            match kind {
                "socket" => command.arg("--socket").arg(folder.join("agentd.sock")),
                _ => command.env("AGENTD_DATA_DIR", &folder),
            };
            let (code, told) = run_refused(&daemon, command).await;
            let what = format!("{kind} in {}", place.name);
            assert!(matches!(code, Some(EXIT_INVALID_CONFIG | 4)), "{what}: {code:?} {told}");
            assert!(
                told.lines().any(|line| line.starts_with("agentd: ")) && !told.contains("panicked"),
                "{what}: {told}"
            );
            if place.name != "file" {
                assert_eq!(code, Some(EXIT_INVALID_CONFIG), "{what}: {told}");
                for word in place.words {
                    assert!(told.contains(word), "{what}: {word:?} is missing in {told:?}");
                }
            }
            assert_eq!(snapshot(&folder), before, "{what}: left as it is");
            let inside = || std::fs::read_dir(&folder).into_iter().flatten().flatten();
            assert!(inside().all(|entry| entry.file_name() == "letters"), "{what}: nothing was made in it");
        }
    }
}

#[tokio::test]
async fn created_files_are_private_under_any_umask() {
    let daemon = TestDaemon::builder().build().await;
    for umask in ["000", "077"] {
        for name in ["run/agentd", "data/agentd"] {
            let _ = std::fs::remove_dir_all(daemon.path(name));
        }
        let agentd = daemon.command();
        let agentd = agentd.as_std();
        let mut shell = Command::new("bash");
        shell.env_clear().envs(agentd.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.arg("-c").arg(format!("umask {umask}; exec \"$@\"")).arg("bash");
        shell.arg(agentd.get_program()).args(agentd.get_args()).kill_on_drop(true);
        let mut process = spawn(shell, &daemon);
        daemon.client_at(&daemon.socket()).await.call("daemon.status", json!({})).await;
        let mode = |path: &Path| path.symlink_metadata().expect("there").mode() & 0o777;
        assert_eq!(mode(&daemon.path("run/agentd")), 0o700);
        assert_eq!(mode(&daemon.path("data/agentd")), 0o700);
        assert_eq!(mode(&daemon.socket()), 0o600);
        for entry in std::fs::read_dir(daemon.path("data/agentd")).expect("there").flatten() {
            let path = entry.path();
            assert_eq!(mode(&path) & 0o077, 0, "{} is open to others", path.display());
        }
        process.kill().await.expect("killed");
    }
}
