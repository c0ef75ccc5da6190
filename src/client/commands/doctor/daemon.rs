//! What a running daemon tells about itself: storage, sandbox, providers, schedules, messages. Also what can be found
//! without one.

use std::path::Path;
use std::time::Duration;

use super::{Finding, fail, ok, warn};
use crate::commands::daemon::{sandbox_line, tested_status};
use crate::connection::client::Client;
use crate::connection::connector::{Connector, daemon_command, is_absent};
use crate::connection::lock_holder::LockHolder;
use crate::connection::versions::which_to_update;
use crate::failure::code;
use api::methods;
use api::params::{ModelCheckParams, NoParams, SandboxReply, StatusReply};
use types::job::{DeliveryStatus, FailedDelivery};

/// The fix for a damaged database.
const RESTART_FIX: &str = "restart the daemon: it sets the damaged file aside and saves what can be saved";

/// The findings about the daemon, or why none answers.
pub(super) async fn daemon(reach: &Connector) -> Vec<Finding> {
    let client = match reach.connect().await {
        Ok(client) => client,
        Err(failure) => {
            let dialled = tokio::net::UnixStream::connect(&reach.places.socket).await;
            let no_socket = dialled.is_err_and(|error| is_absent(&error));
            let holder = LockHolder::find(&reach.places.data_dir).filter(|_| no_socket);
            let absent = match holder {
                Some(holder) => {
                    let (what, fix) = holder.explain(&reach.places.socket);
                    fail(what, fix)
                }
                None if failure.code != code::UNREACHABLE => fail(failure.message, "agentctl daemon restart"),
                None => warn(failure.message, "agentctl daemon start (run and attach do it by themselves)"),
            };
            return vec![absent, database_finding(check_files(reach).await)];
        }
    };
    match tested_status(&client).await {
        Ok(status) => {
            let mut findings = state(&client, &status);
            findings.extend(providers(&client, &status).await);
            findings.extend(schedules(&client).await);
            let checked = client.call::<methods::daemon::Check>(&NoParams {}).await;
            findings.push(database_finding(
                checked.map(|reply| reply.problems).map_err(|error| error.to_string()),
            ));
            findings
        }
        Err(error) => {
            let message = error.message;
            vec![fail(format!("the daemon answers with an error: {message}"), "agentctl daemon logs")]
        }
    }
}

/// With schedules, whether the daemon starts by itself: a schedule of a daemon that does not run creates nothing.
async fn schedules(client: &Client) -> Option<Finding> {
    let listed = client.call::<methods::schedule::List>(&Default::default()).await.ok()?;
    let enabled = listed.schedules.iter().filter(|schedule| schedule.enabled).count();
    if enabled == 0 {
        return None;
    }
    let what = format!("{enabled} schedules are enabled");
    Some(match starts_at_boot().await {
        true => ok(format!("{what}, and the daemon starts at boot")),
        false => warn(
            format!("{what}, but nothing starts the daemon at boot"),
            "systemctl --user enable agentd.service and loginctl enable-linger (deploy/README.md)",
        ),
    })
}

/// Whether systemd starts the daemon at boot, as a service of the system, or of a user who lingers.
async fn starts_at_boot() -> bool {
    is_enabled("--system").await || (lingers() && is_enabled("--user").await)
}

/// Whether the user's services start at boot and not only at login (`loginctl enable-linger`).
fn lingers() -> bool {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user.name).exists())
}

async fn is_enabled(scope: &str) -> bool {
    let mut ask = tokio::process::Command::new("systemctl");
    ask.args([scope, "is-enabled", "agentd.service"]).stdin(std::process::Stdio::null());
    let asked = tokio::time::timeout(Duration::from_secs(2), ask.output()).await;
    matches!(asked, Ok(Ok(output)) if output.status.success())
}

/// Checks whether each provider can be reached with its key. Only the main model's provider has to work.
async fn providers(client: &Client, status: &StatusReply) -> Vec<Finding> {
    if status.providers.is_empty() {
        return Vec::new();
    }
    let checked = match client.call::<methods::model::Check>(&ModelCheckParams::default()).await {
        Ok(reply) => reply.providers,
        Err(error) => {
            return vec![warn(format!("the providers could not be tried: {error}"), "agentctl daemon logs")];
        }
    };
    let main = status.main_model.as_ref().and_then(|model| model.split_once('/')).map(|(name, _)| name);
    let each = checked.into_iter().map(|provider| {
        let name = &provider.name;
        match provider.error {
            None => ok(format!(
                "provider {name} accepts the key and answers after {} ms",
                provider.latency_ms.unwrap_or_default()
            )),
            Some(error) => {
                let fix = format!("correct [providers.{name}] or its key, then agentctl models --check");
                let what = format!("provider {name}: {error}");
                if main == Some(name.as_str()) { fail(what, fix) } else { warn(what, fix) }
            }
        }
    });
    each.collect()
}

/// If no daemon runs, lets the daemon program check the files, because this program cannot read the database.
async fn check_files(reach: &Connector) -> Result<Vec<String>, String> {
    let mut program = tokio::process::Command::from(daemon_command(&reach.places));
    program.arg("--check-database").kill_on_drop(true);
    let output = program.output().await.map_err(|error| format!("could not start agentd: {error}"))?;
    let lines =
        |text: &[u8]| -> Vec<String> { String::from_utf8_lossy(text).lines().map(String::from).collect() };
    match (output.status.success(), lines(&output.stdout)) {
        (true, _) => Ok(Vec::new()),
        (false, problems) if !problems.is_empty() => Ok(problems),
        (false, _) => Err(lines(&output.stderr).join("; ")),
    }
}

fn database_finding(checked: Result<Vec<String>, String>) -> Finding {
    match checked {
        Ok(problems) => match problems.first() {
            None => ok("the database is intact"),
            Some(first) => {
                fail(format!("the database is damaged: {first} ({} findings)", problems.len()), RESTART_FIX)
            }
        },
        Err(error) => warn(format!("the database could not be checked: {error}"), "agentctl daemon logs"),
    }
}

pub(super) fn answers(status: &StatusReply) -> Finding {
    ok(format!("agentd {} answers, process {}", status.version, status.pid))
}

pub(super) fn storage(status: &StatusReply) -> Finding {
    match status.storage.as_str() {
        "ok" => ok(format!("storage in {} works", status.data_dir)),
        other if other.contains("damaged") => {
            fail(format!("storage in {}: {other}", status.data_dir), RESTART_FIX)
        }
        other => fail(
            format!("storage in {}: {other}", status.data_dir),
            "free space, or make the disk writable; the daemon continues then without a restart (agentctl daemon logs)",
        ),
    }
}

fn state(client: &Client, status: &StatusReply) -> Vec<Finding> {
    let mut findings = vec![answers(status)];
    if client.hello().version != env!("CARGO_PKG_VERSION") {
        findings.push(warn(
            format!("agentctl is {}, agentd is {}", env!("CARGO_PKG_VERSION"), status.version),
            which_to_update(&status.version),
        ));
    }
    findings.push(storage(status));
    for notice in &status.storage_notices {
        findings.push(warn(notice.clone(), "look at it, then move these files away"));
    }
    findings.push(ok(format!("limits of commands: {}", status.confinement)));
    findings.extend(sandbox(&status.sandbox));
    if !status.leftovers.is_empty() {
        findings.push(fail(
            format!("processes of an earlier daemon could not be ended: {:?}", status.leftovers),
            "end them by hand; one that waits for a device ends when that answers",
        ));
    }
    findings.push(if status.providers.is_empty() {
        warn(
            "no model provider is configured",
            "agentctl login anthropic (or openai); others: docs/models.md",
        )
    } else {
        ok(format!("model providers: {}", status.providers.join(", ")))
    });
    if let Some(last) = &status.last_reload {
        if let Some(error) = &last.error {
            findings.push(fail(
                format!("the configuration was not taken when it was read again: {error}"),
                "correct it, then agentctl daemon reload",
            ));
        }
        if !last.needs_restart.is_empty() {
            let keys = last.needs_restart.join(", ");
            findings
                .push(warn(format!("changed, and waiting for a restart: {keys}"), "agentctl daemon restart"));
        }
    }
    if let Some(FailedDelivery { job_id, delivery }) = &status.failed_delivery {
        let error = delivery.error.as_deref().unwrap_or("it was not accepted");
        let next = if delivery.status == DeliveryStatus::Failed { "was given up" } else { "is tried again" };
        findings.push(warn(
            format!("the last message to [jobs.notify.{}] that failed {next}: {error}", delivery.target),
            format!("correct that table or its receiver; agentctl jobs show {job_id}"),
        ));
    }
    findings.push(match &status.main_model {
        Some(model) => ok(format!("main model: {model}")),
        None => warn("no main model is set", "[models] main = \"PROVIDER/MODEL\" in the config, or --model"),
    });
    findings
}

/// The sandbox level of commands, and the changes that would improve it.
fn sandbox(reply: &SandboxReply) -> Vec<Finding> {
    let better = || {
        let mut reasons =
            vec![format!("bubblewrap: {}", reply.bubblewrap), format!("Landlock: {}", reply.landlock)];
        reasons.retain(|line| !line.ends_with(": works"));
        match reasons.is_empty() {
            true => "set [sandbox] level = \"auto\"".to_owned(),
            false => format!("install bubblewrap, or look at what is missing ({})", reasons.join("; ")),
        }
    };
    let sessions = [("attended", &reply.attended), ("unattended", &reply.unattended)];
    let each = sessions.into_iter().map(|(which, choice)| {
        let what = format!("sandbox of commands in {which} sessions: {}", sandbox_line(choice));
        match choice.level {
            Some(2) if reply.landlock != "works" => {
                let fix = "set [sandbox] level = \"bubblewrap\", or let users make user namespaces";
                warn(format!("{what}; Landlock {}", reply.landlock), fix)
            }
            Some(2..) => ok(what),
            _ => warn(what, better()),
        }
    });
    each.collect()
}
