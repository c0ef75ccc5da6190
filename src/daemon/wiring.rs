//! The configuration handed out: each floor gets the small settings it asked for.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::config::{Config, ProviderKind};
use super::error::DaemonError;
use super::places::Places;
use crate::engine;
use crate::judge::Rules;
use crate::model::{self, Key, Kind, ModelError, ModelSettings, Models};
use crate::session::{Settings, Setup};
use crate::tools::{self, Toolbox};
use crate::types::model::ModelRef;
use crate::types::permission::Mode;
use crate::types::usage::Budgets;

/// No byte from a model for this long drops the stream (Q29).
const IDLE: Duration = Duration::from_secs(90);
const CONNECT: Duration = Duration::from_secs(15);

/// What a start finds out before it reads what tools may do; empty where nothing will run.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Names this daemon in its processes, now and at its next start.
    pub instance: String,
    /// Open files that it was started with, soft and hard.
    pub open_files: Option<(u64, u64)>,
}

/// Everything that the configuration says, ready for use. Nothing is changed by making it: a reload
/// tries it first.
///
/// # Errors
/// Something that parses and yet cannot be: file, line and key are told.
pub(super) fn setup(config: &Config, places: &Places, found: &Found) -> Result<Setup, DaemonError> {
    let models = models(config)?;
    if let Some(main) = &config.models.main {
        check_model(config, main)?;
    }
    let tools = Toolbox::new(tools::Settings {
        protected: protected(places, &config.files),
        env_allow: config.tools.env.clone(),
        bash_timeout_ms: millis(config.tools.bash_timeout.0),
        bash_timeout_max_ms: millis(config.tools.bash_timeout_max.0),
        edit_requires_read: config.tools.edit_requires_read,
        instance: found.instance.clone(),
        limits: limits(config, found.open_files),
        cgroup: config.tools.cgroup.setting(),
        ..tools::Settings::new(places.home.clone())
    });
    let permissions = &config.permissions;
    let rules = Rules::parse(&permissions.allow, &permissions.ask, &permissions.deny)
        .map_err(|error| config.wrong(&["permissions"], format!("[permissions]: {error}")))?;
    let bypass = bypass(config, nix::unistd::geteuid().is_root());
    check_mode(config, &bypass)?;
    let settings = Settings {
        engine: Arc::new(engine::Settings {
            retry_attempts: config.retry.attempts.max(1),
            retry_base_ms: config.retry.base_ms,
            retry_max_ms: config.retry.max_ms,
            max_resumes: config.retry.resumes,
            resume_base_ms: config.retry.resume_base_ms,
            on_restart: config.daemon.on_restart,
            parallel_tools: config.tools.parallel,
            tools: tools.cards(),
        }),
        rules: Arc::new(rules),
        home: places.home.clone(),
        user_dir: Some(places.config_dir.clone()),
        main_model: config.models.main.clone(),
        mode: config.session.mode,
        safe_mode: config.session.safe_mode,
        safe_commands: config.permissions.safe_commands,
        bypass,
        budgets: budgets(config),
        idle_unload: config.limits.idle_unload(),
        loaded_sessions: config.limits.loaded_sessions(),
    };
    Ok(Setup { models, tools, settings })
}

/// A mode that every session would be refused with is refused here, where it is written.
fn check_mode(config: &Config, bypass: &Result<(), String>) -> Result<(), DaemonError> {
    let wrong = |why: &str| {
        let name = config.session.mode.name();
        let why = format!("[session] mode = {name:?}: {why}");
        Err(config.wrong(&["session", "mode"], why).into())
    };
    match (config.session.mode, bypass) {
        (Mode::Plan, _) => wrong("plan mode is not built yet"),
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
                (None, Some(file), _) => Key::File(file.clone()),
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
                ..model::Provider::new(kind)
            };
            (name.clone(), made)
        })
        .collect();
    let known = config
        .model
        .iter()
        .map(|(name, given)| {
            let default = ModelSettings::default();
            let made = ModelSettings {
                context_window: given.context_window,
                max_output_tokens: given.max_output_tokens,
                tools: given.tools.unwrap_or(default.tools),
                streaming: given.streaming.unwrap_or(default.streaming),
                system_role: given.system_role.unwrap_or(default.system_role),
                price: given.price,
                thinking: given.thinking.unwrap_or(default.thinking),
                vision: given.vision.unwrap_or(default.vision),
            };
            (name.clone(), made)
        })
        .collect();
    let settings = model::Settings {
        providers,
        models: known,
        user_agent: concat!("agentd/", env!("CARGO_PKG_VERSION")).into(),
        connect_timeout: CONNECT,
        idle_timeout: IDLE,
    };
    Models::new(settings).map_err(|error| {
        let path = match &error {
            ModelError::BadBaseUrl { provider, .. } => vec!["providers", provider, "base_url"],
            ModelError::BadHeader { provider, header } => vec!["providers", provider, "headers", header],
            ModelError::NoCassette { provider } => vec!["providers", provider],
            ModelError::MisplacedCassette { provider } => vec!["providers", provider, "cassette"],
            ModelError::MisplacedStore { provider } => vec!["providers", provider, "store"],
        };
        config.wrong(&path, error.to_string()).into()
    })
}

fn check_model(config: &Config, text: &str) -> Result<(), DaemonError> {
    let wrong = |why: String| -> DaemonError {
        config.wrong(&["models", "main"], format!("[models] main = {text:?}: {why}")).into()
    };
    let model: ModelRef = text.parse().map_err(|why: &str| wrong(why.into()))?;
    if config.providers.contains_key(&model.provider) {
        return Ok(());
    }
    let known: Vec<&str> = config.providers.keys().map(String::as_str).collect();
    Err(wrong(format!("there is no [providers.{}]; configured: {}", model.provider, known.join(", "))))
}

/// What no tool may write: the daemon's folders, and the configuration wherever it lies (P4).
fn protected(places: &Places, config_files: &[PathBuf]) -> Vec<PathBuf> {
    let mut protected = vec![places.config_dir.clone(), places.data_dir.clone()];
    protected.extend_from_slice(config_files);
    if let Some(folder) = places.socket.parent() {
        protected.push(folder.to_path_buf());
    }
    // As files are judged: by the object, not by the spelling.
    protected.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect()
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

fn budgets(config: &Config) -> Budgets {
    let given = &config.session.budgets;
    Budgets {
        usd_micros: given.usd.map(|usd| (usd.max(0.0) * 1e6).round() as u64),
        model_calls: given.model_calls,
        output_tokens: given.output_tokens,
        wall_time_ms: given.wall_time.map(|span| millis(span.0)),
    }
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
    fn the_configuration_is_protected_wherever_it_lies() {
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
    fn a_mode_that_every_session_would_be_refused_with_is_named() {
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
        check(Mode::Plan, Ok(()), Some("not built yet"));
        check(Mode::Bypass, Ok(()), None);
        check(Mode::Bypass, Err("set it".into()), Some("set it"));
    }

    #[test]
    fn bypass_needs_the_configuration_and_root_needs_it_twice() {
        let mut config = Config::default();
        assert!(bypass(&config, false).is_err());
        config.permissions.allow_bypass = true;
        assert!(bypass(&config, false).is_ok());
        assert!(bypass(&config, true).is_err());
        config.permissions.allow_bypass_as_root = true;
        assert!(bypass(&config, true).is_ok());
    }
}
