//! Layer 6: the RPC methods. Each one parses its parameters, calls the session layer and converts the reply.

mod abort;
mod agent;
mod answer;
mod approve;
mod archive;
mod audit;
mod backup;
mod blob;
mod command;
mod compact;
mod config;
mod context;
mod convert;
mod create;
mod daemon;
mod diff;
mod events;
mod export;
mod fork;
mod input_files;
mod items;
mod list;
mod mcp;
mod memory;
mod metrics;
mod model;
mod numbers;
mod params;
mod parse_params;
mod permission;
mod queue;
mod redact_thinking;
mod refusals;
mod rewind;
mod submit;
mod subscribe;
mod tool;
mod update;
mod wait;
mod workspace;

use jsonrpsee::{Methods, RpcModule};

pub use context::{ConfigState, Info, Refused, ReloadRequest, RpcContext};
pub use metrics::{now as metrics, text as metrics_text};
pub use refusals::Refusals;

/// Registers all methods of the API.
///
/// # Errors
/// Two methods have the same name, which is a programming error.
pub fn methods(ctx: RpcContext) -> Result<Methods, String> {
    let mut module = RpcModule::new(ctx);
    let m = &mut module;
    params::serve(m, "rpc.discover", daemon::discover)?;
    params::serve(m, "daemon.hello", daemon::hello)?;
    params::serve(m, "daemon.status", daemon::status)?;
    params::serve(m, "daemon.metrics", metrics::metrics)?;
    params::serve(m, "daemon.config", config::config)?;
    params::serve(m, "daemon.reload", daemon::reload)?;
    params::serve(m, "daemon.backup", backup::backup)?;
    params::serve(m, "daemon.check", backup::check)?;
    params::serve(m, "daemon.shutdown", daemon::shutdown)?;
    params::serve(m, "session.create", create::create)?;
    params::serve(m, "session.list", list::list)?;
    params::serve(m, "session.get", list::get)?;
    params::serve(m, "session.submit", submit::submit)?;
    params::serve(m, "session.abort", abort::abort)?;
    params::serve(m, "session.compact", compact::compact)?;
    params::serve(m, "session.context", compact::context)?;
    params::serve(m, "session.approve", approve::approve)?;
    params::serve(m, "session.update", update::update)?;
    params::serve(m, "session.answer", answer::answer)?;
    params::serve(m, "session.feedback", answer::feedback)?;
    params::serve(m, "session.queue.list", queue::list)?;
    params::serve(m, "session.queue.clear", queue::clear)?;
    params::serve(m, "session.queue.update", queue::update)?;
    params::serve(m, "session.queue.remove", queue::remove)?;
    params::serve(m, "session.queue.move", queue::move_turn)?;
    params::serve(m, "session.wait", wait::wait)?;
    params::serve(m, "session.archive", archive::archive)?;
    params::serve(m, "session.fork", fork::fork)?;
    params::serve(m, "session.rewind", rewind::rewind)?;
    params::serve(m, "session.export", export::export)?;
    params::serve(m, "session.import", export::import)?;
    params::serve(m, "session.kill", abort::kill)?;
    params::serve(m, "session.delete", abort::delete)?;
    params::serve(m, "session.subscribe", subscribe::subscribe)?;
    params::serve(m, "session.unsubscribe", subscribe::unsubscribe)?;
    params::serve(m, "session.events", events::events)?;
    params::serve(m, "session.items", items::items)?;
    params::serve(m, "session.blob", blob::blob)?;
    params::serve(m, "session.diff", diff::diff)?;
    params::serve(m, "permission.list", permission::list)?;
    params::serve(m, "agent.list", agent::list)?;
    params::serve(m, "command.list", command::list)?;
    params::serve(m, "memory.list", memory::list)?;
    params::serve(m, "memory.set", memory::set)?;
    params::serve(m, "memory.remove", memory::remove)?;
    params::serve(m, "tool.list", tool::list)?;
    params::serve(m, "mcp.list", mcp::list)?;
    params::serve(m, "mcp.tools", mcp::tools)?;
    params::serve(m, "mcp.resources", mcp::resources)?;
    params::serve(m, "mcp.test", mcp::test)?;
    params::serve(m, "mcp.logs", mcp::logs)?;
    params::serve(m, "mcp.add", mcp::add)?;
    params::serve(m, "mcp.remove", mcp::remove)?;
    params::serve(m, "model.list", model::list)?;
    params::serve(m, "model.check", model::check)?;
    params::serve(m, "model.usage", model::usage)?;
    params::serve(m, "workspace.status", workspace::status)?;
    params::serve(m, "workspace.trust", workspace::trust)?;
    params::serve(m, "workspace.untrust", workspace::untrust)?;
    params::serve(m, "permission.respond", approve::approve)?;
    params::serve(m, "permission.subscribe", permission::subscribe)?;
    params::serve(m, "permission.rules", permission::rules)?;
    params::serve(m, "permission.add_rule", permission::add_rule)?;
    params::serve(m, "permission.remove_rule", permission::remove_rule)?;
    params::serve(m, "permission.explain", permission::explain)?;
    params::serve(m, "permission.audit", audit::audit)?;
    params::serve(m, "permission.verify_audit", audit::verify)?;
    Ok(module.into())
}
