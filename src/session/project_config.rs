//! The project's configuration file as a layer between the user's configuration and the parameters of a
//! new session. Its values are used only while the folder is trusted in its current state.

use std::io::ErrorKind;
use std::path::Path;

use crate::shared::{Settings, Shared};
use crate::trust;
use project::workspace::ProjectValues;
use store::StoreError;
use types::ablation::Ablation;
use types::permission::Mode;
use types::usage::Budgets;

/// The file, as a path below the workspace.
pub(super) const PROJECT_FILE: &str = ".agentd/config.toml";

/// The file's values.
#[derive(Clone, Debug, Default)]
pub(super) struct ProjectLayer {
    pub exists: bool,
    pub is_trusted: bool,
    /// A mistake in the file. If present, the file has no values.
    pub problem: Option<String>,
    pub values: ProjectValues,
}

impl ProjectLayer {
    /// Reads the file of a folder.
    pub async fn load(shared: &Shared, cwd: &Path) -> Result<Self, StoreError> {
        // Most folders have no such file, and a scan reads every file that trust covers.
        let found = tokio::fs::symlink_metadata(cwd.join(PROJECT_FILE)).await;
        if found.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)) {
            return Ok(Self::default());
        }
        let (inventory, is_trusted) = trust::inspect(shared, cwd).await?;
        let project = inventory.project;
        Ok(Self { exists: true, is_trusted, problem: project.problem, values: project.values })
    }

    /// Whether the file's values are used.
    pub fn is_used(&self) -> bool {
        self.is_trusted && self.problem.is_none()
    }

    /// The optimisations that are turned off. `base` is the user's setting.
    pub fn ablation(&self, base: Ablation) -> Ablation {
        let base = match self.values.simple {
            Some(true) => Ablation::ALL,
            Some(false) if base == Ablation::ALL => Ablation::default(),
            _ => base,
        };
        let Ok(serde_json::Value::Object(mut switches)) = serde_json::to_value(base) else { return base };
        switches.extend(self.values.ablation.iter().map(|(name, is_off)| (name.clone(), (*is_off).into())));
        serde_json::from_value(switches.into()).unwrap_or(base)
    }

    /// Whether the project's value of this key is used. A stricter value of the user has priority.
    pub fn is_in_force(&self, key: &str, settings: &Settings) -> bool {
        let (values, engine) = (&self.values, &settings.engine);
        let within = |project: Option<u64>, limit: usize| {
            project.is_none_or(|project| project <= u64::try_from(limit).unwrap_or(u64::MAX))
        };
        if let Some(budget) = key.strip_prefix("session.budgets.") {
            let (project, user) = (values.budgets, settings.budgets);
            let limits = |of: Budgets| match budget {
                "usd" => of.usd_micros,
                "model_calls" => of.model_calls,
                "output_tokens" => of.output_tokens,
                "wall_time" => of.wall_time_ms,
                "session_usd" => of.session_usd_micros,
                "session_model_calls" => of.session_model_calls,
                "session_output_tokens" => of.session_output_tokens,
                _ => of.session_wall_time_ms,
            };
            return limits(project) == limits(project.stricter(user));
        }
        match key {
            "session.mode" => values.mode.is_none_or(|mode| stricter_mode(settings.mode, mode) == mode),
            "session.safe_mode" => values.safe_mode != Some(false) || !settings.safe_mode,
            "tools.parallel" => within(values.settings.parallel_tools, engine.parallel_tools),
            "tools.background_commands" => {
                within(values.settings.background_commands, engine.background_commands)
            }
            "tools.max_result_size" => within(values.settings.max_result_bytes, engine.result_bytes),
            "tools.max_results_total" => {
                within(values.settings.max_results_total_bytes, engine.results_bytes)
            }
            _ => true,
        }
    }
}

/// The mode that allows less.
pub(super) fn stricter_mode(one: Mode, other: Mode) -> Mode {
    let freedom = |mode: Mode| match mode {
        Mode::Plan => 0,
        Mode::DontAsk => 1,
        Mode::Default => 2,
        Mode::AcceptEdits => 3,
        Mode::Bypass => 4,
    };
    if freedom(other) < freedom(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_switches_are_merged_with_those_of_user() {
        let user = Ablation { thinking: true, reminders: true, ..Ablation::default() };
        let mut layer = ProjectLayer::default();
        assert_eq!(layer.ablation(user), user);
        layer.values.ablation = [("reminders".into(), false), ("compaction".into(), true)].into();
        let merged = Ablation { thinking: true, compaction: true, ..Ablation::default() };
        assert_eq!(layer.ablation(user), merged);
        layer.values.simple = Some(true);
        assert_eq!(layer.ablation(user), Ablation { reminders: false, ..Ablation::ALL });
        assert_eq!(stricter_mode(Mode::Plan, Mode::Default), Mode::Plan);
        assert_eq!(stricter_mode(Mode::AcceptEdits, Mode::DontAsk), Mode::DontAsk);
    }
}
