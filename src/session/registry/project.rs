//! The project's configuration files: their values for new sessions, and their display in `daemon.config`.

use std::path::Path;

use crate::error::SessionError;
use crate::project_config::{PROJECT_FILE, ProjectLayer, stricter_mode};
use crate::registry::Registry;
use project::workspace::FolderSettings;
use types::project_settings::ProjectSettings;
use types::session::SessionSpec;

/// The configuration files of a folder's project.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectConfig {
    /// The path of the nearest file.
    pub file: String,
    /// Whether the folder is trusted in its current state.
    pub trusted: bool,
    /// A mistake in one of the files, with its line.
    pub problem: Option<String>,
    /// The keys that the files set and whose values are used, that of the nearest file last.
    pub values: Vec<ProjectValue>,
}

/// A value of the project's configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectValue {
    /// The path of its file.
    pub file: String,
    /// The dotted name of the key.
    pub key: String,
    pub value: serde_json::Value,
    /// Its line, from 1.
    pub line: usize,
}

impl Registry {
    /// The configuration files of a folder's project; `None` if there are none.
    pub async fn project_config(&self, cwd: &str) -> Result<Option<ProjectConfig>, SessionError> {
        let cwd = self.folder(cwd).await?;
        let project = self.shared().find_project(Path::new(&cwd)).await;
        let layer = ProjectLayer::load(self.shared(), project).await?;
        let Some(nearest) = layer.files.first() else { return Ok(None) };
        let components = self.shared().components();
        let counts = |key: &str| match key {
            // Ask and deny rules only restrict, so they need no trust.
            "permissions.ask" | "permissions.deny" => true,
            key => layer.is_used() && layer.is_in_force(key, &components.settings),
        };
        let path = |file: &FolderSettings| file.folder.join(PROJECT_FILE).display().to_string();
        let mut values = Vec::new();
        for file in layer.files.iter().rev() {
            let of_file = &file.project.values;
            let keys = of_file.keys.iter();
            let keys = keys.filter(|set| counts(&set.key) && layer.is_strictest(&set.key, of_file));
            values.extend(keys.map(|set| ProjectValue {
                file: path(file),
                key: set.key.clone(),
                value: set.value.clone(),
                line: set.line,
            }));
        }
        let mut problems = layer.files.iter().filter_map(|file| Some((file, file.project.problem.as_ref()?)));
        let problem = problems.next().map(|(file, problem)| match file == nearest {
            true => problem.clone(),
            false => format!("{}: {problem}", file.name),
        });
        Ok(Some(ProjectConfig { file: path(nearest), trusted: layer.is_trusted, problem, values }))
    }

    /// Sets the project's values in `spec`, which holds the user's values. Returns notices for the user.
    pub(super) fn apply_project(&self, layer: &ProjectLayer, spec: &mut SessionSpec) -> Vec<String> {
        let mistake = |file: &FolderSettings| {
            let (name, problem) = (&file.name, file.project.problem.as_ref()?);
            Some(format!("{name} has a mistake, so its settings and allow rules are not used: {problem}"))
        };
        let mut notices: Vec<String> = layer.files.iter().filter_map(mistake).collect();
        if !layer.is_used() {
            return notices;
        }
        let values = &layer.values;
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
        if !self.inner.shared.components().settings.has_fixed_ablation {
            spec.ablation = layer.ablation(spec.ablation);
        }
        if spec.background {
            // A project cannot raise or remove the limits that every unattended session has.
            spec.budgets = self.unattended(&spec.model, spec.budgets);
        }
        spec.budgets = spec.budgets.stricter(values.budgets);
        notices
    }
}
