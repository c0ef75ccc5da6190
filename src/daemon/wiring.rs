//! Distributes the configuration: each layer gets the small settings struct that it defines.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::config::{Config, Network, OnRateLimit, ProviderKind, SandboxLevel};
use super::error::DaemonError;
use crate::daemon::paths::Places;
use crate::engine;
use crate::judge::Rules;
use crate::model::{self, Key, Kind, ModelError, ModelFacts, Models};
use crate::session::{Components, ConfiguredRule, Settings};
use crate::tools::{self, SpoolSettings, Toolbox};
use crate::types::model::ModelRef;
use crate::types::permission::{Mode, RuleScope};
use crate::types::tool::OfferUnsandboxedRetry;
use crate::types::usage::Budgets;

/// Time limit for connecting to a provider.
const CONNECT: Duration = Duration::from_secs(15);

/// Facts on the host that the start collects. Empty if no tool will run.
#[derive(Clone, Debug, Default)]
pub(super) struct HostFacts {
    /// Id of this daemon in its processes, the same at the next start.
    pub instance: String,
    /// Original soft and hard limits of open files.
    pub open_files: Option<(u64, u64)>,
    /// The sandboxes that work on this host. They are checked only if the configuration requires it at the
    /// start.
    pub sandboxes: Option<&'static tools::Available>,
}

impl HostFacts {
    /// Detects the sandboxes if the configuration depends on one (level, network off, `bypass`): it is invalid
    /// if that sandbox does not work.
    pub async fn with_sandboxes(self, config: &Config) -> Self {
        let asks = matches!(config.sandbox.level, SandboxLevel::Bubblewrap | SandboxLevel::Landlock)
            || config.sandbox.network == Network::Off
            || config.permissions.allow_bypass;
        let sandboxes = if asks { Some(tools::Available::here().await) } else { None };
        Self { sandboxes, ..self }
    }
}

/// Builds all components from the configuration. This has no side effects, so a reload can try it first.
///
/// # Errors
/// A value parses but cannot work. The error names file, line and key.
pub(super) fn components(
    config: &Config,
    places: &Places,
    found: &HostFacts,
) -> Result<Components, DaemonError> {
    let models = models(config)?;
    for (pointer, model) in config.models.all() {
        if let Some(model) = model {
            check_model(config, pointer, model)?;
        }
    }
    check_retry(config)?;
    let sandbox = sandbox(config, places, &found.instance);
    check_sandbox(config, &sandbox, found)?;
    let tools = Toolbox::new(tools::Settings {
        sandbox: sandbox.clone(),
        protected: protected(places, &config.files),
        env_allow: config.tools.env.clone(),
        bash_timeout_ms: millis(config.tools.bash_timeout.0),
        bash_timeout_max_ms: millis(config.tools.bash_timeout_max.0),
        background_timeout: config.tools.background_timeout.0,
        edit_requires_read: config.tools.edit_requires_read,
        instance: found.instance.clone(),
        socket: Some(places.socket.clone()),
        limits: limits(config, found.open_files),
        cgroup: config.tools.cgroup.setting(),
        // The running program, even after its file was replaced.
        converter: Some(PathBuf::from("/proc/self/exe")),
        web_allowed_private: web_allowed_private(config)?,
        web_proxy: web_proxy(config)?,
        spools: Some(SpoolSettings {
            folder: places.data_dir.join("blobs"),
            call_bytes: config.tools.max_spool_size.0,
            total_bytes: config.tools.max_spool_total.0,
        }),
        ..tools::Settings::new(places.home.clone())
    });
    let permissions = &config.permissions;
    let rules = Rules::parse(&permissions.allow, &permissions.ask, &permissions.deny)
        .map_err(|error| config.wrong(&["permissions"], format!("[permissions]: {error}")))?;
    let is_root = nix::unistd::geteuid().is_root();
    let held = |here| sandbox.least_level(here) >= 2;
    let bypass = bypass(config, is_root && !found.sandboxes.is_some_and(held));
    check_mode(config, &bypass)?;
    let settings = Settings {
        engine: Arc::new(engine::Settings {
            retry: retry(config),
            stand_ins: stand_ins(config),
            quick: quick(config, &models),
            known: known(&models),
            output_tokens: config.session.output_tokens.get(),
            max_resumes: config.retry.resumes,
            resume_base_ms: config.retry.resume_base_ms,
            on_restart: config.daemon.on_restart,
            parallel_tools: config.tools.parallel,
            background_commands: config.tools.background_commands,
            result_bytes: usize::try_from(config.tools.max_result_size.0).unwrap_or(usize::MAX),
            results_bytes: usize::try_from(config.tools.max_results_total.0).unwrap_or(usize::MAX),
            tools: tools.cards(),
            unattended: unattended(config),
            offer_unsandboxed_retry: offer_unsandboxed_retry(config),
        }),
        rules: Arc::new(rules),
        configured: configured(config),
        home: places.home.clone(),
        user_dir: Some(places.config_dir.clone()),
        main_model: config.models.main.clone(),
        pointers: config.models.all().map(|(name, model)| (name, model.clone())).into(),
        mode: config.session.mode,
        thinking: config.session.thinking,
        safe_mode: config.session.safe_mode,
        safe_commands: config.permissions.safe_commands,
        bypass,
        bypass_guard: config.permissions.bypass_guard,
        budgets: budgets(config),
        unattended_budgets: unattended_budgets(config),
        unattended_usd_is_default: config.permissions.unattended.usd.is_none(),
        idle_unload: config.limits.idle_unload(),
        loaded_sessions: config.limits.loaded_sessions(),
        journal_bytes: config.limits.journal_size(),
        delete_ended_after: config.limits.delete_ended_after.map(|span| span.0),
    };
    Ok(Components { models, tools, settings })
}

fn web_allowed_private(config: &Config) -> Result<tools::Ranges, DaemonError> {
    tools::Ranges::parse(&config.tools.web_allowed_private).map_err(|error| {
        config
            .wrong(&["tools", "web_allowed_private"], format!("[tools] web_allowed_private: {error}"))
            .into()
    })
}

fn web_proxy(config: &Config) -> Result<Option<String>, DaemonError> {
    match &config.tools.web_proxy {
        Some(proxy) if !["http://", "https://"].iter().any(|scheme| proxy.starts_with(scheme)) => {
            // Do not repeat the value: it may contain a password.
            let why = "[tools] web_proxy: expected a url like http://proxy.example:3128";
            Err(config.wrong(&["tools", "web_proxy"], why.to_owned()).into())
        }
        proxy => Ok(proxy.clone()),
    }
}

/// Reports a default mode that every session would refuse as an error of the configuration file.
fn check_mode(config: &Config, bypass: &Result<(), String>) -> Result<(), DaemonError> {
    let wrong = |why: &str| {
        let name = config.session.mode.name();
        let why = format!("[session] mode = {name:?}: {why}");
        Err(config.wrong(&["session", "mode"], why).into())
    };
    match (config.session.mode, bypass) {
        (Mode::Bypass, Err(why)) => wrong(why),
        _ => Ok(()),
    }
}

fn models(config: &Config) -> Result<Models, DaemonError> {
    let providers = config
        .providers
        .iter()
        .map(|(name, provider)| {
            let key = match (&provider.api_key_env, &provider.api_key_file, &provider.api_key_command) {
                (Some(variable), _, _) => Key::Env(variable.clone()),
                (None, Some(file), _) => match provider.credential() {
                    Some(name) => Key::Credential(name.to_owned()),
                    None => Key::File(file.clone()),
                },
                (None, None, Some(command)) => Key::Command(command.clone()),
                (None, None, None) => Key::None,
            };
            let kind = match provider.kind {
                ProviderKind::Anthropic => Kind::Anthropic,
                ProviderKind::OpenaiResponses => Kind::OpenAiResponses,
                ProviderKind::OpenaiChat => Kind::OpenAiChat,
                ProviderKind::Replay => Kind::Replay,
            };
            let made = model::Provider {
                base_url: provider.base_url.clone(),
                key,
                headers: provider.headers.clone(),
                cassette: provider.cassette.clone(),
                record: provider.record.clone(),
                store: provider.store,
                api_version: provider.api_version.clone(),
                ..model::Provider::new(kind)
            };
            (name.clone(), made)
        })
        .collect();
    let known = config
        .model
        .iter()
        .map(|(name, given)| {
            let made = ModelFacts {
                context_window: given.context_window,
                max_output_tokens: given.max_output_tokens,
                tools: given.tools,
                streaming: given.streaming,
                system_role: given.system_role,
                price: given.price,
                thinking: given.thinking,
                adaptive_thinking: given.adaptive_thinking,
                interleaved_thinking: given.interleaved_thinking,
                min_effort: given.min_effort.clone(),
                sampling: given.sampling,
                temperature: given.temperature,
                top_p: given.top_p,
                replay_reasoning: given.replay_reasoning,
                vision: given.vision,
                documents: given.documents,
                as_of: None,
            };
            (name.clone(), made)
        })
        .collect();
    let settings = model::Settings {
        providers,
        models: known,
        user_agent: concat!("agentd/", env!("CARGO_PKG_VERSION")).into(),
        cache: config.session.response_cache,
        connect_timeout: CONNECT,
        idle_warn: config.retry.idle_warn.0,
        idle_timeout: config.retry.idle_timeout.0,
        content_timeout: config.retry.content_timeout.0,
        attempt_timeout: config.retry.attempt_timeout.0,
    };
    Models::new(settings).map_err(|error| {
        let path = match &error {
            ModelError::BadBaseUrl { provider, .. } => vec!["providers", provider, "base_url"],
            ModelError::BadHeader { provider, header } => vec!["providers", provider, "headers", header],
            ModelError::NoCassette { provider } => vec!["providers", provider],
            ModelError::MisplacedCassette { provider } => vec!["providers", provider, "cassette"],
            ModelError::MisplacedStore { provider } => vec!["providers", provider, "store"],
            ModelError::BadApiVersion { provider } => vec!["providers", provider, "api_version"],
        };
        config.wrong(&path, error.to_string()).into()
    })
}

fn retry(config: &Config) -> engine::Retry {
    let given = &config.retry;
    engine::Retry {
        attempts: given.attempts.max(1),
        base_ms: given.base_ms,
        max_ms: given.max_ms,
        unattended_max_ms: given.unattended_max_ms,
        max_retry_after_ms: millis(given.max_retry_after.0),
        heartbeat_ms: millis(given.heartbeat.0),
        on_rate_limit: match given.on_rate_limit {
            OnRateLimit::Wait => engine::OnRateLimit::Wait,
            OnRateLimit::Backup => engine::OnRateLimit::Backup,
        },
    }
}

fn stand_ins(config: &Config) -> engine::FallbackModels {
    let given = &config.models;
    engine::FallbackModels {
        fallback: given.fallback.clone(),
        backup: given.backup.clone(),
        large_context: given.large_context.clone(),
        vision: given.vision.clone(),
    }
}

/// Without the pointer there is no title model, so the daemon never calls a model that the user did not
/// configure.
fn quick(config: &Config, models: &Models) -> Option<engine::TitleModel> {
    let model = config.models.quick.clone()?;
    let model_snapshot = models.model_snapshot(&model.parse::<ModelRef>().ok()?);
    Some(engine::TitleModel { model, model_snapshot })
}

/// The model data for the engine: tables only, no network.
fn known(models: &Models) -> engine::ModelCatalog {
    let models = models.clone();
    engine::ModelCatalog::from_lookup(move |name| {
        let Ok(model) = name.parse::<ModelRef>() else { return engine::ModelCapabilities::default() };
        let known = models.model(&model);
        engine::ModelCapabilities {
            context_window: known.context_window,
            max_output_tokens: known.max_output_tokens,
            sees: models.sees(&model),
            has_price: known.price.is_some(),
        }
    })
}

/// Reports retry times that make every call fail or send endless events as errors of the configuration file.
fn check_retry(config: &Config) -> Result<(), DaemonError> {
    let given = &config.retry;
    let times = [
        ("heartbeat", given.heartbeat),
        ("idle_warn", given.idle_warn),
        ("idle_timeout", given.idle_timeout),
        ("content_timeout", given.content_timeout),
        ("attempt_timeout", given.attempt_timeout),
    ];
    match times.iter().find(|(_, span)| span.0.is_zero()) {
        None if given.on_rate_limit == OnRateLimit::Backup && config.models.backup.is_none() => {
            let why =
                "[retry] on_rate_limit = \"backup\" needs [models] backup = \"PROVIDER/MODEL\"".to_owned();
            Err(config.wrong(&["retry", "on_rate_limit"], why).into())
        }
        None => Ok(()),
        Some((key, _)) => {
            let why = format!("[retry] {key}: expected more than nothing, like \"30s\"");
            Err(config.wrong(&["retry", key], why).into())
        }
    }
}

fn check_model(config: &Config, pointer: &str, text: &str) -> Result<(), DaemonError> {
    let wrong = |why: String| -> DaemonError {
        config.wrong(&["models", pointer], format!("[models] {pointer} = {text:?}: {why}")).into()
    };
    let model: ModelRef = text.parse().map_err(|why: &str| wrong(why.into()))?;
    if config.providers.contains_key(&model.provider) {
        return Ok(());
    }
    let known: Vec<&str> = config.providers.keys().map(String::as_str).collect();
    Err(wrong(format!("there is no [providers.{}]; configured: {}", model.provider, known.join(", "))))
}

/// The paths that no tool may write: the daemon's folders and the configuration files.
fn protected(places: &Places, config_files: &[PathBuf]) -> Vec<PathBuf> {
    let mut protected = vec![places.config_dir.clone(), places.data_dir.clone()];
    protected.extend_from_slice(config_files);
    if let Some(folder) = places.socket.parent() {
        protected.push(folder.to_path_buf());
    }
    // Canonical paths, because files are judged by their object and not by their spelling.
    protected.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect()
}

fn offer_unsandboxed_retry(config: &Config) -> OfferUnsandboxedRetry {
    match config.sandbox.offer_unsandboxed_retry {
        None => OfferUnsandboxedRetry::Attended,
        Some(true) => OfferUnsandboxedRetry::Always,
        Some(false) => OfferUnsandboxedRetry::Never,
    }
}

fn sandbox(config: &Config, places: &Places, instance: &str) -> tools::SandboxSettings {
    let given = &config.sandbox;
    let mut hidden = protected(places, &config.files);
    // A folder that the user works in cannot be hidden, but the socket in it can.
    if let Some(folder) = places.socket.parent()
        && places.home.starts_with(folder)
    {
        hidden.retain(|path| path != folder);
        hidden.push(places.socket.clone());
    }
    let files = config.providers.values().filter(|provider| provider.credential().is_none());
    hidden.extend(files.filter_map(|provider| provider.api_key_file.clone()));
    // Where systemd stores credentials; the folder need not exist.
    hidden.extend(std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from).filter(|it| it.is_absolute()));
    // The sockets of signing agents and other services of the user's login session, if they are not in
    // `/run/user`.
    for name in ["SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"] {
        let place = std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let holds_more = |place: &Path| {
            let real = place.canonicalize().unwrap_or_else(|_| place.to_owned());
            places.home.starts_with(&real) || Path::new("/tmp").starts_with(real)
        };
        hidden.extend(place.filter(|place| !holds_more(place)));
    }
    let uid = nix::unistd::geteuid();
    tools::SandboxSettings {
        level: match given.level {
            SandboxLevel::Auto => tools::LevelSetting::Auto,
            SandboxLevel::Bubblewrap => tools::LevelSetting::Bubblewrap,
            SandboxLevel::Landlock => tools::LevelSetting::Landlock,
            SandboxLevel::Rlimits => tools::LevelSetting::Rlimits,
            SandboxLevel::Off => tools::LevelSetting::Off,
        },
        network: match given.network {
            Network::Auto => tools::NetworkSetting::Auto,
            Network::On => tools::NetworkSetting::On,
            Network::Off => tools::NetworkSetting::Off,
        },
        writable: given.writable.clone(),
        hidden,
        obeyed: [&places.config_dir, &places.data_dir].into_iter().chain(&config.files).cloned().collect(),
        offer_unsandboxed_retry: offer_unsandboxed_retry(config),
        // The same at every start, so that the next daemon finds it.
        temp: std::env::temp_dir().join(format!("agentd-{uid}-{}", instance.get(..12).unwrap_or("none"))),
    }
}

/// Reports a sandbox that would refuse every command as an error of the configuration file.
fn check_sandbox(
    config: &Config,
    sandbox: &tools::SandboxSettings,
    found: &HostFacts,
) -> Result<(), DaemonError> {
    let Some(here) = found.sandboxes else { return Ok(()) };
    sandbox.check(here).map_err(|why| {
        let key = if why.contains("network") { "network" } else { "level" };
        config.wrong(&["sandbox", key], why).into()
    })
}

fn bypass(config: &Config, is_root: bool) -> Result<(), String> {
    if !config.permissions.allow_bypass {
        return Err("bypass is not allowed here: set [permissions] allow_bypass = true".into());
    }
    if is_root && !config.permissions.allow_bypass_as_root {
        return Err("bypass is not allowed for root without a sandbox: set [permissions] \
                    allow_bypass_as_root = true if you mean it"
            .into());
    }
    Ok(())
}

/// The telemetry receiver; `None` if telemetry is off.
///
/// # Errors
/// The settings cannot work, or the environment variable of a header is not set.
#[cfg(feature = "otel")]
pub(super) fn telemetry(
    config: &Config,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<Option<crate::otel::Settings>, DaemonError> {
    let given = &config.telemetry;
    let Some(endpoint) = given.endpoint.clone() else { return Ok(None) };
    let mut headers = given.headers.clone();
    for (header, name) in &given.headers_env {
        let value = env(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            let why = format!("[telemetry] headers_env: {name} is not set in the daemon's environment");
            config.wrong(&["telemetry", "headers_env"], why)
        })?;
        headers.insert(header.clone(), value);
    }
    let settings = crate::otel::Settings { endpoint, headers, service_name: given.service_name.clone() };
    crate::otel::Exporter::check(&settings)
        .map_err(|why| config.wrong(&["telemetry"], format!("[telemetry]: {why}")))?;
    Ok(Some(settings))
}

fn budgets(config: &Config) -> Budgets {
    let given = &config.session.budgets;
    Budgets {
        usd_micros: given.usd.map(micros),
        model_calls: given.model_calls,
        output_tokens: given.output_tokens,
        wall_time_ms: given.wall_time.map(|span| millis(span.0)),
        session_usd_micros: given.session_usd.map(micros),
        session_model_calls: given.session_model_calls,
        session_output_tokens: given.session_output_tokens,
        session_wall_time_ms: given.session_wall_time.map(|span| millis(span.0)),
    }
}

fn micros(usd: f64) -> u64 {
    (usd.max(0.0) * 1e6).round() as u64
}

/// Money limit of one turn of an unattended session in US dollars, if the configuration has none.
const UNATTENDED_USD: f64 = 5.0;

fn unattended_budgets(config: &Config) -> Budgets {
    let given = &config.permissions.unattended;
    Budgets {
        usd_micros: Some(micros(given.usd.unwrap_or(UNATTENDED_USD))),
        model_calls: Some(given.model_calls.get()),
        output_tokens: Some(given.output_tokens.get()),
        wall_time_ms: Some(millis(given.wall_time.0)),
        ..Budgets::default()
    }
}

fn unattended(config: &Config) -> engine::Unattended {
    let given = &config.permissions.unattended;
    engine::Unattended {
        deadline_ms: Some(millis(given.deadline.0)).filter(|ms| *ms > 0),
        on_timeout: given.on_timeout,
    }
}

/// The system's file belongs to the administrator; all others belong to the user.
fn configured(config: &Config) -> Arc<[ConfiguredRule]> {
    let managed = Path::new(crate::api::endpoint::SYSTEM_CONFIG);
    let of = |(file, kind, rule): (&Path, _, String)| {
        let scope = if file == managed { RuleScope::Managed } else { RuleScope::User };
        ConfiguredRule { kind, rule, scope, file: file.to_path_buf() }
    };
    config.rules().into_iter().map(of).collect()
}

fn limits(config: &Config, open_files: Option<(u64, u64)>) -> tools::Limits {
    let given = &config.tools;
    tools::Limits {
        memory: given.memory.map(|size| size.0),
        processes: given.processes.map(NonZeroU64::get),
        file_size: given.file_size.map(|size| size.0),
        cpu_time: given.cpu_time.map(|span| span.0),
        open_files,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
        let places = Places {
            home: root.join("home"),
            data_dir: root.join("data"),
            socket: root.join("run/agentd.sock"),
            config_dir: root.join("home/.config/agentd"),
        };
        let protected = protected(&places, &[root.join("data/../my.toml"), file.clone()]);
        assert!(protected.contains(&file), "{protected:?}");
    }

    #[test]
    fn web_fetch_ranges_are_validated_in_configuration() {
        let mut config = Config::default();
        assert_eq!(web_allowed_private(&config).expect("right"), tools::Ranges::default());
        config.tools.web_allowed_private = vec!["10.0.0.0/8".into(), "intranet".into()];
        let told = web_allowed_private(&config).expect_err("no address").to_string();
        assert!(told.contains("web_allowed_private") && told.contains("intranet"), "{told}");
        config.tools.web_proxy = Some("proxy:secret@x".into());
        let told = web_proxy(&config).expect_err("no url").to_string();
        assert!(told.contains("web_proxy") && !told.contains("secret"), "{told}");
        config.tools.web_proxy = Some("http://x:1".into());
        assert_eq!(web_proxy(&config).expect("right").as_deref(), Some("http://x:1"));
    }

    #[test]
    fn unusable_default_mode_is_refused_in_configuration() {
        let check = |mode, bypass: Result<(), String>, word: Option<&str>| {
            let mut config = Config::default();
            config.session.mode = mode;
            let told = check_mode(&config, &bypass).err().map(|error| error.to_string());
            match word {
                Some(word) => assert!(told.as_ref().is_some_and(|told| told.contains(word)), "{told:?}"),
                None => assert_eq!(told, None),
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
        assert!(bypass(&config, false).is_err());
        config.permissions.allow_bypass = true;
        assert!(bypass(&config, false).is_ok());
        assert!(bypass(&config, true).is_err());
        config.permissions.allow_bypass_as_root = true;
        assert!(bypass(&config, true).is_ok());
    }
}
