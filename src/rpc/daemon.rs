//! `rpc.discover`, `daemon.hello`, `daemon.status`, `daemon.shutdown`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::office::Office;
use super::params::Caller;
use crate::api::params::{ClientRole, Done, HelloParams, HelloReply, NoParams, ShutdownParams, StatusReply};
use crate::api::{Code, Fault, PROTOCOL_VERSION, docs};

/// Characters of a client's name that are kept.
const NAME: usize = 64;

pub(super) async fn discover(_: Arc<Office>, _: Caller, _: NoParams) -> Result<Value, Fault> {
    Ok(docs::openrpc())
}

pub(super) async fn hello(_: Arc<Office>, caller: Caller, p: HelloParams) -> Result<HelloReply, Fault> {
    if let Some(wanted) = p.protocol_version.filter(|wanted| *wanted != PROTOCOL_VERSION) {
        let why = format!("protocol version {wanted} is not served; this daemon speaks {PROTOCOL_VERSION}");
        return Err(Fault::new(Code::UnsupportedVersion, why).with("supported", vec![PROTOCOL_VERSION]));
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
    if let Some(name) = p.name {
        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME).collect();
        if !name.trim().is_empty() {
            caller.connection.set_name(name);
        }
    }
    Ok(HelloReply {
        protocol_version: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        name: caller.connection.name(),
        role,
    })
}

pub(super) async fn status(office: Arc<Office>, _: Caller, _: NoParams) -> Result<StatusReply, Fault> {
    let house = office.registry.house();
    let counts = house.store.counts().await;
    let storage = match &counts {
        Ok(_) => "ok".to_string(),
        Err(error) => format!("could not {error}"),
    };
    let (sessions, active_sessions) = counts.unwrap_or_default();
    Ok(StatusReply {
        version: env!("CARGO_PKG_VERSION").into(),
        protocol_version: PROTOCOL_VERSION,
        pid: std::process::id(),
        started_at_ms: office.info.started_at,
        socket: office.info.socket.clone(),
        data_dir: office.info.data_dir.clone(),
        config_files: office.info.config_files.clone(),
        providers: house.models.providers(),
        main_model: house.settings.main_model.clone(),
        sessions,
        active_sessions,
        storage,
        confinement: house.tools.confinement(),
        leftovers: office.info.leftovers.clone(),
    })
}

pub(super) async fn shutdown(office: Arc<Office>, _: Caller, p: ShutdownParams) -> Result<Done, Fault> {
    if p.now {
        office.hurry.store(true, Ordering::Release);
    }
    office.stop.cancel();
    Ok(Done {})
}
