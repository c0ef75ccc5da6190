//! `agentctl daemon`: start, stop, restart, reload, status, logs.

use api::methods;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::args::DaemonCommand;
use crate::commands::dial_stdio;
use crate::connection::client::{CallError, Client};
use crate::connection::connector::{Connector, is_absent, last_lines, read_from};
use crate::connection::lock_holder::LockHolder;
use crate::connection::service::Service;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::format::{age, now};
use crate::terminal::out::OutputStreams;
use api::params::{
    Done, NoParams, ReloadParams, ReloadReply, SandboxChoice, ShutdownMode, ShutdownParams, StatusReply,
};

/// How long a daemon may take to park its sessions.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a stopping daemon may hold its lock after its socket is removed.
const ENDING_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) async fn daemon(
    reach: &Connector,
    what: &DaemonCommand,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    match what {
        DaemonCommand::Start => {
            let client = reach.connect_or_start().await?;
            say_started(&client, out).await
        }
        DaemonCommand::Stop { now } => stop(reach, stop_params(*now), out).await,
        DaemonCommand::Status { json } => {
            let client = reach.connect().await?;
            let status = tested_status(&client).await?;
            if *json {
                return Ok(out.json(&status)?);
            }
            for (name, value) in describe(&status) {
                out.say(&format!("{name:<14} {}", escape::line(&value)))?;
            }
            Ok(())
        }
        DaemonCommand::Reload => reload(reach, out).await,
        DaemonCommand::Restart { now } => {
            let service = service(reach);
            stop(reach, ShutdownParams { restart: true, ..stop_params(*now) }, out).await?;
            // systemd keeps the socket of a socket unit and starts the daemon for the first connection.
            if let Some(service) = service.filter(|_| !reach.places.socket.exists()) {
                service.start().await?;
            }
            let started = reach.connect_or_start().await?;
            say_started(&started, out).await
        }
        DaemonCommand::Logs => logs(reach, out),
        DaemonCommand::DialStdio { after_crash } => dial_stdio::dial_stdio(reach, *after_crash).await,
    }
}

/// The systemd service that runs the daemon of this data folder, if one does.
pub(super) fn service(reach: &Connector) -> Option<Service> {
    let holder = LockHolder::find(&reach.places.data_dir).filter(|_| reach.host.is_none())?;
    Service::find(holder.pid.try_into().ok()?)
}

async fn say_started(client: &Client, out: &mut OutputStreams) -> Result<(), Failure> {
    let status = status(client).await?;
    let socket = escape::line(&status.socket).into_owned();
    let version = escape::line(&status.version).into_owned();
    Ok(out.say(&format!("agentd {version} runs, process {}, at {socket}", status.pid))?)
}

async fn reload(reach: &Connector, out: &mut OutputStreams) -> Result<(), Failure> {
    if let Err(CallError::Io(error)) = reach.dial().await
        && is_absent(&error)
        && LockHolder::find(&reach.places.data_dir).is_none()
    {
        // A user who has changed a file and then reloads has nothing more to do.
        return Ok(out.note("no daemon runs; the next one reads the configuration when it starts")?);
    }
    let client = reach.connect().await?;
    let reply: ReloadReply = client.call::<methods::daemon::Reload>(&ReloadParams::default()).await?;
    let keys = |keys: &[String]| escape::line(&keys.join(", ")).into_owned();
    match reply.changed.as_slice() {
        [] => out.say("read again; no key that applies at once has changed")?,
        changed => out.say(&format!("read again; changed: {}", keys(changed)))?,
    }
    if !reply.needs_restart.is_empty() {
        let waiting = keys(&reply.needs_restart);
        out.say(&format!("only after `agentctl daemon restart`: {waiting}"))?;
    }
    Ok(())
}

/// Longest wait for the test of the sandbox levels, which runs shortly after the start of the daemon.
const SANDBOX_TEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two requests meanwhile.
const SANDBOX_TEST_PAUSE: Duration = Duration::from_millis(20);

/// The status once the sandbox levels are tested.
pub(super) async fn tested_status(client: &Client) -> Result<StatusReply, Failure> {
    let deadline = Instant::now() + SANDBOX_TEST_TIMEOUT;
    loop {
        let status = status(client).await?;
        if status.sandbox.is_tested || Instant::now() >= deadline {
            return Ok(status);
        }
        sleep(SANDBOX_TEST_PAUSE).await;
    }
}

async fn status(client: &Client) -> Result<StatusReply, Failure> {
    Ok(client.call::<methods::daemon::Status>(&NoParams {}).await?)
}

fn describe(status: &StatusReply) -> Vec<(&'static str, String)> {
    let none = |text: String| if text.is_empty() { "none".to_string() } else { text };
    let mut rows = vec![
        ("version", format!("{} (protocol {})", status.version, status.protocol_version)),
        ("process", format!("{}, up {}", status.pid, age(now().since(status.started_at_ms)))),
        ("socket", status.socket.clone()),
        ("data", status.data_dir.clone()),
        ("storage", status.storage.clone()),
        ("backups", none(status.backups.join(", "))),
        ("commands", none(status.confinement.clone())),
        ("sandbox", sandbox_line(&status.sandbox.attended)),
        ("unattended", sandbox_line(&status.sandbox.unattended)),
        ("config", none(status.config_files.join(", "))),
        ("providers", none(status.providers.join(", "))),
        ("main model", none(status.main_model.clone().unwrap_or_default())),
        ("sessions", format!("{}, {} active", status.sessions, status.active_sessions)),
        ("journal", format!("{:.1} MB", status.journal_bytes as f64 / 1e6)),
    ];
    if let Some(last) = &status.last_reload {
        let ago = age(now().since(last.at_ms));
        rows.push(match &last.error {
            Some(error) => ("reload", format!("failed {ago} ago: {error}")),
            None => ("reload", format!("{ago} ago")),
        });
        if !last.needs_restart.is_empty() {
            rows.push(("after restart", last.needs_restart.join(", ")));
        }
    }
    rows
}

/// The sandbox of commands, in one line.
pub(crate) fn sandbox_line(choice: &SandboxChoice) -> String {
    let network = if choice.network { "network" } else { "no network" };
    match choice.level {
        Some(level) => format!("level {level} ({}), {network}", choice.text),
        None => format!("no command is run: {}", choice.text),
    }
}

fn stop_params(now: bool) -> ShutdownParams {
    let mode = if now { ShutdownMode::Now } else { ShutdownMode::Drain };
    ShutdownParams { mode, restart: false }
}

/// Asks the daemon to stop and waits until it has exited. It is not an error if none runs.
pub(crate) async fn stop(
    reach: &Connector,
    params: ShutdownParams,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = match reach.dial().await {
        Ok(client) => client,
        // A daemon of another protocol understands a signal.
        Err(CallError::Fault(fault)) if fault.kind() == "unsupported_version" => {
            return match LockHolder::find(&reach.places.data_dir) {
                Some(holder) if !reach.listens_elsewhere() => {
                    stop_unreachable(reach, holder, params.mode, out).await
                }
                _ => Err(CallError::Fault(fault).into()),
            };
        }
        Err(CallError::Io(e)) if is_absent(&e) => {
            return match LockHolder::find(&reach.places.data_dir) {
                // This is not the requested daemon, and its sessions may be in the middle of work. So do not
                // stop it.
                Some(_) if reach.listens_elsewhere() => Err(Failure::unreachable(reach.absence_message(&e))),
                Some(holder) => stop_unreachable(reach, holder, params.mode, out).await,
                None => Ok(out.note("no daemon was running")?),
            };
        }
        Err(other) => return Err(other.into()),
    };
    // The daemon of another data folder is known by its socket alone.
    let holder = LockHolder::find(&reach.places.data_dir)
        .filter(|holder| holder.socket.is_some() && holder.socket.as_deref() == client.socket());
    let mut outcome = client.call::<methods::daemon::Shutdown>(&params).await;
    if params.restart && matches!(&outcome, Err(CallError::Fault(fault)) if fault.kind() == "invalid_params")
    {
        // An older daemon does not know `restart`.
        let params = ShutdownParams { restart: false, ..params };
        outcome = client.call::<methods::daemon::Shutdown>(&params).await;
    }
    match outcome {
        // The daemon may exit before it has sent the reply.
        Ok(Done {}) | Err(CallError::Closed) => {}
        Err(CallError::Fault(fault)) if fault.kind() == "shutting_down" => {}
        Err(other) => return Err(other.into()),
    }
    let deadline = Instant::now() + STOP_TIMEOUT;
    let mut wait = Duration::from_millis(5);
    loop {
        // The daemon closes this connection last. While it is open, the daemon may still write to its files.
        if client.is_closed() && is_gone(reach, holder.as_ref(), client.socket()).await {
            return Ok(out.say("stopped; sessions are kept")?);
        }
        if Instant::now() > deadline {
            return Err(Failure::internal(
                "the daemon is still working after 30 s; `agentctl daemon stop --now` does not wait for tools",
            ));
        }
        sleep(wait).await;
        wait = (wait * 2).min(Duration::from_millis(200));
    }
}

/// Whether a stopped daemon has ended.
async fn is_gone(reach: &Connector, holder: Option<&LockHolder>, socket: Option<&Path>) -> bool {
    match (holder, socket) {
        // No attempt to connect: where systemd keeps the socket, it would start the next daemon.
        (Some(holder), _) => {
            LockHolder::find(&reach.places.data_dir).is_none_or(|other| other.pid != holder.pid)
        }
        (None, Some(socket)) => {
            tokio::net::UnixStream::connect(socket).await.is_err_and(|error| is_absent(&error))
        }
        (None, None) => true,
    }
}

/// Stops a daemon that runs without a socket, by a signal, and waits until it has exited.
async fn stop_unreachable(
    reach: &Connector,
    holder: LockHolder,
    mode: ShutdownMode,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let runs = || LockHolder::find(&reach.places.data_dir).is_some_and(|other| other.pid == holder.pid);
    // A stopping daemon holds its lock a moment longer than its socket.
    let ending = Instant::now() + ENDING_TIMEOUT;
    while runs() && Instant::now() < ending {
        sleep(Duration::from_millis(50)).await;
    }
    if !runs() {
        return Ok(out.note("no daemon was running")?);
    }
    if !holder.terminate() {
        let (what, fix) = holder.explain(&reach.places.socket);
        return Err(Failure::internal(format!("{what}: {fix}")));
    }
    if matches!(mode, ShutdownMode::Now) {
        // The second signal makes the daemon stop faster. The kernel would merge two signals that arrive at
        // once.
        sleep(Duration::from_millis(200)).await;
        if runs() {
            holder.terminate();
        }
    }
    let deadline = Instant::now() + STOP_TIMEOUT;
    while runs() {
        if Instant::now() > deadline {
            let pid = holder.pid;
            return Err(Failure::internal(format!(
                "the daemon, process {pid}, is still working after 30 s; it was told to stop, and a second \
                 `kill -TERM {pid}` does not wait for tools"
            )));
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(out.say("stopped; sessions are kept")?)
}

fn logs(reach: &Connector, out: &mut OutputStreams) -> Result<(), Failure> {
    if let Some(service) = service(reach) {
        return Err(Failure::internal(format!(
            "the daemon is a service of systemd: {}",
            service.log_command()
        )));
    }
    let path = reach.places.log();
    let shown = path.display().to_string();
    match read_from(&path, 0) {
        Ok(text) => {
            out.note(&format!("the end of {}", escape::line(&shown)))?;
            let end = last_lines(&text, 200);
            Ok(out.say_text(&end)?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::internal(format!(
            "there is no {}: only a daemon that agentctl started writes there; others log to their stderr",
            escape::line(&shown)
        ))),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::daemon::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use serde_json::json;

    #[tokio::test]
    async fn daemon_status_is_printed_as_text_or_json() {
        let reply = json!({"version": "1.2.3", "protocol_version": 1, "pid": 42, "started_at_ms": 0,
            "socket": "/s", "data_dir": "/d", "config_files": [], "providers": ["demo"], "main_model": null,
            "sessions": 3, "active_sessions": 1, "loaded_sessions": 2, "resident_bytes": 4096, "journal_bytes": 4096, "storage": "ok", "storage_notices": [], "confinement": "rlimits", "leftovers": [],
            "sandbox": {"attended": {"level": 2, "network": true, "text": "landlock"},
                "unattended": {"network": false, "text": "none"}, "bubblewrap": "works", "landlock": "works",
                "tested": true},
            "jobs": {"paused": false, "open": {"running": 2}, "completed": {}},
            "backups": ["/d/backups/agentd-20260102.db"]});
        let fake_reply = reply.clone();
        let fake = FakeDaemon::start(move |_, _, _| Ok(fake_reply.clone()));
        let (mut out, text, _) = captured_output();
        let status = |json| DaemonCommand::Status { json };
        daemon(&fake.connector(), &status(false), &mut out).await.expect("a status");
        assert!(text.text().contains("main model     none\n") && text.text().contains("3, 1 active\n"));
        assert!(text.text().contains("journal        0.0 MB\n"), "{}", text.text());
        let (mut out, text, _) = captured_output();
        daemon(&fake.connector(), &status(true), &mut out).await.expect("a status");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text.text()).expect("json"), reply);
    }

    #[tokio::test]
    async fn status_without_daemon_fails_but_stop_and_reload_succeed() {
        let fake = FakeDaemon::start(|_, _, _| Ok(json!({})));
        let reach = fake.connector();
        drop(fake);
        let (mut out, _, side) = captured_output();
        assert_eq!(
            daemon(&reach, &DaemonCommand::Status { json: false }, &mut out).await.expect_err("none").code,
            69
        );
        daemon(&reach, &DaemonCommand::Stop { now: false }, &mut out).await.expect("nothing to stop");
        assert_eq!(side.text(), "no daemon was running\n");
        daemon(&reach, &DaemonCommand::Reload, &mut out).await.expect("nothing to do");
        assert!(side.text().contains("no daemon runs"), "{}", side.text());
    }
}
