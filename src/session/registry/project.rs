//! The project's configuration file: its values for new sessions, and its display in `daemon.config`.

use std::path::Path;

use crate::error::SessionError;
use crate::project_config::{PROJECT_FILE, ProjectLayer, stricter_mode};
use crate::registry::Registry;
use types::project_settings::ProjectSettings;
use types::session::SessionSpec;

/// The project's configuration file of a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectConfig {
    /// Its path.
    pub file: String,
    /// Whether the folder is trusted in its current state.
    pub trusted: bool,
    /// A mistake in the file, with its line.
    pub problem: Option<String>,
    /// The keys that the file sets and whose values are used.
    pub values: Vec<ProjectValue>,
}

/// A value of the project's configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectValue {
    /// The dotted name of the key.
    pub key: String,
    /// Its value.
    pub value: serde_json::Value,
    /// Its line, from 1.
    pub line: usize,
}

impl Registry {
    /// The project's configuration file of a folder; `None` if there is none.
    ///
    /// # Errors
    /// The folder does not exist, or the database could not be read.
    pub async fn project_config(&self, cwd: &str) -> Result<Option<ProjectConfig>, SessionError> {
        let cwd = self.folder(cwd).await?;
        let layer = ProjectLayer::load(self.shared(), Path::new(&cwd)).await?;
        if !layer.exists {
            return Ok(None);
        }
        let components = self.shared().components();
        let counts = |key: &str| match key {
            // Ask and deny rules only restrict, so they need no trust.
            "permissions.ask" | "permissions.deny" => true,
            key => layer.is_used() && layer.is_in_force(key, &components.settings),
        };
        let keys = layer.values.keys.iter().filter(|set| counts(&set.key));
        let values =
            keys.map(|set| ProjectValue { key: set.key.clone(), value: set.value.clone(), line: set.line });
        Ok(Some(ProjectConfig {
            file: Path::new(&cwd).join(PROJECT_FILE).display().to_string(),
            trusted: layer.is_trusted,
            problem: layer.problem.clone(),
            values: values.collect(),
        }))
    }

    /// Sets the project's values in `spec`, which holds the user's values. Returns notices for the user.
    pub(super) fn apply_project(&self, layer: &ProjectLayer, spec: &mut SessionSpec) -> Vec<String> {
        if let Some(problem) = &layer.problem {
            let text = format!(
                "{PROJECT_FILE} has a mistake, so its settings and allow rules are not used: {problem}"
            );
            return vec![text];
        }
        if !layer.is_used() {
            return Vec::new();
        }
        let values = &layer.values;
        let mut notices = Vec::new();
        let mut known = |key: &'static str, model: &Option<String>| {
            let known = self.known_model_of(key, model.as_ref()?);
            known
                .map_err(|error| notices.push(format!("{PROJECT_FILE}: {error}; your own setting is used")))
                .ok()
        };
        if let Some(model) = known("models.main", &values.main_model) {
            spec.model = model;
        }
        spec.fallback_model = known("models.fallback", &values.fallback_model);
        spec.project_settings = ProjectSettings {
            backup_model: known("models.backup", &values.settings.backup_model),
            large_context_model: known("models.large_context", &values.settings.large_context_model),
            vision_model: known("models.vision", &values.settings.vision_model),
            ..values.settings.clone()
        };
        spec.mode = values.mode.map_or(spec.mode, |mode| stricter_mode(spec.mode, mode));
        spec.thinking = values.thinking.or(spec.thinking);
        spec.safe_mode |= values.safe_mode == Some(true);
        spec.ablation = layer.ablation(spec.ablation);
        if spec.background {
            // A project cannot raise or remove the limits that every unattended session has.
            spec.budgets = self.unattended(&spec.model, spec.budgets);
        }
        spec.budgets = spec.budgets.stricter(values.budgets);
        notices
    }
}
