//! The modes and settings of a session as the editor's selectors. Pure.

use std::sync::Arc;

use super::schema::{ConfigOption, ConfigValue, ModeState, NamedChoice, SessionSettings};
use super::wire::AcpError;
use types::model::ModelView;
use types::permission::Mode;
use types::thinking::Thinking;

/// The settings of a session that an editor can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) mode: Mode,
    pub(super) model: String,
    /// `None` for the vendor's default.
    pub(super) thinking: Option<Thinking>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SettingChange {
    Mode(Mode),
    Model(String),
    Thinking(Thinking),
    /// The value that the setting has already.
    Unchanged,
}

/// The values that settings may have.
#[derive(Clone, Debug, Default)]
pub(super) struct Choices {
    pub(super) models: Arc<[ModelView]>,
    /// Whether the configuration allows the mode `bypass`.
    pub(super) allows_bypass: bool,
}

const MODES: [(Mode, &str, &str); 5] = [
    (Mode::Default, "Ask", "Reading in the workspace is allowed; everything else asks"),
    (Mode::AcceptEdits, "Accept edits", "Edits of files in the workspace are allowed as well"),
    (Mode::Plan, "Plan", "Only reading, until a plan is approved"),
    (Mode::DontAsk, "Never ask", "What no rule allows is denied without a request"),
    (Mode::Bypass, "Bypass", "Everything is allowed, except what a rule denies"),
];

const LEVELS: [(Thinking, &str); 5] = [
    (Thinking::Off, "Off"),
    (Thinking::Auto, "The model decides"),
    (Thinking::Low, "Low"),
    (Thinking::Medium, "Medium"),
    (Thinking::High, "High"),
];

/// The value of the thought level if the session has none.
const VENDOR_DEFAULT: &str = "default";

impl Choices {
    /// The reply to methods that open a session.
    pub(super) fn settings(&self, current: &Settings) -> SessionSettings {
        let mode = |(mode, name, description): (Mode, &str, &str)| NamedChoice {
            id: mode.name().to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
        };
        let available_modes = self.modes(current).map(mode).collect();
        let modes = ModeState { current_mode_id: current.mode.name().to_owned(), available_modes };
        SessionSettings { modes, config_options: self.options(current) }
    }

    fn modes(&self, current: &Settings) -> impl Iterator<Item = (Mode, &'static str, &'static str)> {
        let has_bypass = self.allows_bypass || current.mode == Mode::Bypass;
        MODES.into_iter().filter(move |(mode, ..)| *mode != Mode::Bypass || has_bypass)
    }

    /// All options with their values.
    pub(super) fn options(&self, current: &Settings) -> Vec<ConfigOption> {
        let value = |value: &str, name: &str, description: Option<&str>| ConfigValue {
            value: value.to_owned(),
            name: name.to_owned(),
            description: description.map(str::to_owned),
        };
        let select = |id, name, category, current_value: &str, options| ConfigOption {
            id,
            name,
            category,
            kind: "select",
            current_value: current_value.to_owned(),
            options,
        };
        let modes =
            self.modes(current).map(|(mode, name, text)| value(mode.name(), name, Some(text))).collect();
        let mut options = vec![select("mode", "Mode", "mode", current.mode.name(), modes)];
        let mut models: Vec<ConfigValue> =
            self.models.iter().map(|view| value(&view.model, &view.model, None)).collect();
        if !current.model.is_empty() && !models.iter().any(|model| model.value == current.model) {
            models.insert(0, value(&current.model, &current.model, None));
        }
        if !current.model.is_empty() {
            options.push(select("model", "Model", "model", &current.model, models));
        }
        let view = self.models.iter().find(|view| view.model == current.model);
        if view.is_none_or(|view| view.thinking || !view.known) {
            let chosen =
                current.thinking.map_or_else(|| VENDOR_DEFAULT.to_owned(), |level| level.to_string());
            let mut levels: Vec<ConfigValue> =
                LEVELS.iter().map(|(level, name)| value(&level.to_string(), name, None)).collect();
            match current.thinking {
                None => levels.insert(0, value(VENDOR_DEFAULT, "Default of the model", None)),
                Some(Thinking::Tokens(tokens)) => {
                    levels.push(value(&chosen, &format!("{tokens} tokens"), None))
                }
                Some(_) => {}
            }
            options.push(select("thinking", "Thinking", "thought_level", &chosen, levels));
        }
        options
    }

    /// The change that sets an option.
    pub(super) fn change(
        &self,
        current: &Settings,
        id: &str,
        wanted: &str,
    ) -> Result<SettingChange, AcpError> {
        let options = self.options(current);
        let Some(option) = options.iter().find(|option| option.id == id) else {
            let ids: Vec<&str> = options.iter().map(|option| option.id).collect();
            return Err(AcpError::param("configId", &format!("{id:?} is not one of {}", ids.join(", "))));
        };
        if !option.options.iter().any(|value| value.value == wanted) {
            let ids: Vec<&str> = option.options.iter().map(|value| value.value.as_str()).take(20).collect();
            return Err(AcpError::param("value", &format!("{wanted:?} is not one of {}", ids.join(", "))));
        }
        if option.current_value == wanted {
            return Ok(SettingChange::Unchanged);
        }
        match id {
            "mode" => self.mode(current, wanted).map(SettingChange::Mode),
            "model" => Ok(SettingChange::Model(wanted.to_owned())),
            _ => wanted.parse().map(SettingChange::Thinking).map_err(|why| AcpError::param("value", &why)),
        }
    }

    pub(super) fn mode(&self, current: &Settings, name: &str) -> Result<Mode, AcpError> {
        let mode_row = self.modes(current).find(|(mode, ..)| mode.name() == name);
        mode_row.map(|(mode, ..)| mode).ok_or_else(|| {
            let names: Vec<&str> = self.modes(current).map(|(mode, ..)| mode.name()).collect();
            AcpError::param("modeId", &format!("{name:?} is not one of {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn model(name: &str, thinking: bool) -> ModelView {
        let view = json!({"model": name, "known": true, "context_window": null, "max_output_tokens": null,
            "tools": true, "streaming": true, "system_role": true, "thinking": thinking, "vision": null,
            "price": null});
        serde_json::from_value(view).expect("a model")
    }

    fn choices() -> Choices {
        Choices { models: [model("a/thinks", true), model("a/plain", false)].into(), allows_bypass: false }
    }

    #[test]
    fn current_value_is_always_one_of_the_options() {
        let models = ["a/thinks", "a/plain", "b/unlisted"];
        let levels = [None, Some(Thinking::High), Some(Thinking::Tokens(4096))];
        for (mode, ..) in MODES {
            for (model, thinking) in models.iter().flat_map(|model| levels.map(|level| (*model, level))) {
                let current = Settings { mode, model: model.into(), thinking };
                let settings = choices().settings(&current);
                for option in &settings.config_options {
                    let has = option.options.iter().any(|value| value.value == option.current_value);
                    assert!(has, "{option:?}");
                }
                let modes = settings.modes;
                assert!(
                    modes.available_modes.iter().any(|mode| mode.id == modes.current_mode_id),
                    "{modes:?}"
                );
            }
        }
    }

    #[test]
    fn option_change_is_refused_unless_offered() {
        let current = Settings { model: "a/thinks".into(), ..Settings::default() };
        let change = |id: &str, value: &str| choices().change(&current, id, value);
        assert_eq!(change("mode", "plan"), Ok(SettingChange::Mode(Mode::Plan)));
        assert_eq!(change("mode", "default"), Ok(SettingChange::Unchanged));
        assert_eq!(change("model", "a/plain"), Ok(SettingChange::Model("a/plain".into())));
        assert_eq!(change("thinking", "low"), Ok(SettingChange::Thinking(Thinking::Low)));
        assert_eq!(change("thinking", "default"), Ok(SettingChange::Unchanged));
        for (id, value) in
            [("mode", "bypass"), ("mode", ""), ("model", "x/y"), ("thinking", "7"), ("colour", "red")]
        {
            assert_eq!(change(id, value).map_err(|error| error.code), Err(-32602), "{id} {value}");
        }
        let allowed = Choices { allows_bypass: true, ..choices() };
        assert_eq!(allowed.change(&current, "mode", "bypass"), Ok(SettingChange::Mode(Mode::Bypass)));
        let plain = Settings { model: "a/plain".into(), ..Settings::default() };
        assert!(choices().change(&plain, "thinking", "low").is_err(), "this model does not think");
    }
}
