//! `rpc.discover`, `daemon.hello`, `daemon.status`, `daemon.reload`, `daemon.shutdown`.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{
    ClientRole, Done, HelloParams, HelloReply, NoParams, OpenRpcDocument, ReloadParams, ReloadReply,
    SandboxChoice, SandboxReply, ShutdownMode, ShutdownParams, StatusReply,
};
use api::{Code, Fault, PROTOCOL_VERSION, openrpc};
use session::{SandboxReport, backups};
use types::daemon_event::RestartReason;
use types::event::EVENT_VERSION;
use types::job::FailedDelivery;
use types::tool::Confinement;

/// Maximum characters of a client's name that are stored.
const MAX_NAME_CHARS: usize = 64;
/// Age up to which a failed message about a job is part of the status: seven days.
const FAILED_DELIVERY_AGE_MS: u64 = 7 * 86_400_000;

pub(super) async fn discover(_: Arc<RpcContext>, _: Caller, _: NoParams) -> Result<OpenRpcDocument, Fault> {
    let internal = |error: &dyn std::fmt::Display| Fault::new(Code::Internal, error.to_string());
    let text = String::from_utf8(openrpc()).map_err(|error| internal(&error))?;
    RawValue::from_string(text).map(OpenRpcDocument).map_err(|error| internal(&error))
}

pub(super) async fn hello(_: Arc<RpcContext>, caller: Caller, p: HelloParams) -> Result<HelloReply, Fault> {
    if let Some(wanted) = p.protocol_version.filter(|wanted| *wanted != PROTOCOL_VERSION) {
        let why = format!("protocol version {wanted} is not served; this daemon speaks {PROTOCOL_VERSION}");
        let fault = Fault::new(Code::UnsupportedVersion, why).with("supported", vec![PROTOCOL_VERSION]);
        return Err(fault.with("version", env!("CARGO_PKG_VERSION")));
    }
    let role = p.role.unwrap_or_default();
    match role {
        ClientRole::Tool => {
            let why = "role: tool is given by the daemon, never asked for";
            return Err(Fault::new(Code::InvalidParams, why).with("path", "role"));
        }
        ClientRole::Observer => caller.connection.set_read_only(true),
        ClientRole::Controller => caller.connection.set_read_only(false),
    }
    let role = caller.role();
    if let Some(name) = p.name {
        let name: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect();
        if !name.trim().is_empty() {
            caller.connection.set_name(name);
        }
    }
    Ok(HelloReply {
        protocol_version: PROTOCOL_VERSION,
        event_version: EVENT_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        name: caller.connection.name(),
        role,
    })
}

pub(super) async fn status(ctx: Arc<RpcContext>, _: Caller, _: NoParams) -> Result<StatusReply, Fault> {
    let shared = ctx.registry.shared();
    let counts = shared.store.counts().await;
    let storage =
        match counts.as_ref().map(|_| ()).map_err(Clone::clone).and(ctx.registry.check_storage().await) {
            Ok(()) => "ok".to_string(),
            Err(error) => format!("could not {error}"),
        };
    let components = shared.components();
    let config = ctx.config.borrow().clone();
    let (sessions, active_sessions) = counts.unwrap_or_default();
    Ok(StatusReply {
        version: env!("CARGO_PKG_VERSION").into(),
        protocol_version: PROTOCOL_VERSION,
        pid: std::process::id(),
        started_at_ms: ctx.info.started_at,
        socket: ctx.info.socket.clone(),
        data_dir: ctx.info.data_dir.clone(),
        config_files: config.files,
        providers: components.models.providers(),
        main_model: components.settings.main_model.clone(),
        missing_key_variables: components.models.missing_key_variables(),
        sessions,
        active_sessions,
        loaded_sessions: ctx.registry.loaded() as u64,
        resident_bytes: (ctx.info.resident_bytes)(),
        journal_bytes: shared.journal_bytes(),
        storage,
        storage_notices: ctx.info.storage_notices.clone(),
        backups: backups(&ctx.info.backups).iter().map(|path| path.display().to_string()).collect(),
        confinement: components.tools.confinement(),
        sandbox: components.tools.sandbox().map_or_else(SandboxReply::untested, sandbox_reply),
        leftovers: ctx.info.leftovers.clone(),
        last_reload: config.last_reload,
        jobs: ctx.jobs.counts(),
        failed_delivery: failed_delivery(&ctx).await,
    })
}

/// The newest failed message about a job. A problem of the storage is in `storage`.
async fn failed_delivery(ctx: &RpcContext) -> Option<FailedDelivery> {
    let since = ctx.registry.shared().clock.now().before(FAILED_DELIVERY_AGE_MS);
    ctx.jobs.last_failed_delivery(since).await.unwrap_or_default()
}

fn sandbox_reply(sandbox: SandboxReport) -> SandboxReply {
    SandboxReply {
        attended: choice(sandbox.attended),
        unattended: choice(sandbox.unattended),
        bubblewrap: describe_check(sandbox.bubblewrap),
        landlock: match (sandbox.landlock, sandbox.guards) {
            (Ok(()), Err(why)) => {
                format!(
                    "works, but .git/config, .git/hooks and .agentd can be written: no mounts here ({why})"
                )
            }
            (tried, _) => describe_check(tried),
        },
        is_tested: true,
    }
}

fn choice(chosen: Result<(Confinement, &str), String>) -> SandboxChoice {
    match chosen {
        Ok((how, text)) => {
            SandboxChoice { level: Some(how.level), network: how.network, text: text.to_owned() }
        }
        Err(text) => SandboxChoice { level: None, network: false, text },
    }
}

fn describe_check(tried: Result<(), String>) -> String {
    tried.err().unwrap_or_else(|| "works".to_owned())
}

pub(super) async fn reload(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: ReloadParams,
) -> Result<ReloadReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    ctx.registry.once("daemon.reload", None, keyed, convert::fault, reload_config(&ctx)).await
}

async fn reload_config(ctx: &RpcContext) -> Result<ReloadReply, Fault> {
    let stopping = |_| Fault::new(Code::ShuttingDown, "the daemon is stopping");
    let (reply, outcome) = oneshot::channel();
    ctx.reload.send(reply).await.map_err(|_| stopping(()))?;
    outcome.await.map_err(|_| stopping(()))?.map_err(|refused| {
        let why = format!("{} (the configuration in force stays)", refused.message);
        Fault::new(Code::InvalidParams, why)
            .with("path", "config")
            .with("file", refused.file)
            .with("line", refused.line)
    })
}

pub(super) async fn shutdown(ctx: Arc<RpcContext>, _: Caller, p: ShutdownParams) -> Result<Done, Fault> {
    if p.mode == ShutdownMode::Now {
        ctx.hurry.cancel();
    }
    ctx.stop.request(if p.restart { RestartReason::Restart } else { RestartReason::Stop });
    Ok(Done {})
}
