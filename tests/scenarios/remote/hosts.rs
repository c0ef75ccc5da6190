//! Names of hosts, and errors that say what to do.

use super::{FakeSsh, HOST};
use crate::scenarios::agentctl::ctl;
use crate::support::daemon::TestDaemon;

#[tokio::test]
async fn named_host_is_used_until_the_default_is_chosen_again() {
    let daemon = TestDaemon::start().await;
    let ssh = FakeSsh::install(&daemon);
    ssh.ctl(&["host", "add", "build", HOST]).await.stdout();
    let calls = || ssh.arguments().lines().count();
    ssh.ctl(&["-H", "build", "ps"]).await.stdout();
    assert_eq!(calls(), 1);
    ssh.ctl(&["ps"]).await.stdout();
    assert_eq!(calls(), 1, "an added host is not in force");
    ssh.ctl(&["host", "use", "build"]).await.stdout();
    ssh.ctl(&["ps"]).await.stdout();
    assert_eq!(calls(), 2);
    let listed = ssh.ctl(&["host", "list", "--json"]).await.json();
    assert_eq!((&listed["in_force"], &listed["reason"]), (&"build".into(), &"`agentctl host use`".into()));
    ssh.ctl(&["-H", "default", "ps"]).await.stdout();
    ssh.ctl(&["host", "use", "default"]).await.stdout();
    ssh.ctl(&["ps"]).await.stdout();
    assert_eq!(calls(), 2);
    let mut command = ssh.command(&["ps"]);
    command.env("AGENTD_HOST", "build");
    assert!(command.output().await.expect("it ran").status.success());
    assert_eq!(calls(), 3);
    let mut completing = ssh.command(&["--", "agentctl", "host", "use", ""]);
    completing.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "3").env("_CLAP_IFS", "\n");
    let offered = String::from_utf8(completing.output().await.expect("it ran").stdout).expect("text");
    assert!(offered.contains("build") && offered.contains("default"), "{offered}");
}

#[tokio::test]
async fn failures_of_ssh_are_typed_and_its_words_are_shown() {
    let daemon = TestDaemon::start().await;
    let ssh = FakeSsh::with(&daemon, "[ -e $here/fail ] && { . $here/fail; }");
    let fail = daemon.path("ssh/fail");
    for (script, code, words) in [
        ("echo 'ann@build: Permission denied (publickey).' >&2; exit 255", 69, "does not accept this user"),
        (
            "echo 'Host key verification failed.' >&2; exit 255",
            69,
            "the key of ann@build.example.com is not known",
        ),
        ("echo 'ssh: Could not resolve hostname' >&2; exit 255", 69, "could not reach ann@build.example.com"),
        ("exec bash -c 'no-such-agentctl'", 69, "there is no agentctl on ann@build.example.com"),
        ("echo \"error: unrecognized subcommand 'dial-stdio'\" >&2; exit 64", 69, "too old"),
    ] {
        std::fs::write(&fail, script).expect("written");
        let said = ssh.ctl(&["-H", HOST, "ps"]).await;
        assert_eq!((said.code, said.out.as_str()), (code, ""), "{said:?}");
        assert!(said.err.contains(words) && said.err.contains("ssh says:"), "{said:?}");
    }
    let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32016,"message":"only version 7","data":{"kind":"unsupported_version"}}}"#;
    // Lines that a login script of the remote shell prints are skipped.
    std::fs::write(&fail, format!("echo Welcome; echo '{refusal}'; exec sleep 60")).expect("written");
    let said = ssh.ctl(&["-H", HOST, "ps"]).await;
    assert!(said.code == 69 && said.err.contains("do not fit: only version 7"), "{said:?}");
    std::fs::write(&fail, "echo Welcome").expect("written");
    ssh.ctl(&["-H", HOST, "ps"]).await.stdout();
    let mut command = ssh.command(&["-H", HOST, "ps"]);
    command.env("AGENTD_SSH", "/no/such/ssh");
    let said = String::from_utf8(command.output().await.expect("it ran").stderr).expect("text");
    assert!(said.contains("could not run ssh") && said.contains("AGENTD_SSH"), "{said}");
}

#[tokio::test]
async fn addresses_that_inject_options_never_reach_ssh() {
    let daemon = TestDaemon::start().await;
    let ssh = FakeSsh::install(&daemon);
    for host in
        ["ssh://-oProxyCommand=id", "ssh://a@-x", "ssh://a b", "ssh://a;id", "ssh://a/$(id)", "nowhere"]
    {
        let said = ssh.ctl(&["-H", host, "ps"]).await;
        assert!(said.code == 64 && said.err.contains("-H "), "{said:?}");
        let added = ssh.ctl(&["host", "add", "x", host]).await;
        assert_eq!(added.code, 64, "{added:?}");
    }
    // A project cannot name a host.
    std::fs::create_dir(daemon.workspace().join(".agentd")).expect("made");
    std::fs::write(
        daemon.workspace().join(".agentd/hosts.toml"),
        "current = \"x\"\n[hosts]\nx = \"ssh://evil\"\n",
    )
    .expect("written");
    ctl(&daemon, &["ps"]).await.stdout();
    assert_eq!(ssh.arguments(), "");
}

#[tokio::test]
async fn commands_about_this_machine_are_refused_with_the_command_to_type() {
    let daemon = TestDaemon::start().await;
    let ssh = FakeSsh::install(&daemon);
    for words in [
        &["login", "openai"][..],
        &["doctor"],
        &["daemon", "start"],
        &["daemon", "stop"],
        &["daemon", "logs"],
    ] {
        let said = ssh.ctl(&[&["-H", HOST], words].concat()).await;
        let there = format!("ssh -t -p 2222 ann@build.example.com agentctl {}", words.join(" "));
        assert!(said.code == 64 && said.err.contains(&there), "{said:?}");
    }
    let said = ssh.ctl(&["-H", HOST, "--config", "x.toml", "ps"]).await;
    assert!(said.code == 64 && said.err.contains("--config names a file of this machine"), "{said:?}");
    assert_eq!(ssh.arguments(), "");
    let status = ssh.ctl(&["-H", HOST, "daemon", "status", "--json"]).await.json();
    assert_eq!(status["pid"], daemon.pid().as_raw());
}

#[tokio::test]
async fn folder_that_the_server_lacks_is_refused_with_remedy() {
    let daemon = TestDaemon::start().await;
    let ssh = FakeSsh::install(&daemon);
    for args in [&["run", "-w", "/no/such/folder", "go"][..], &["run", "-d", "-w", "/no/such/folder", "go"]] {
        let said = ssh.ctl(&[&["-H", HOST], args].concat()).await;
        assert!(said.code == 64 && said.err.contains("name a folder of it with -w DIR"), "{said:?}");
    }
}
