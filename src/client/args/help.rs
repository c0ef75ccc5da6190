//! The command line as users see it: commands in groups, other names of commands, examples.

use clap::{Command as ClapCommand, CommandFactory as _};

use super::Cli;
use crate::terminal::style::{StyledLine, Tone};

/// The groups of commands in the order of the help. Each visible command is in one group.
pub const GROUPS: [(&str, &[&str]); 7] = [
    ("Work", &["run", "jobs", "attach", "submit", "queue", "wait", "result", "abort", "kill"]),
    ("Answer", &["approvals", "approve", "deny", "answer", "feedback"]),
    ("Look", &["ps", "top", "logs", "events", "diff", "context", "inspect", "cost", "stats"]),
    (
        "Change sessions",
        &[
            "mode",
            "update",
            "rename",
            "compact",
            "fork",
            "rewind",
            "archive",
            "export",
            "import",
            "merge",
            "worktrees",
            "rm",
            "prune",
        ],
    ),
    ("Rules and trust", &["rules", "permissions", "trust", "untrust", "audit"]),
    (
        "Models and extensions",
        &["login", "models", "agents", "commands", "memory", "mcp", "acp", "knowledge"],
    ),
    ("Daemon", &["daemon", "host", "config", "doctor", "backup", "rpc", "completions", "demo", "uninstall"]),
];

/// Names that users of other programs type.
const ALIASES: [(&str, &[&str]); 5] = [
    ("ps", &["ls", "list"]),
    ("abort", &["stop"]),
    ("attach", &["resume", "continue"]),
    ("rm", &["delete"]),
    ("inspect", &["show"]),
];

/// The groups of the options of `run`, which has more of them than a reader can search. Others stay below `Options`.
const RUN_OPTIONS: [(&str, &[&str]); 5] = [
    (
        "Session",
        &[
            "work_dir",
            "add_dir",
            "title",
            "continued",
            "background",
            "agent",
            "coordinator",
            "env",
            "simple",
            "binary_feedback",
            "worktree",
        ],
    ),
    (
        "Permissions and tools",
        &["approval_mode", "trust", "tools", "without_tools", "safe_mode", "mcp_config"],
    ),
    (
        "Model",
        &[
            "model",
            "fallback_model",
            "think",
            "system_prompt",
            "append_system_prompt",
            "temperature",
            "top_p",
            "stop",
            "metadata",
        ],
    ),
    ("Limits", &["max_usd", "max_turns", "max_tokens", "max_time"]),
    ("Output", &["output", "output_schema", "quiet", "raw", "thinking"]),
];

/// Examples below the help of a command.
const EXAMPLES: [(&str, &[&str]); 17] = [
    ("run", &["agentctl run \"the tests fail; find out why\"", "git diff | agentctl run \"review this\""]),
    ("attach", &["agentctl attach", "agentctl attach 12"]),
    (
        "submit",
        &["agentctl submit 12 \"also update the docs\"", "agentctl submit . --steer \"use io::Error\""],
    ),
    ("wait", &["agentctl wait 12 && agentctl result 12", "agentctl wait . --until requires_action"]),
    ("result", &["agentctl result", "agentctl result 12 --json"]),
    (
        "ps",
        &["agentctl ps -A", "agentctl ps --format '{{.Number}} {{.Title}}: {{.Status}}'", "agentctl ps -w"],
    ),
    ("logs", &["agentctl logs", "agentctl logs 12 -f", "agentctl logs 12 --events --since 15m"]),
    ("events", &["agentctl events 12 -f --json", "agentctl events"]),
    ("inspect", &["agentctl inspect 12", "agentctl inspect 12.1 --format '{{json .input}}'"]),
    ("approve", &["agentctl approve 12.1", "agentctl approve 12.1 --session"]),
    ("deny", &["agentctl deny 12.1 --feedback \"use the test database\""]),
    ("rules", &["agentctl rules", "agentctl rules add 'Bash(cargo test:*)'"]),
    ("prune", &["agentctl prune --dry-run", "agentctl prune -A --older-than 30d -f"]),
    ("stats", &["agentctl stats", "agentctl stats --since 7d --json"]),
    ("config", &["agentctl config show --origin"]),
    (
        "host",
        &[
            "agentctl host add build ssh://ann@build.example.com",
            "agentctl -H build run -w /srv/shop \"fix the tests\"",
        ],
    ),
    ("login", &["agentctl login anthropic", "pass show openai | agentctl login openai"]),
];

/// Builds the whole command line. It has no effect outside memory.
pub fn command() -> ClapCommand {
    let mut command = Cli::command();
    let groups = groups(&command);
    for (name, aliases) in ALIASES {
        command = command.mut_subcommand(name, |it| it.visible_aliases(aliases));
    }
    for (name, examples) in EXAMPLES {
        command = command
            .mut_subcommand(name, |it| it.after_help(format!("Examples:\n  {}", examples.join("\n  "))));
    }
    for (heading, options) in RUN_OPTIONS {
        for option in options {
            command =
                command.mut_subcommand("run", |it| it.mut_arg(*option, |arg| arg.help_heading(heading)));
        }
    }
    for option in ["host", "socket", "config", "no_start", "plain"] {
        command = command.mut_arg(option, |it| it.help_heading("Global options"));
    }
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}{{after-help}}");
    command.help_template(template).after_help(
        "\nA session is named by its number (12), its id or a unique start of it, its title, or `.` for the newest one of \
         this folder. `agentctl help COMMAND` says more.",
    )
}

/// The commands in their groups, one line for each.
fn groups(command: &ClapCommand) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(ClapCommand::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            push_row(&mut text, &format!("  {name:<12}  "), about.lines().next().unwrap_or_default());
        }
    }
    for (heading, is_global) in [("Conversation, without a command", false), ("Global options", true)] {
        text.push_str(&format!("\n{heading}:\n"));
        for option in command.get_arguments().filter(|it| it.is_global_set() == is_global) {
            let short = option.get_short().map_or_else(|| "    ".into(), |short| format!("-{short}, "));
            let value = option.get_value_names().filter(|_| option.get_action().takes_values());
            let value = value.and_then(|names| names.first()).map(|name| format!(" <{name}>"));
            let name =
                format!("  {short}--{}{}", option.get_long().unwrap_or_default(), value.unwrap_or_default());
            let about = option.get_help().map(ToString::to_string).unwrap_or_default();
            push_row(&mut text, &format!("{name:<22}  "), &about);
        }
    }
    text.push_str("  -h, --help            This help; after a command, that of the command\n");
    text.push_str("  -V, --version         The version\n");
    // Remove braces, because the template would treat them as tags.
    text.replace(['{', '}'], "")
}

/// Adds a name with its meaning, which continues below itself within a terminal of 80 columns.
fn push_row(text: &mut String, name: &str, about: &str) {
    let indent = name.chars().count();
    for (nth, row) in StyledLine::new(Tone::Plain, about).wrap(80 - indent.min(40)).iter().enumerate() {
        let lead = if nth == 0 { name.to_owned() } else { " ".repeat(indent) };
        text.push_str(format!("{lead}{}", row.plain()).trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        for subcommand in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            let count = listed.iter().filter(|name| **name == subcommand.get_name()).count();
            assert_eq!(count, 1, "{} is in {count} groups", subcommand.get_name());
        }
        assert!(listed.iter().all(|name| command.find_subcommand(name).is_some()));
    }

    #[test]
    fn help_is_grouped_and_fits_80_columns() {
        let mut command = command();
        command.clone().debug_assert();
        let help = command.render_help().to_string();
        for text in ["Work:", "Answer:", "Daemon:", "Global options:", "  ps            "] {
            assert!(help.contains(text), "{text} is missing:\n{help}");
        }
        assert!(!help.contains("Commands:"), "{help}");
        let groups = groups(&Cli::command());
        assert!(groups.lines().all(|line| crate::terminal::style::width(line) <= 80), "{groups}");
        assert!(!groups.contains('…'), "no text is cut: {groups}");
        let run =
            command.find_subcommand_mut("run").map(|run| run.render_help().to_string()).unwrap_or_default();
        let places: Vec<_> =
            RUN_OPTIONS.iter().map(|(heading, _)| run.find(&format!("\n{heading}:"))).collect();
        assert!(places.iter().all(Option::is_some), "{run}");
    }

    #[test]
    fn other_names_of_commands_are_accepted() {
        for line in ["agentctl ls", "agentctl stop 12", "agentctl resume", "agentctl show 12"] {
            let parsed = command().try_get_matches_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
    }
}
