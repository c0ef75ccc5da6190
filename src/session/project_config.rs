//! The project's configuration files as a layer between the user's configuration and the parameters of a new session.
//! Their values are used only while the folder is trusted in its current state. Of several files, the nearest one sets a
//! key, and the strictest one sets a limit.

use crate::shared::{Settings, Shared};
use crate::trust;
use project::folders::ProjectFolders;
use project::workspace::{FolderSettings, KeyUse, Precedence, ProjectValues, key_use};
use store::StoreError;
use types::ablation::Ablation;
use types::permission::Mode;
use types::project_settings::{CompactionOverrides, ProjectSettings};
use types::usage::Budgets;

/// The file, as a path below a folder of the project.
pub(super) const PROJECT_FILE: &str = ".agentd/config.toml";

/// The values of the files.
#[derive(Clone, Debug, Default)]
pub(super) struct ProjectLayer {
    pub is_trusted: bool,
    /// The files, that of the nearest folder first. A file with a mistake has no values.
    pub files: Vec<FolderSettings>,
    /// The values of all files together.
    pub values: ProjectValues,
}

/// Whether a project may have such files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MayHaveSettings(bool);

impl ProjectLayer {
    /// Whether a project may have such files. Most have none, and a scan reads every file that trust covers. Reads the disk.
    pub fn may_have_settings(project: &ProjectFolders) -> MayHaveSettings {
        MayHaveSettings(project.may_have(&[PROJECT_FILE]))
    }

    /// Reads the files of a project.
    pub async fn load(shared: &Shared, project: ProjectFolders) -> Result<Self, StoreError> {
        let found = tokio::task::spawn_blocking(move || (Self::may_have_settings(&project), project));
        match found.await {
            Ok((may_have, project)) => Self::load_if(may_have, shared, project).await,
            Err(_) => Ok(Self::default()),
        }
    }

    /// Reads the files of a project that was looked at before.
    pub async fn load_if(
        may_have: MayHaveSettings,
        shared: &Shared,
        project: ProjectFolders,
    ) -> Result<Self, StoreError> {
        if !may_have.0 {
            return Ok(Self::default());
        }
        let (inventory, is_trusted) = trust::inspect(shared, project).await?;
        let files = inventory.settings;
        let values = files.iter().map(|file| file.project.values.clone()).reduce(merge_values);
        Ok(Self { is_trusted, files, values: values.unwrap_or_default() })
    }

    /// Whether values of the files are used.
    pub fn is_used(&self) -> bool {
        self.is_trusted && self.files.iter().any(|file| file.project.problem.is_none())
    }

    /// Whether no other file has a stricter value of this key.
    pub fn is_strictest(&self, key: &str, values: &ProjectValues) -> bool {
        key_use(key) != KeyUse::Permitted(Precedence::Stricter)
            || strict_value(key, values) == strict_value(key, &self.values)
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
            return limit(budget, project) == limit(budget, project.stricter(user));
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

/// The limit of `[session.budgets]` with this name.
fn limit(name: &str, budgets: Budgets) -> Option<u64> {
    match name {
        "usd" => budgets.usd_micros,
        "model_calls" => budgets.model_calls,
        "output_tokens" => budgets.output_tokens,
        "wall_time" => budgets.wall_time_ms,
        "session_usd" => budgets.session_usd_micros,
        "session_model_calls" => budgets.session_model_calls,
        "session_output_tokens" => budgets.session_output_tokens,
        _ => budgets.session_wall_time_ms,
    }
}

/// The value of a key whose strictest value holds, as a number that is lower for a stricter value.
fn strict_value(key: &str, values: &ProjectValues) -> Option<u64> {
    let settings = &values.settings;
    match key {
        "session.mode" => values.mode.map(freedom),
        "session.safe_mode" => values.safe_mode.map(|is_safe| u64::from(!is_safe)),
        "tools.parallel" => settings.parallel_tools,
        "tools.background_commands" => settings.background_commands,
        "tools.max_result_size" => settings.max_result_bytes,
        "tools.max_results_total" => settings.max_results_total_bytes,
        key => limit(key.strip_prefix("session.budgets.")?, values.budgets),
    }
}

/// The values of two files. The nearer one sets a key, unless the strictest value holds.
fn merge_values(near: ProjectValues, far: ProjectValues) -> ProjectValues {
    let lower = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
    let mode = match (near.mode, far.mode) {
        (Some(one), Some(other)) => Some(stricter_mode(one, other)),
        (one, other) => one.or(other),
    };
    let safe_mode = match (near.safe_mode, far.safe_mode) {
        (Some(one), Some(other)) => Some(one || other),
        (one, other) => one.or(other),
    };
    let (settings, above) = (near.settings, far.settings);
    let (compaction, above_compaction) = (settings.compaction, above.compaction);
    let mut ablation = far.ablation;
    ablation.extend(near.ablation);
    let mut keys = near.keys;
    keys.extend(far.keys);
    ProjectValues {
        main_model: near.main_model.or(far.main_model),
        fallback_model: near.fallback_model.or(far.fallback_model),
        mode,
        thinking: near.thinking.or(far.thinking),
        simple: near.simple.or(far.simple),
        safe_mode,
        ablation,
        budgets: near.budgets.stricter(far.budgets),
        settings: ProjectSettings {
            backup_model: settings.backup_model.or(above.backup_model),
            large_context_model: settings.large_context_model.or(above.large_context_model),
            vision_model: settings.vision_model.or(above.vision_model),
            output_tokens: settings.output_tokens.or(above.output_tokens),
            compaction: CompactionOverrides {
                auto: compaction.auto.or(above_compaction.auto),
                threshold_percent: compaction.threshold_percent.or(above_compaction.threshold_percent),
                tool_results: compaction.tool_results.or(above_compaction.tool_results),
                snip: compaction.snip.or(above_compaction.snip),
                microcompact: compaction.microcompact.or(above_compaction.microcompact),
                collapse: compaction.collapse.or(above_compaction.collapse),
                keep_recent_tokens: compaction.keep_recent_tokens.or(above_compaction.keep_recent_tokens),
                max_failures: compaction.max_failures.or(above_compaction.max_failures),
            },
            bash_timeout_ms: settings.bash_timeout_ms.or(above.bash_timeout_ms),
            parallel_tools: lower(settings.parallel_tools, above.parallel_tools),
            background_commands: lower(settings.background_commands, above.background_commands),
            max_result_bytes: lower(settings.max_result_bytes, above.max_result_bytes),
            max_results_total_bytes: lower(settings.max_results_total_bytes, above.max_results_total_bytes),
        },
        keys,
    }
}

/// The mode that allows less.
pub(super) fn stricter_mode(one: Mode, other: Mode) -> Mode {
    if freedom(other) < freedom(one) { other } else { one }
}

/// How much a mode allows.
fn freedom(mode: Mode) -> u64 {
    match mode {
        Mode::Plan => 0,
        Mode::DontAsk => 1,
        Mode::Default => 2,
        Mode::AcceptEdits => 3,
        Mode::Bypass => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearer_file_sets_key_and_strictest_file_sets_limit() {
        let near = ProjectValues {
            main_model: Some("a/near".into()),
            mode: Some(Mode::Default),
            safe_mode: Some(false),
            budgets: Budgets { model_calls: Some(9), ..Budgets::default() },
            ablation: [("reminders".into(), false)].into(),
            ..ProjectValues::default()
        };
        let far = ProjectValues {
            main_model: Some("a/far".into()),
            fallback_model: Some("a/other".into()),
            mode: Some(Mode::Plan),
            safe_mode: Some(true),
            budgets: Budgets { model_calls: Some(5), usd_micros: Some(7), ..Budgets::default() },
            ablation: [("reminders".into(), true), ("thinking".into(), true)].into(),
            settings: ProjectSettings { parallel_tools: Some(2), ..ProjectSettings::default() },
            ..ProjectValues::default()
        };
        let merged = merge_values(near.clone(), far.clone());
        assert_eq!(merged.main_model.as_deref(), Some("a/near"));
        assert_eq!(merged.fallback_model.as_deref(), Some("a/other"));
        assert_eq!((merged.mode, merged.safe_mode), (Some(Mode::Plan), Some(true)));
        assert_eq!((merged.budgets.model_calls, merged.budgets.usd_micros), (Some(5), Some(7)));
        assert_eq!(merged.ablation, [("reminders".into(), false), ("thinking".into(), true)].into());
        assert_eq!(merged.settings.parallel_tools, Some(2));
        let layer = ProjectLayer { values: merged, ..ProjectLayer::default() };
        for (key, is_near, is_far) in [
            ("session.mode", false, true),
            ("session.safe_mode", false, true),
            ("session.budgets.model_calls", false, true),
            ("models.main", true, true),
        ] {
            let strictest = (layer.is_strictest(key, &near), layer.is_strictest(key, &far));
            assert_eq!(strictest, (is_near, is_far), "{key}");
        }
    }

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
