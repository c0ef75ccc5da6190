//! Checks the options of turns and sessions against the configuration, and changes sessions.

use std::collections::BTreeMap;

use crate::budgets::check_money;
use crate::error::SessionError;
use crate::registry::Registry;
use crate::requests::SettingsUpdate;
use engine::check_schema;
use types::ids::SessionId;
use types::mcp::{MCP_PREFIX, TOOL_SEARCH};
use types::model::ModelRef;
use types::permission::Mode;
use types::session::SessionView;
use types::tool::ToolChoice;
use types::turn_options::TurnOptions;
use types::usage::Budgets;

/// Maximum bytes of a system prompt that a client gives.
const MAX_PROMPT_BYTES: usize = 512 << 10;
/// Maximum number of stop sequences. OpenAI's APIs refuse more.
const MAX_STOP_SEQUENCES: usize = 4;
/// Maximum bytes of a stop sequence.
const MAX_STOP_BYTES: usize = 256;
/// Maximum number of labels, maximum bytes of a key, and maximum bytes of a value, as in OpenAI's APIs.
const MAX_METADATA: (usize, usize, usize) = (16, 64, 512);

fn check_stop(stop: &[String]) -> Result<(), SessionError> {
    // Anthropic refuses sequences without a visible character.
    let is_wrong = |text: &&String| text.trim().is_empty() || text.len() > MAX_STOP_BYTES;
    if stop.len() > MAX_STOP_SEQUENCES || stop.iter().any(|text| is_wrong(&text)) {
        let why = format!(
            "expected at most {MAX_STOP_SEQUENCES} texts of at most {MAX_STOP_BYTES} bytes, none of them blank"
        );
        return Err(SessionError::BadParam("stop", why));
    }
    Ok(())
}

fn check_metadata(metadata: Option<&BTreeMap<String, String>>) -> Result<(), SessionError> {
    let (count, key, value) = MAX_METADATA;
    let is_wrong =
        |(name, text): (&String, &String)| name.is_empty() || name.len() > key || text.len() > value;
    if metadata.is_some_and(|it| it.len() > count || it.iter().any(is_wrong)) {
        let why = format!(
            "expected at most {count} labels, with keys of 1 to {key} bytes and values of at most {value} bytes"
        );
        return Err(SessionError::BadParam("metadata", why));
    }
    Ok(())
}

impl Registry {
    /// Changes the title, options or folders of a session. Mode and folders apply immediately, also to a running
    /// turn. The other options apply from the next turn.
    ///
    /// # Errors
    /// The session does not exist or has ended, or a value is invalid.
    pub async fn update(
        &self,
        id: SessionId,
        mut changes: SettingsUpdate,
    ) -> Result<SessionView, SessionError> {
        changes.options = self.known_options(id, changes.options).await?;
        let environment = changes.environment.take();
        if environment.is_some() {
            self.check_environment(environment.as_ref(), !self.view(id).await?.background)?;
        }
        let servers = match changes.mcp_servers.take() {
            Some(servers) => Some(self.checked_servers(id, servers).await?),
            None => None,
        };
        self.open(id).await?.update(changes).await?;
        self.save_environment(id, environment).await?;
        if let Some(servers) = servers {
            self.replace_servers(id, servers).await?;
        }
        self.view_with_details(id).await
    }

    /// Checks the options against the configuration. Resolves the model and completes the limits.
    pub(super) async fn known_options(
        &self,
        id: SessionId,
        options: TurnOptions,
    ) -> Result<TurnOptions, SessionError> {
        let options = self.resolve_options(options).await?;
        let budgets = match options.budgets {
            Some(budgets) => Some(self.turn_budgets(id, budgets).await?),
            None => None,
        };
        Ok(TurnOptions { budgets, ..options })
    }

    /// Checks the options against the configuration and the machine, except the limits. Resolves models and
    /// folders.
    pub(super) async fn resolve_options(&self, options: TurnOptions) -> Result<TurnOptions, SessionError> {
        if let Some(mode) = options.mode {
            self.check_mode(mode)?;
        }
        for (name, prompt) in [
            ("system_prompt", &options.system_prompt),
            ("append_system_prompt", &options.append_system_prompt),
        ] {
            let bytes = prompt.as_ref().map_or(0, String::len);
            if bytes > MAX_PROMPT_BYTES {
                let why = format!("{bytes} bytes are too many, {MAX_PROMPT_BYTES} at most");
                return Err(SessionError::BadParam(name, why));
            }
        }
        check_stop(options.stop.as_deref().unwrap_or_default())?;
        check_metadata(options.metadata.as_ref())?;
        if let Some(schema) =
            options.output_schema.as_ref().filter(|schema| **schema != serde_json::json!({}))
        {
            check_schema(schema).map_err(|why| SessionError::BadParam("output_schema", why))?;
        }
        let additional_dirs = match &options.additional_dirs {
            Some(dirs) => Some(self.check_additional_dirs(dirs).await?),
            None => None,
        };
        let fallback_model = match options.fallback_model {
            Some(model) if !model.is_empty() => Some(self.known_model_of("fallback_model", &model)?),
            other => other,
        };
        Ok(TurnOptions {
            model: options.model.map(|model| self.known_model(&model)).transpose()?,
            tools: options.tools.map(|tools| self.known_tools(tools)).transpose()?,
            additional_dirs,
            fallback_model,
            ..options
        })
    }

    /// Limits of a turn in this session. An unattended session always has limits.
    ///
    /// # Errors
    /// The session does not exist, or the model's price is unknown.
    async fn turn_budgets(&self, id: SessionId, requested: Budgets) -> Result<Budgets, SessionError> {
        let view = self.view(id).await?;
        let budgets =
            if view.background { self.unattended(&view.summary.model, requested) } else { requested };
        check_money(&self.inner.shared.components(), &view.summary.model, budgets)?;
        Ok(budgets)
    }

    /// Checks that named tools exist. With a misspelt name the session would offer fewer or more tools than
    /// intended.
    ///
    /// # Errors
    /// A tool does not exist.
    pub(super) fn known_tools(&self, choice: ToolChoice) -> Result<ToolChoice, SessionError> {
        let definitions = self.inner.shared.components().tools.definitions();
        let mut named = choice.allow.iter().flatten().chain(&choice.deny);
        // The servers and their tools are known only when a turn begins, so do not check their names.
        let is_of_server = |name: &str| name.starts_with(MCP_PREFIX) || name == TOOL_SEARCH;
        match named.find(|name| !is_of_server(name) && !definitions.iter().any(|tool| tool.name == **name)) {
            None => Ok(choice),
            Some(name) => {
                let known: Vec<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
                let why = format!("there is no tool {name:?}; the tools are {}", known.join(", "));
                Err(SessionError::BadParam("tools", why))
            }
        }
    }

    /// Checks that sessions may use this mode.
    ///
    /// # Errors
    /// The configuration does not allow it.
    pub(crate) fn check_mode(&self, mode: Mode) -> Result<(), SessionError> {
        match (mode, &self.inner.shared.components().settings.bypass) {
            (Mode::Bypass, Err(why)) => Err(SessionError::BadParam("mode", why.clone())),
            _ => Ok(()),
        }
    }

    /// Limits of an unattended session. The configuration fills in missing ones. The built-in money limit is
    /// omitted if the model's price is unknown; the other limits apply.
    pub(super) fn unattended(&self, model: &str, requested: Budgets) -> Budgets {
        let components = self.inner.shared.components();
        let unattended = &components.settings.engine.unattended;
        let mut limits = unattended.budgets();
        let price = model.parse::<ModelRef>().ok().and_then(|known| components.models.price(&known));
        if unattended.usd.is_none() && price.is_none() {
            limits.usd_micros = None;
        }
        requested.or(limits)
    }

    /// Resolves a model name or the name of a pointer in `[models]`.
    ///
    /// # Errors
    /// The provider does not exist, or the pointer is not set.
    pub(crate) fn known_model(&self, text: &str) -> Result<String, SessionError> {
        self.known_model_of("model", text)
    }

    pub(super) fn known_model_of(&self, name: &'static str, text: &str) -> Result<String, SessionError> {
        let components = self.inner.shared.components();
        let hint = |text: &str| {
            let models = self.models();
            let pointers = components.settings.engine.models.all().into_iter();
            let pointers = pointers.filter_map(|(pointer, model)| model.as_ref().map(|_| pointer));
            let names = models.iter().map(|view| view.model.as_str()).chain(pointers);
            nearest_model(text, names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
        };
        let wrong = |why: &str| SessionError::BadParam(name, format!("{text:?}: {why}{}", hint(text)));
        let text = match components.settings.engine.models.get(text) {
            Some(Some(model)) => model,
            Some(None) => return Err(wrong("this pointer of [models] is not set")),
            None => text,
        };
        let model: ModelRef = text.parse().map_err(wrong)?;
        let providers = components.models.providers();
        if !providers.contains(&model.provider) {
            let known = if providers.is_empty() { "none".into() } else { providers.join(", ") };
            let why = format!("there is no provider {:?}; configured: {known}{}", model.provider, hint(text));
            return Err(SessionError::BadParam(name, why));
        }
        Ok(text.to_string())
    }
}

/// The known name that a user probably meant: one whose model contains the text, or one that is spelled similarly.
fn nearest_model<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Minimum likeness of two names, in thousandths.
    const MIN_LIKENESS: u32 = 850;
    let model_of = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let wanted = model_of(text);
    let likeness = |name: &&str| {
        let own = model_of(name);
        // A part of a name, such as `coder` of `qwen3-coder`. One letter is part of most names.
        let is_part = wanted.len() > 2 && own.contains(&wanted);
        let part = if is_part { 1_000 } else { 0 };
        part.max((strsim::jaro_winkler(&wanted, &own) * 1_000.0) as u32)
    };
    known.max_by_key(likeness).filter(|name| likeness(name) >= MIN_LIKENESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_model_is_named_by_part_or_spelling() {
        let known = ["acme/sonnet-5-5", "local/qwen3-coder", "quick"];
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(nearest_model(text, known.into_iter()), expected, "{text}");
        };
        check("coder", Some("local/qwen3-coder"));
        check("Sonnet", Some("acme/sonnet-5-5"));
        check("lokal/qwen3-coder", Some("local/qwen3-coder"));
        check("quik", Some("quick"));
        check("mistral-large", None);
        check("x", None);
    }
}
