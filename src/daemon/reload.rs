//! Reloads the configuration while the daemon runs. An invalid configuration changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use super::config::{self, Changes, Config, ConfigError};
use super::error::DaemonError;
use super::wiring::HostFacts;
use crate::paths::DaemonPaths;
use crate::{notifier, telemetry, wiring};
use api::params::{LastReload, ReloadReply};
use jobs::JobSettings;
use knowledge::registry::Indexes;
use rpc::{ConfigRefusal, ConfigState, ConfigValues};
use session::{Registry, Reloaded};
use transport::RunningServer;
use types::time::Clock;

/// The values from the start that a reload needs.
pub(super) struct Reloader {
    /// The value of `--config`.
    pub flag: Option<PathBuf>,
    pub places: DaemonPaths,
    pub host: HostFacts,
    pub registry: Registry,
    pub indexes: Indexes,
    pub index_services: Arc<wiring::IndexServices>,
    pub clock: Arc<dyn Clock>,
    pub at_start: Config,
    pub in_force: Config,
    pub state: watch::Sender<ConfigState>,
    /// Values that did not come from a file.
    pub overrides: [config::Override; 2],
    /// The notification channels.
    pub notifier: watch::Sender<notifier::NotifyChannels>,
    /// `[jobs]`: how many run, and who is told of them.
    pub jobs: watch::Sender<JobSettings>,
}

impl Reloader {
    /// Reads the files and applies the values to the log, and to all models, tools, rules, sessions and
    /// connections that start later.
    ///
    /// # Errors
    /// The configuration is invalid and nothing has changed. The error is logged and shown by `daemon.status`.
    pub async fn reload(&mut self, serving: &RunningServer) -> Result<ReloadReply, ConfigRefusal> {
        let at_ms = self.clock.now();
        let (config, channels, reply) = match self.load_configuration().await {
            Ok(taken) => taken,
            Err(error) => {
                let refused = config_refusal(error);
                tracing::error!(error = %refused.message, "the new configuration is invalid; the current one stays in force");
                self.state.send_modify(|state| {
                    let needs_restart =
                        state.last_reload.take().map(|last| last.needs_restart).unwrap_or_default();
                    let error = Some(refused.message.clone());
                    state.last_reload = Some(LastReload { at_ms, error, needs_restart });
                });
                return Err(refused);
            }
        };
        serving.set_limits(config.limits.transport_limits());
        telemetry::set_level(config.daemon.log);
        self.notifier.send_replace(channels);
        self.jobs.send_replace(config.jobs.clone());
        self.state.send_replace(ConfigState {
            files: files(&config),
            values: values(config.clone(), self.at_start.clone(), self.overrides.clone()),
            last_reload: Some(LastReload { at_ms, error: None, needs_restart: reply.needs_restart.clone() }),
        });
        self.in_force = config;
        tracing::info!(changed = ?reply.changed, needs_restart = ?reply.needs_restart, "reloaded the configuration");
        Ok(reply)
    }

    async fn load_configuration(
        &self,
    ) -> Result<(Config, notifier::NotifyChannels, ReloadReply), DaemonError> {
        let env = base::proc::variable;
        let config = Config::load(&env, self.flag.clone())?;
        let channels = notifier::NotifyChannels::from_config(&config)?;
        let host = self.host.clone().with_sandboxes(&config).await;
        let components = wiring::components(&config, &self.places, &host, Some(&self.indexes))?;
        let Changes { at_once: changed, after_restart: needs_restart } =
            Changes::between(&self.at_start, &self.in_force, &config);
        self.index_services.reload(&config)?;
        self.indexes.settings_changed();
        // Reload even if no key has changed, because a key file may contain a new secret.
        let reloaded = Reloaded {
            changed: changed.clone(),
            needs_restart: needs_restart.clone(),
            files: files(&config),
        };
        self.registry.reload(components, &reloaded).await;
        Ok((config, channels, ReloadReply { changed, needs_restart }))
    }
}

/// The paths of the configuration files, for display.
pub(super) fn files(config: &Config) -> Vec<String> {
    config.files.iter().map(|file| file.display().to_string()).collect()
}

/// The effective values with their origins. Keys that are read only at the start keep their old values
/// until the daemon restarts.
pub(super) fn values(
    config: Config,
    at_start: Config,
    overrides: [config::Override; 2],
) -> Arc<ConfigValues> {
    let list = move || {
        let mut values = config::list(&at_start, &overrides);
        values.retain(|row| config::is_read_at_start(&row.key));
        let now = config::list(&config, &overrides);
        values.extend(now.into_iter().filter(|row| !config::is_read_at_start(&row.key)));
        // Use a stable sort, so that the rules of the files keep their order.
        values.sort_by(|one, other| one.key.cmp(&other.key));
        values
    };
    Arc::new(ConfigValues::new(Box::new(list)))
}

fn config_refusal(error: DaemonError) -> ConfigRefusal {
    let message = error.to_string();
    match error {
        DaemonError::Config(ConfigError { file, line, .. }) => {
            ConfigRefusal { file: file.map(|file| file.display().to_string()), line, message }
        }
        _ => ConfigRefusal { file: None, line: None, message },
    }
}
