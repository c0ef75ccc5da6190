//! Connects MCP servers to the daemon: their configuration, and their processes, which get the
//! environment and the sandbox of commands.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;

use crate::config::Config;
use crate::error::DaemonError;
use base::sync::lock;
use mcp::{LaunchedProcess, Launcher, ScopedServer, ServerProcess, ServerSource, server_part};
use session::Registry;
use tools::{RunningServer, ServerLaunch};
use types::ids::{Mint, Seeds};
use types::server_program::ServerProgram;

/// The servers of the configuration files.
///
/// # Errors
/// Some values of a server contradict each other. The error names file, line and key.
pub(super) fn servers(config: &Config) -> Result<Arc<[ScopedServer]>, DaemonError> {
    let server = |(name, server): (&String, &mcp::ServerConfig)| {
        let wrong = |why: String| config.key_error(&["mcp", name], format!("[mcp.{name}] {why}"));
        if server_part(name).is_none() {
            return Err(wrong("the name needs a letter or a digit".into()));
        }
        server.transport().map_err(wrong)?;
        let source =
            if config.is_set_by_system(&["mcp", name]) { ServerSource::System } else { ServerSource::User };
        Ok(ScopedServer { name: name.clone(), source, config: Ok(server.clone()), notes: Vec::new() })
    };
    Ok(config.mcp.iter().map(server).collect::<Result<Vec<_>, _>>()?.into())
}

/// Environment variables with keys of providers. A project may not pass these variables to its servers.
pub(super) fn key_variables(config: &Config) -> Arc<[String]> {
    let knowledge = [&config.knowledge.embedder.api_key_env, &config.knowledge.reranker.api_key_env];
    let providers = config.providers.values().map(|provider| &provider.api_key_env);
    providers.chain(knowledge).filter_map(Clone::clone).collect()
}

/// Starts processes of servers, using the toolbox that is current at that moment.
pub(crate) struct ServerLauncher {
    registry: Registry,
    seeds: Mutex<Seeds>,
}

impl ServerLauncher {
    pub(crate) fn new(registry: Registry) -> Self {
        Self { registry, seeds: Mutex::new(Seeds::random()) }
    }
}

impl Launcher for ServerLauncher {
    fn variable(&self, name: &str, source: ServerSource) -> Result<Option<String>, String> {
        let components = self.registry.shared().components();
        let is_key = components.settings.key_variables.iter().any(|variable| variable == name);
        if source == ServerSource::Project && (is_key || name.starts_with("AGENTD_")) {
            return Err(format!(
                "a project may not use the variable {name}; add the server to your own configuration if it needs it"
            ));
        }
        Ok(std::env::var(name).ok())
    }

    fn launch(&self, program: ServerProgram) -> BoxFuture<'static, Result<LaunchedProcess, String>> {
        let shared = self.registry.shared();
        let (tools, now) = (shared.components().tools.clone(), shared.clock.now());
        let mut mint = Mint::new(now.0, lock(&self.seeds).next_seed());
        let launch = ServerLaunch { program, mark: mint.call(), temp_owner: mint.session() };
        Box::pin(async move {
            let (server, streams) = tools.launch_server(launch).await?;
            Ok(LaunchedProcess {
                stdin: Box::new(streams.stdin),
                stdout: Box::new(streams.stdout),
                stderr: Box::new(streams.stderr),
                process: Box::new(Process(server)),
            })
        })
    }
}

struct Process(RunningServer);

impl ServerProcess for Process {
    fn wait(&mut self) -> BoxFuture<'_, String> {
        Box::pin(self.0.wait())
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(self.0.end())
    }
}
