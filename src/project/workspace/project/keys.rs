//! The keys that a project's file may set, as one table. All other keys belong to the user.

/// The effect of a key of a project's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// The project's value replaces the user's.
    Project,
    /// The stricter one of both values holds.
    Stricter,
    /// The project's rules are added to the user's.
    Added,
}

use Precedence::{Added, Project, Stricter};

/// Every key that a project may set.
pub const PROJECT_KEYS: &[(&str, Precedence)] = &[
    ("models.main", Project),
    ("models.fallback", Project),
    ("models.backup", Project),
    ("models.large_context", Project),
    ("models.vision", Project),
    ("session.mode", Stricter),
    ("session.thinking", Project),
    ("session.simple", Project),
    ("session.safe_mode", Stricter),
    ("session.output_tokens", Project),
    ("session.ablation.thinking", Project),
    ("session.ablation.interleaved_thinking", Project),
    ("session.ablation.auto_compaction", Project),
    ("session.ablation.compaction", Project),
    ("session.ablation.auto_memory", Project),
    ("session.ablation.reminders", Project),
    ("session.ablation.streaming_execution", Project),
    ("session.ablation.background_tasks", Project),
    ("session.budgets.usd", Stricter),
    ("session.budgets.model_calls", Stricter),
    ("session.budgets.output_tokens", Stricter),
    ("session.budgets.wall_time", Stricter),
    ("session.budgets.session_usd", Stricter),
    ("session.budgets.session_model_calls", Stricter),
    ("session.budgets.session_output_tokens", Stricter),
    ("session.budgets.session_wall_time", Stricter),
    ("permissions.allow", Added),
    ("permissions.ask", Added),
    ("permissions.deny", Added),
    ("compaction.auto", Project),
    ("compaction.threshold", Project),
    ("compaction.tool_results", Project),
    ("compaction.snip", Project),
    ("compaction.microcompact", Project),
    ("compaction.collapse", Project),
    ("compaction.keep_recent_tokens", Project),
    ("compaction.max_failures", Project),
    // The user's `bash_timeout_max` limits this value.
    ("tools.bash_timeout", Project),
    ("tools.parallel", Stricter),
    ("tools.background_commands", Stricter),
    ("tools.max_result_size", Stricter),
    ("tools.max_results_total", Stricter),
];

/// Tables and keys of the user's configuration that a project may not set: keys and addresses of providers, the
/// limits of commands, and the settings of the whole daemon.
pub const USER_KEYS: &[&str] = &[
    "daemon",
    "providers",
    "model",
    "models.quick",
    "models.task",
    "models.reasoning",
    "compaction.model",
    "session.response_cache",
    "session.repeat_limit",
    // With this setting, each answer costs twice as much.
    "session.binary_feedback",
    "permissions.safe_commands",
    "permissions.allow_bypass",
    "permissions.allow_bypass_as_root",
    "permissions.bypass_guard",
    "permissions.unattended",
    "sandbox",
    "limits",
    "retry",
    "tools.edit_requires_read",
    "tools.bash_timeout_max",
    "tools.background_timeout",
    "tools.env",
    "tools.cgroup",
    "tools.memory",
    "tools.processes",
    "tools.file_size",
    "tools.cpu_time",
    "tools.web_allowed_private",
    "tools.web_proxy",
    "tools.max_spool_size",
    "tools.max_spool_total",
    "tools.max_checkpoint_size",
    "hooks",
    "jobs",
    "mcp",
    "knowledge",
    "telemetry",
];

/// How a project's file may use a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// The file may set the key.
    Permitted(Precedence),
    /// The key is a table that contains permitted keys.
    Table,
    /// Only the user may set it.
    UserOnly,
    /// The key does not exist. The value is the most similar known key, if there is one.
    Unknown(Option<&'static str>),
}

/// Longest name that is compared with the known ones: the comparison takes quadratic time.
const MAX_COMPARED_BYTES: usize = 100;

/// How a project's file may use the key with this dotted name.
#[must_use]
pub fn key_use(key: &str) -> KeyUse {
    if let Some((_, precedence)) = PROJECT_KEYS.iter().find(|(known, _)| *known == key) {
        return KeyUse::Permitted(*precedence);
    }
    if USER_KEYS.iter().any(|known| is_in(key, known)) {
        return KeyUse::UserOnly;
    }
    let names = || PROJECT_KEYS.iter().map(|(known, _)| *known).chain(USER_KEYS.iter().copied());
    if names().any(|known| is_in(known, key)) {
        return KeyUse::Table;
    }
    let (above, name) = key.rsplit_once('.').map_or(("", key), |(above, name)| (above, name));
    if name.len() > MAX_COMPARED_BYTES {
        return KeyUse::Unknown(None);
    }
    // Compare with the names in the same table.
    let in_table = names().filter_map(|known| {
        let rest = if above.is_empty() { known } else { known.strip_prefix(above)?.strip_prefix('.')? };
        rest.split('.').next()
    });
    let nearest = in_table
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    KeyUse::Unknown(nearest.map(|(_, known)| known))
}

/// Whether a key is this one or in this table.
fn is_in(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_keys_are_permitted_refused_or_unknown() {
        for (key, expected) in [
            ("models.main", KeyUse::Permitted(Project)),
            ("session.budgets", KeyUse::Table),
            ("session", KeyUse::Table),
            ("providers.x.base_url", KeyUse::UserOnly),
            ("tools.web_proxy", KeyUse::UserOnly),
            ("sesion", KeyUse::Unknown(Some("session"))),
            ("session.budgets.model_cals", KeyUse::Unknown(Some("model_calls"))),
            ("session.mdoe", KeyUse::Unknown(Some("mode"))),
            ("zork", KeyUse::Unknown(None)),
            ("models.main.x", KeyUse::Unknown(None)),
        ] {
            assert_eq!(key_use(key), expected, "{key}");
        }
    }
}
