//! Models, retries and fallbacks from the configuration.

use std::time::Duration;

use crate::config::Config;
use crate::error::DaemonError;
use model::{ModelError, Models};
use types::compaction::CompactionSettings;
use types::model::ModelRef;
use types::retry::OnRateLimit;

/// Time limit for connecting to a provider.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) fn models(config: &Config) -> Result<Models, DaemonError> {
    let settings = model::Settings {
        providers: config.providers.clone(),
        models: config.model.clone(),
        user_agent: concat!("agentd/", env!("CARGO_PKG_VERSION")).into(),
        cache: config.session.response_cache,
        connect_timeout: CONNECT_TIMEOUT,
        retry: config.retry,
    };
    Models::new(settings).map_err(|error| {
        let path = match &error {
            ModelError::BadBaseUrl { provider, .. } => vec!["providers", provider, "base_url"],
            ModelError::BadHeader { provider, header } => vec!["providers", provider, "headers", header],
            ModelError::NoCassette { provider } => vec!["providers", provider],
            ModelError::MisplacedCassette { provider } => vec!["providers", provider, "cassette"],
            ModelError::MisplacedStore { provider } => vec!["providers", provider, "store"],
            ModelError::BadApiVersion { provider } => vec!["providers", provider, "api_version"],
            ModelError::MisplacedMaxTokensField { provider } => {
                vec!["providers", provider, "max_tokens_field"]
            }
            ModelError::BadFirstByteTimeout { provider } => {
                vec!["providers", provider, "first_byte_timeout"]
            }
        };
        config.key_error(&path, error.to_string()).into()
    })
}

/// The title model. There is none unless `[models] quick` is set, so the daemon never calls a model
/// that the user did not configure.
pub(super) fn title_model(config: &Config, models: &Models) -> Option<engine::TitleModel> {
    let model = config.models.quick.clone()?;
    let model_snapshot = models.model_snapshot(&model.parse::<ModelRef>().ok()?);
    Some(engine::TitleModel { model, model_snapshot })
}

/// The settings of `[compaction]`, with the model of a pointer instead of its name.
pub(super) fn compaction(config: &Config) -> Result<CompactionSettings, DaemonError> {
    let mut settings = config.compaction.clone();
    let Some(named) = settings.model.take() else { return Ok(settings) };
    let model = match config.models.get(&named) {
        Some(Some(model)) => model.to_owned(),
        // The session's own model writes the summaries.
        Some(None) => return Ok(settings),
        None => named,
    };
    check_named_model(config, &["compaction", "model"], &model)?;
    Ok(CompactionSettings { model: Some(model), ..settings })
}

/// The model data for the engine. Lookups read tables only and use no network.
pub(super) fn model_catalog(models: &Models) -> engine::ModelCatalog {
    let models = models.clone();
    engine::ModelCatalog::from_lookup(move |name| {
        let Ok(model) = name.parse::<ModelRef>() else { return engine::ModelCapabilities::default() };
        let known = models.model(&model);
        engine::ModelCapabilities {
            context_window: known.context_window,
            max_output_tokens: known.max_output_tokens,
            accepts_images: models.accepts_images(&model),
            has_price: known.price.is_some(),
            // Dollars per million tokens are thousandths of a dollar per thousand tokens.
            output_usd_micros_per_1k: known.price.map(|price| (price.output * 1e3) as u64),
        }
    })
}

/// Reports invalid retry times as errors of the configuration file: times that make every call fail, or
/// that cause endless events.
pub(super) fn check_retry(config: &Config) -> Result<(), DaemonError> {
    let section = &config.retry;
    let times = [
        ("heartbeat", section.heartbeat),
        ("idle_warn", section.idle_warn),
        ("idle_timeout", section.idle_timeout),
        ("content_timeout", section.content_timeout),
        ("attempt_timeout", section.attempt_timeout),
    ];
    match times.iter().find(|(_, span)| span.0.is_zero()) {
        None if section.on_rate_limit == OnRateLimit::Backup && config.models.backup.is_none() => {
            let why =
                "[retry] on_rate_limit = \"backup\" needs [models] backup = \"PROVIDER/MODEL\"".to_owned();
            Err(config.key_error(&["retry", "on_rate_limit"], why).into())
        }
        None => Ok(()),
        Some((key, _)) => {
            let why = format!("[retry] {key}: expected more than nothing, like \"30s\"");
            Err(config.key_error(&["retry", key], why).into())
        }
    }
}

pub(super) fn check_model(config: &Config, pointer: &str, text: &str) -> Result<(), DaemonError> {
    check_named_model(config, &["models", pointer], text)
}

/// Checks a model that the key at `path` names.
fn check_named_model(config: &Config, path: &[&str; 2], text: &str) -> Result<(), DaemonError> {
    let [table, key] = path;
    let wrong = |why: String| -> DaemonError {
        config.key_error(path, format!("[{table}] {key} = {text:?}: {why}")).into()
    };
    let model: ModelRef = text.parse().map_err(|why: &str| wrong(why.into()))?;
    if config.providers.contains_key(&model.provider) {
        return Ok(());
    }
    let known: Vec<&str> = config.providers.keys().map(String::as_str).collect();
    Err(wrong(format!("there is no [providers.{}]; configured: {}", model.provider, known.join(", "))))
}
