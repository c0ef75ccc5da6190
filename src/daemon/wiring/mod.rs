//! Distributes the configuration: each layer gets the settings struct that the layer defines.

mod jobs;
mod knowledge;
mod mcp;
mod models;
mod sandbox;

pub(super) use knowledge::IndexServices;
pub(super) use mcp::ServerLauncher;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;
use crate::error::DaemonError;
use crate::orphans;
use crate::paths::DaemonPaths;
use crate::wiring::models::{check_model, check_retry, compaction, model_catalog, models, title_model};
use crate::wiring::sandbox::{
    check_bypass, check_sandbox, check_web_proxy, protected_paths, sandbox, web_allowed_private,
};
use ::knowledge::registry::Indexes;
use judge::Rules;
use model::Models;
use project::hooks::configured_hooks;
use session::{Components, ConfiguredRule, Settings};
use tools::{KNOWLEDGE_SEARCH, LevelSetting, NetworkSetting, Toolbox};
use types::ablation::Ablation;
use types::permission::{Mode, RuleScope};
use types::subagent::TASK;
use types::tool::ToolDefinition;

/// Facts about the host that are collected at the start. Empty if no tool will run.
#[derive(Clone, Debug, Default)]
pub(super) struct HostFacts {
    /// Id of this daemon that marks its processes, and stays the same at the next start.
    pub instance: String,
    /// Original soft and hard limits of open files.
    pub open_files: Option<(u64, u64)>,
    /// The sandboxes that work on this host. They are detected only if the configuration depends on one
    /// at the start.
    pub sandboxes: Option<&'static tools::AvailableLevels>,
}

impl HostFacts {
    /// Detects the sandboxes if the configuration depends on one (level, network off, `bypass`). Such a
    /// configuration is invalid if that sandbox does not work.
    pub async fn with_sandboxes(self, config: &Config) -> Self {
        let asks = matches!(config.sandbox.level, LevelSetting::Bubblewrap | LevelSetting::Landlock)
            || config.sandbox.network == NetworkSetting::Off
            || config.permissions.allow_bypass;
        let sandboxes = if asks { Some(tools::AvailableLevels::probe_once().await) } else { None };
        Self { sandboxes, ..self }
    }
}

/// The folder for worktrees, without links, as calls of tools name it.
fn worktrees_dir(places: &DaemonPaths) -> PathBuf {
    places.data_dir.canonicalize().unwrap_or_else(|_| places.data_dir.clone()).join("worktrees")
}

/// Builds all components from the configuration. This has no side effects, so a reload can build them
/// before it changes anything.
///
/// # Errors
/// A value parses correctly but cannot work. The error names file, line and key.
pub(super) fn components(
    config: &Config,
    places: &DaemonPaths,
    host: &HostFacts,
    indexes: Option<&Indexes>,
) -> Result<Components, DaemonError> {
    let models = models(config)?;
    knowledge::settings(config)?;
    check_models(config)?;
    check_retry(config)?;
    jobs::check_jobs(config)?;
    let sandbox = sandbox(config, places, &host.instance);
    check_sandbox(config, &sandbox, host)?;
    let web_allowed_private = web_allowed_private(config)?;
    check_web_proxy(config)?;
    let tools = Toolbox::new(tools::Settings {
        sandbox: sandbox.clone(),
        protected: protected_paths(places, &config.files),
        config: config.tools.clone(),
        instance: host.instance.clone(),
        socket: Some(places.socket.clone()),
        open_files: host.open_files,
        converter: Some(base::proc::own_program()),
        web_allowed_private,
        spool_folder: Some(places.data_dir.join("blobs")),
        undo_folder: Some(places.data_dir.join(orphans::UNDO_FOLDER)),
        worktrees: Some(worktrees_dir(places)),
        knowledge: indexes.cloned(),
        ..tools::Settings::new(places.home.clone())
    });
    let is_root = nix::unistd::geteuid().is_root();
    let held = |here| sandbox.least_level(here) >= 2;
    let bypass = check_bypass(config, is_root && !host.sandboxes.is_some_and(held));
    check_mode(config, &bypass)?;
    let settings =
        session_settings(config, places, engine_settings(config, &models, &tools)?, &tools, bypass)?;
    Ok(Components { models, tools, settings })
}

/// Checks that each model of `[models]` has a provider.
fn check_models(config: &Config) -> Result<(), DaemonError> {
    for (pointer, model) in config.models.all() {
        if let Some(model) = model {
            check_model(config, pointer, model)?;
        }
    }
    for (alias, model) in &config.models.aliases {
        check_model(config, &format!("aliases.{alias}"), model)?;
    }
    Ok(())
}

fn engine_settings(
    config: &Config,
    models: &Models,
    tools: &Toolbox,
) -> Result<engine::Settings, DaemonError> {
    Ok(engine::Settings {
        retry: config.retry,
        models: config.models.clone(),
        quick: title_model(config, models),
        known: model_catalog(models),
        output_tokens: config.session.output_tokens.get(),
        repeat_limit: config.session.repeat_limit,
        on_restart: config.daemon.on_restart,
        parallel_tools: config.tools.parallel,
        background_commands: config.tools.background_commands,
        subagents: if config.limits.subagent_depth() == 0 { 0 } else { config.limits.subagents() },
        result_bytes: usize::try_from(config.tools.max_result_size.0).unwrap_or(usize::MAX),
        results_bytes: usize::try_from(config.tools.max_results_total.0).unwrap_or(usize::MAX),
        tools: offered_tools(config, tools),
        tool_search: Some(tools.tool_search_definition()),
        unattended: config.permissions.unattended.clone(),
        offer_unsandboxed_retry: config.sandbox.offer_unsandboxed_retry,
        compaction: compaction(config)?,
    })
}

/// The settings of sessions. `bypass` says why the mode `bypass` is not allowed.
fn session_settings(
    config: &Config,
    places: &DaemonPaths,
    engine: engine::Settings,
    tools: &Toolbox,
    bypass: Result<(), String>,
) -> Result<Settings, DaemonError> {
    let permissions = &config.permissions;
    let rules = Rules::parse(&permissions.allow, &permissions.ask, &permissions.deny)
        .map_err(|error| config.key_error(&["permissions"], format!("[permissions]: {error}")))?;
    let engine_with_index =
        engine::Settings { tools: with_index_search(&engine.tools, tools), ..engine.clone() };
    let hooks = configured_hooks(&config.hooks)
        .map_err(|error| config.key_error(&["hooks"], format!("[hooks]: {error}")))?;
    Ok(Settings {
        engine: Arc::new(engine),
        engine_with_index: Arc::new(engine_with_index),
        mcp: mcp::servers(config)?,
        key_variables: mcp::key_variables(config),
        rules: Arc::new(rules),
        configured: configured_rules(config),
        hooks: hooks.hooks.into(),
        hook_failures: hooks.on_failure,
        home: places.home.clone(),
        user_dir: Some(places.config_dir.clone()),
        config_files: config.files.clone(),
        reports_dir: places.data_dir.join("reports"),
        memory_dir: places.data_dir.join("memory"),
        worktrees_dir: worktrees_dir(places),
        main_model: config.models.main.clone(),
        mode: config.session.mode,
        thinking: config.session.thinking,
        safe_mode: config.session.safe_mode,
        ablation: if config.session.simple { Ablation::ALL } else { config.session.ablation },
        has_fixed_ablation: config.is_set_by_variable("session.simple"),
        binary_feedback: config.session.binary_feedback,
        safe_commands: config.permissions.safe_commands,
        bypass,
        bypass_guard: config.permissions.bypass_guard,
        budgets: config.session.budgets.into(),
        idle_unload: config.limits.idle_unload(),
        subagent_depth: config.limits.subagent_depth(),
        loaded_sessions: config.limits.loaded_sessions(),
        journal_bytes: config.limits.journal_size(),
        delete_ended_after: config.limits.delete_ended_after.map(|span| span.0),
    })
}

/// The tools that sessions offer. `Task` is omitted without sub-agents, and the search tool without an index.
fn offered_tools(config: &Config, tools: &Toolbox) -> Arc<[ToolDefinition]> {
    let has_subagents = config.limits.subagents() > 0 && config.limits.subagent_depth() > 0;
    let is_offered =
        |card: &&ToolDefinition| (has_subagents || card.name != TASK) && card.name != KNOWLEDGE_SEARCH;
    tools.definitions().iter().filter(is_offered).cloned().collect()
}

/// The tools of sessions whose workspace has an index.
fn with_index_search(offered: &Arc<[ToolDefinition]>, tools: &Toolbox) -> Arc<[ToolDefinition]> {
    let definitions = tools.definitions();
    let search = definitions.iter().filter(|tool| tool.name == KNOWLEDGE_SEARCH);
    offered.iter().chain(search).cloned().collect()
}

/// Reports a default mode that every session would refuse as an error of the configuration file.
fn check_mode(config: &Config, bypass: &Result<(), String>) -> Result<(), DaemonError> {
    let wrong = |why: &str| {
        let name = config.session.mode.name();
        let why = format!("[session] mode = {name:?}: {why}");
        Err(config.key_error(&["session", "mode"], why).into())
    };
    match (config.session.mode, bypass) {
        (Mode::Bypass, Err(why)) => wrong(why),
        _ => Ok(()),
    }
}

/// The telemetry receiver; `None` if telemetry is off.
///
/// # Errors
/// The settings cannot work, or the environment variable of a header is not set.
pub(super) fn telemetry(
    config: &Config,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<Option<otel::Settings>, DaemonError> {
    let section = &config.telemetry;
    let Some(endpoint) = section.endpoint.clone() else { return Ok(None) };
    let mut headers = section.headers.clone();
    for (header, name) in &section.headers_env {
        let value = env(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            let why = format!("[telemetry] headers_env: {name} is not set in the daemon's environment");
            config.key_error(&["telemetry", "headers_env"], why)
        })?;
        headers.insert(header.clone(), value);
    }
    let settings = otel::Settings { endpoint, headers, service_name: section.service_name.clone() };
    otel::Exporter::check(&settings)
        .map_err(|why| config.key_error(&["telemetry"], format!("[telemetry]: {why}")))?;
    Ok(Some(settings))
}

/// The system's file belongs to the administrator; all others belong to the user.
fn configured_rules(config: &Config) -> Arc<[ConfiguredRule]> {
    let managed = Path::new(api::endpoint::SYSTEM_CONFIG);
    let of = |(file, kind, rule): (&Path, _, String)| {
        let scope = if file == managed { RuleScope::Managed } else { RuleScope::User };
        ConfiguredRule { kind, rule, scope, file: file.to_path_buf() }
    };
    config.rules().into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_file_is_protected_at_any_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let file = root.join("my.toml");
        std::fs::write(&file, "").expect("written");
        let places = DaemonPaths {
            home: root.join("home"),
            data_dir: root.join("data"),
            socket: root.join("run/agentd.sock"),
            config_dir: root.join("home/.config/agentd"),
        };
        let protected = protected_paths(&places, &[root.join("data/../my.toml"), file.clone()]);
        assert!(protected.contains(&file), "{protected:?}");
    }

    #[test]
    fn web_fetch_ranges_are_validated_in_configuration() {
        let mut config = Config::default();
        assert_eq!(web_allowed_private(&config).expect("right"), tools::AddressRanges::default());
        config.tools.web_allowed_private = vec!["10.0.0.0/8".into(), "intranet".into()];
        let error_text = web_allowed_private(&config).expect_err("no address").to_string();
        assert!(
            error_text.contains("web_allowed_private") && error_text.contains("intranet"),
            "{error_text}"
        );
        config.tools.web_proxy = Some("proxy:secret@x".into());
        let error_text = check_web_proxy(&config).expect_err("no url").to_string();
        assert!(error_text.contains("web_proxy") && !error_text.contains("secret"), "{error_text}");
        config.tools.web_proxy = Some("http://x:1".into());
        check_web_proxy(&config).expect("right");
    }

    #[test]
    fn unusable_default_mode_is_refused_in_configuration() {
        let check = |mode, bypass: Result<(), String>, word: Option<&str>| {
            let mut config = Config::default();
            config.session.mode = mode;
            let error_text = check_mode(&config, &bypass).err().map(|error| error.to_string());
            match word {
                Some(word) => {
                    assert!(error_text.as_ref().is_some_and(|text| text.contains(word)), "{error_text:?}")
                }
                None => assert_eq!(error_text, None),
            }
        };
        check(Mode::Default, Err("no".into()), None);
        check(Mode::Plan, Ok(()), None);
        check(Mode::Bypass, Ok(()), None);
        check(Mode::Bypass, Err("set it".into()), Some("set it"));
    }

    #[test]
    fn bypass_requires_configuration_and_second_key_for_root() {
        let mut config = Config::default();
        assert!(check_bypass(&config, false).is_err());
        config.permissions.allow_bypass = true;
        assert!(check_bypass(&config, false).is_ok());
        assert!(check_bypass(&config, true).is_err());
        config.permissions.allow_bypass_as_root = true;
        assert!(check_bypass(&config, true).is_ok());
    }
}
