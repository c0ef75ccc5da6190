//! Effective settings: the daemon's settings, with the changes of the session's project.

use super::Engine;
use types::compaction::CompactionSettings;

impl Engine {
    /// Settings for making the conversation fit the window.
    pub(crate) fn compaction(&self) -> CompactionSettings {
        let (known, project) = (&self.settings.compaction, &self.state.spec.project_settings.compaction);
        CompactionSettings {
            model: known.model.clone(),
            auto: project.auto.unwrap_or(known.auto),
            threshold: project.threshold_percent.map_or(known.threshold, |percent| percent as f64 / 100.0),
            tool_results: project.tool_results.unwrap_or(known.tool_results),
            snip: project.snip.unwrap_or(known.snip),
            microcompact: project.microcompact.unwrap_or(known.microcompact),
            collapse: project.collapse.unwrap_or(known.collapse),
            keep_recent_tokens: project.keep_recent_tokens.unwrap_or(known.keep_recent_tokens),
            max_failures: project.max_failures.unwrap_or(known.max_failures),
        }
    }

    /// Output limit in tokens, for models that allow more.
    pub(crate) fn output_tokens(&self) -> u32 {
        self.state.spec.project_settings.output_tokens.unwrap_or(self.settings.output_tokens)
    }

    /// Maximum number of tools that run in parallel.
    pub(crate) fn parallel_tools(&self) -> usize {
        lower(self.settings.parallel_tools, self.state.spec.project_settings.parallel_tools).max(1)
    }

    /// Maximum number of background commands.
    pub(crate) fn background_commands(&self) -> usize {
        lower(self.settings.background_commands, self.state.spec.project_settings.background_commands)
    }

    /// Maximum bytes of one result, and of all results of one message.
    pub(crate) fn result_bytes(&self) -> (usize, usize) {
        let project = &self.state.spec.project_settings;
        (
            lower(self.settings.result_bytes, project.max_result_bytes),
            lower(self.settings.results_bytes, project.max_results_total_bytes),
        )
    }
}

/// A project may only lower a limit.
fn lower(limit: usize, project: Option<u64>) -> usize {
    project.map_or(limit, |project| limit.min(usize::try_from(project).unwrap_or(usize::MAX)))
}
