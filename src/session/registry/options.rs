//! Checks the options of turns and sessions against the configuration, and changes sessions.

use crate::session::budgets::check_money;
use crate::session::error::SessionError;
use crate::session::registry::Registry;
use crate::session::requests::Changes;
use crate::types::ids::SessionId;
use crate::types::model::ModelRef;
use crate::types::permission::Mode;
use crate::types::session::SessionView;
use crate::types::tool::ToolChoice;
use crate::types::turn_options::TurnOptions;
use crate::types::usage::Budgets;

impl Registry {
    /// Changes the title, options or folders of a session. Mode and folders apply immediately, also to a running
    /// turn. The other options apply from the next turn.
    ///
    /// # Errors
    /// The session does not exist or has ended, or a value is invalid.
    pub async fn update(&self, id: SessionId, mut changes: Changes) -> Result<SessionView, SessionError> {
        changes.options = self.known_options(id, changes.options).await?;
        if let Some(dirs) = changes.additional_dirs {
            changes.additional_dirs = Some(self.additional(&dirs).await?);
        }
        self.open(id).await?.update(changes).await?;
        self.view(id).await
    }

    /// Checks the options against the configuration. Resolves the model and completes the limits.
    pub(super) async fn known_options(
        &self,
        id: SessionId,
        options: TurnOptions,
    ) -> Result<TurnOptions, SessionError> {
        let TurnOptions { budgets, mode, model, thinking, tools, sampling } = options;
        if let Some(mode) = mode {
            self.check_mode(mode)?;
        }
        let model = model.map(|model| self.known_model(&model)).transpose()?;
        let tools = tools.map(|tools| self.known_tools(tools)).transpose()?;
        let budgets = match budgets {
            Some(budgets) => Some(self.turn_budgets(id, budgets).await?),
            None => None,
        };
        Ok(TurnOptions { budgets, mode, model, thinking, tools, sampling })
    }

    /// Limits of a turn in this session. An unattended session always has limits.
    ///
    /// # Errors
    /// The session does not exist, or the model's price is unknown.
    async fn turn_budgets(&self, id: SessionId, asked: Budgets) -> Result<Budgets, SessionError> {
        let view = self.view(id).await?;
        let budgets = if view.background { self.unattended(&view.model, asked) } else { asked };
        check_money(&self.inner.shared.components(), &view.model, budgets)?;
        Ok(budgets)
    }

    /// Checks that named tools exist. With a misspelt name the session would offer fewer or more tools than
    /// intended.
    ///
    /// # Errors
    /// A tool does not exist.
    pub(super) fn known_tools(&self, choice: ToolChoice) -> Result<ToolChoice, SessionError> {
        let cards = self.inner.shared.components().tools.cards();
        let mut named = choice.allow.iter().flatten().chain(&choice.deny);
        match named.find(|name| !cards.iter().any(|card| card.name == **name)) {
            None => Ok(choice),
            Some(name) => {
                let known: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
                let why = format!("there is no tool {name:?}; the tools are {}", known.join(", "));
                Err(SessionError::BadParam("tools", why))
            }
        }
    }

    /// Checks that sessions may use this mode.
    ///
    /// # Errors
    /// The configuration does not allow it.
    pub(in crate::session) fn check_mode(&self, mode: Mode) -> Result<(), SessionError> {
        match (mode, &self.inner.shared.components().settings.bypass) {
            (Mode::Bypass, Err(why)) => Err(SessionError::BadParam("mode", why.clone())),
            _ => Ok(()),
        }
    }

    /// Limits of an unattended session. The configuration fills in missing ones. The built-in money limit is
    /// omitted if the model's price is unknown; the other limits apply.
    pub(super) fn unattended(&self, model: &str, asked: Budgets) -> Budgets {
        let components = self.inner.shared.components();
        let mut limits = components.settings.unattended_budgets;
        let price = model.parse::<ModelRef>().ok().and_then(|known| components.models.price(&known));
        if components.settings.unattended_usd_is_default && price.is_none() {
            limits.usd_micros = None;
        }
        asked.or(limits)
    }

    /// Resolves a model name or the name of a pointer in `[models]`.
    ///
    /// # Errors
    /// The provider does not exist, or the pointer is not set.
    pub(super) fn known_model(&self, text: &str) -> Result<String, SessionError> {
        let components = self.inner.shared.components();
        let wrong = |why: &str| SessionError::BadParam("model", format!("{text:?}: {why}"));
        let text = match components.settings.pointers.get(text) {
            Some(Some(model)) => model.as_str(),
            Some(None) => return Err(wrong("this pointer of [models] is not set")),
            None => text,
        };
        let model: ModelRef = text.parse().map_err(wrong)?;
        let providers = components.models.providers();
        if !providers.contains(&model.provider) {
            let known = if providers.is_empty() { "none".into() } else { providers.join(", ") };
            let why = format!("there is no provider {:?}; configured: {known}", model.provider);
            return Err(SessionError::BadParam("model", why));
        }
        Ok(text.to_string())
    }
}
