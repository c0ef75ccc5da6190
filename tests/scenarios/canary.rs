//! A provider's key appears only in the request that needs it.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;

use nix::sys::signal::Signal;

use super::agentctl::ctl;
use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// A text that appears nowhere else by chance.
const CANARY: &str = "sk-canary-e1f7c0ffee5ca1ab1e0ddba11";

fn is_in(bytes: &[u8]) -> bool {
    bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
}

#[tokio::test]
async fn api_key_from_any_source_is_never_exposed() {
    // Pass the key in a folder of credentials, as systemd does for a service.
    let credentials = tempfile::tempdir().expect("a folder");
    std::fs::write(credentials.path().join("canary"), CANARY).expect("written");
    for source in ["env", "file", "command", "credential"] {
        let plan = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]");
        let plan = match source {
            "env" => plan.provider("api_key_env = \"CANARY_KEY\"").environment("CANARY_KEY", CANARY),
            "file" => plan.provider("api_key_file = \"@\""),
            "credential" => plan
                .provider("api_key_file = \"credential:canary\"")
                .environment("CREDENTIALS_DIRECTORY", &credentials.path().display().to_string()),
            _ => plan.provider("api_key_command = \"cat @\""),
        };
        let mut daemon = plan.build().await;
        std::fs::write(daemon.path("key"), CANARY).expect("written");
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(daemon.path("key"), private).expect("changed");
        let config = std::fs::read_to_string(daemon.path("config.toml")).expect("a file");
        let config = config.replace('@', &daemon.path("key").display().to_string());
        std::fs::write(daemon.path("config.toml"), config).expect("written");
        daemon.launch().await;
        // A command searches for the key. Root may read every process environment, including the
        // daemon's.
        let mut look = "env; cat /proc/self/environ; cat /proc/*/cmdline | tr '\\0' ' '".to_owned();
        if !nix::unistd::geteuid().is_root() {
            look.push_str("; cat /proc/$PPID/environ; ps axe");
        }
        daemon.models.push(Step::calls([bash(&look)]));
        daemon.models.push(Step::text("Done."));
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        session.submit("look around").await;
        seen.turn_ends("success").await;
        let requests = daemon.models.requests();
        let carries = |headers: &[(String, String)]| headers.iter().any(|(_, value)| value.contains(CANARY));
        assert_eq!(
            requests.iter().filter(|request| carries(&request.headers)).count(),
            2,
            "{source}: the request has the key"
        );
        for event in session.events().await {
            assert!(!is_in(event.to_string().as_bytes()), "{source}: {event}");
        }
        let copy = daemon.path("data/copy.db").display().to_string();
        for args in [
            &["daemon", "status", "--json"][..],
            &["doctor"],
            &["audit", "--json"],
            &["ps", "--json"],
            &["backup", &copy],
        ] {
            let said = ctl(&daemon, args).await;
            assert!(!is_in(said.out.as_bytes()) && !is_in(said.err.as_bytes()), "{source}: {args:?}");
        }
        daemon.stop().await;
        assert!(!is_in(&daemon.all_written_bytes()), "{source}: a file contains the key");
    }
}

#[tokio::test]
async fn crashed_daemon_writes_no_core_dump() {
    // Use a process that may be dumped to find out whether this machine writes core dumps at all.
    let folder = tempfile::tempdir().expect("a folder");
    let script = "ulimit -c unlimited; kill -ABRT $$";
    let other = std::process::Command::new("/bin/bash").args(["-c", script]).current_dir(&folder).status();
    if !other.expect("it ran").core_dumped() {
        base::skip_test!("nothing leaves an image of its memory here");
        return;
    }
    let mut daemon = TestDaemon::builder().with_prelude("ulimit -c unlimited").start().await;
    daemon.signal(Signal::SIGABRT);
    let status = daemon.wait_exit().await;
    assert_eq!(status.signal(), Some(Signal::SIGABRT as i32));
    assert!(!status.core_dumped(), "its memory was written to a file");
}
