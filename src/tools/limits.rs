//! Properties of a tool for clients besides its definition: its permission need, time limit and output limit.

use crate::settings::Settings;
use crate::web::{FETCH_TIMEOUT, MAX_TEXT_CHARS};
use types::tool::{PermissionNeed, ToolLimits};

/// The limits of a tool with these settings. An unknown tool is treated like one that may change anything.
pub(super) fn tool_limits(tool: &str, settings: &Settings) -> ToolLimits {
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let permission = match tool {
        "BashOutput" | "KillBash" | "TodoWrite" | "TodoRead" | "AskUser" | "Skill" | "Task"
        | "KnowledgeSearch" => PermissionNeed::Never,
        "Read" | "Glob" | "Grep" | "LS" => PermissionNeed::OutsideWorkspace,
        _ => PermissionNeed::Always,
    };
    let (timeout_ms, max_timeout_ms) = match tool {
        "Bash" => {
            let config = &settings.config;
            (Some(config.bash_timeout.millis()), Some(config.bash_timeout_max.millis()))
        }
        "WebFetch" => (Some(millis(FETCH_TIMEOUT)), None),
        _ => (None, None),
    };
    let max_output_chars = match tool {
        "Bash" | "BashOutput" | "Grep" => Some(settings.output_cap as u64),
        "WebFetch" => Some(MAX_TEXT_CHARS as u64),
        _ => None,
    };
    ToolLimits { permission, timeout_ms, max_timeout_ms, max_output_chars }
}
