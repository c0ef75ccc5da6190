//! Clients of databases: commands that run code, write files or change the server.

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::stem;
use crate::shell::programs::operands::operands;
use crate::shell::programs::special::{reason_for, reason_for_any};

/// Without a command these clients execute their input: a pipe, a file, a here-document.
const RUNS_INPUT: &str = "without a command it runs its input";

/// Whether a cluster of short options, or a long one, contains the client's command (or only requests
/// help or the version).
fn gives_command(text: &str, command: &[char], values: &[char], long: &[&str]) -> bool {
    if text.starts_with("--") {
        let name = text.split('=').next().unwrap_or(text);
        return long.contains(&name);
    }
    let letters = text.strip_prefix('-').unwrap_or_default();
    letters.chars().take_while(|letter| !values.contains(letter)).any(|letter| command.contains(&letter))
}

/// Commands of redis that run code or change the server, in any spelling.
pub(crate) fn redis(call: &CommandCall<'_>) -> Option<String> {
    const CHANGES: &[&str] = &[
        "eval",
        "eval_ro",
        "evalsha",
        "evalsha_ro",
        "config",
        "module",
        "debug",
        "slaveof",
        "replicaof",
        "script",
        "function",
        "migrate",
        "save",
        "bgsave",
        "shutdown",
        "acl",
        "fcall",
        "fcall_ro",
        "bgrewriteaof",
    ];
    let has_command = !operands(call.words, "-h -p -n -a -u --user --pass -i -r").is_empty()
        || call.words.iter().any(|word| matches!(word.text.as_str(), "--version" | "--help" | "-v"));
    if !has_command {
        return reason_for(&call.words[0].text, RUNS_INPUT);
    }
    reason_for_any(call, "this runs code or changes the server", |text| {
        CHANGES.contains(&text.to_ascii_lowercase().as_str())
    })
}

/// sqlite3: dot commands run and write; so do some functions.
pub(crate) fn sqlite(call: &CommandCall<'_>) -> Option<String> {
    let has_command =
        operands(call.words, "-separator -nullvalue -newline -mmap -maxsize -cmd -init -vfs").len() > 1
            || call.words.iter().any(|word| matches!(word.text.trim_start_matches('-'), "version" | "help"));
    if !has_command {
        return reason_for(&call.words[0].text, RUNS_INPUT);
    }
    reason_for_any(call, "this may run a program, load code or write a file", |text| {
        let lower = text.to_ascii_lowercase();
        let address = lower.strip_prefix("file:").map(|path| path.split('?').next().unwrap_or(path));
        if address.is_some_and(|path| call.is_outside(path)) {
            return true;
        }
        let plain = statement(text);
        let duck = call.words[0].text.ends_with("duckdb");
        let loads = |part: &str| {
            ["load ", "export ", "import ", "set "].iter().any(|w| part.trim_start().starts_with(w))
        };
        if duck && plain.split(';').any(loads) {
            return true;
        }
        lower.lines().any(|line| {
            line.trim_start().starts_with('.')
                && !line.trim_start().starts_with("./")
                && !line.trim_start().starts_with("../")
                && line.len() > 1
                && !is_harmless_dot(line.trim())
        }) || [
            "load_extension",
            "writefile",
            "edit(",
            "readfile",
            "attach",
            "into '",
            "into \"",
            "fts3_tokenizer",
            "fsdir(",
            "zipfile(",
            "store_directory",
            "copy ",
            "copy(",
            "install ",
            "httpfs",
        ]
        .iter()
        .any(|word| plain.contains(word))
    })
}

/// Whether a dot command of sqlite3 only shows something.
fn is_harmless_dot(line: &str) -> bool {
    let command = line.split_whitespace().next().unwrap_or_default();
    matches!(
        command,
        ".tables"
            | ".schema"
            | ".databases"
            | ".indexes"
            | ".indices"
            | ".headers"
            | ".mode"
            | ".help"
            | ".show"
            | ".stats"
            | ".dump"
    ) && !line.contains('|')
}

/// psql: backslash commands and COPY access programs and files.
pub(crate) fn psql(call: &CommandCall<'_>) -> Option<String> {
    reason_for_any(call, "this may run a program or write a file", |text| {
        let lower = text.to_ascii_lowercase();
        lower.contains('\\') && !is_harmless_backslash(&lower)
            || lower.contains("program")
            || has_any_word(&lower, &["copy", "language", "extension", "load"])
            || statement(text).contains("alter system")
            || lower.contains("lo_export")
            || lower.contains("lo_import")
            || lower.contains("pg_read")
            || lower.contains("pg_write")
    })
}

/// The options and operands of psql itself.
pub(crate) fn psql_client(call: &CommandCall<'_>) -> Option<String> {
    let values = ['h', 'p', 'U', 'd', 'T', 'v', 'F', 'P', 'o', 'L', 'f', 'R'];
    let long = ["--command", "--list", "--version", "--help"];
    let has_command =
        call.words[1..].iter().any(|word| gives_command(&word.text, &['c', 'l', 'V', '?'], &values, &long));
    let granted_words = &call.words[..call.granted_count.min(call.words.len())];
    let has_command =
        has_command || granted_words.iter().any(|word| matches!(word.text.as_str(), "-f" | "--file"));
    if has_command { psql(call) } else { reason_for(&call.words[0].text, RUNS_INPUT) }
}

/// Whether a backslash command of psql only shows something.
fn is_harmless_backslash(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("\\d") && text.matches('\\').count() == 1 && !text.contains(['|', '>', '`'])
        || matches!(text, "\\l" | "\\l+" | "\\conninfo" | "\\q")
}

/// mysql and its relatives: statements and options that run programs or write files.
pub(crate) fn mysql(call: &CommandCall<'_>) -> Option<String> {
    let client = matches!(stem(&call.words[0].text), "mysql" | "mariadb" | "mycli" | "mysqlsh");
    let values = ['h', 'P', 'u', 'p', 'D', 'S'];
    let long = ["--execute", "--version", "--help"];
    let has_command =
        call.words[1..].iter().any(|word| gives_command(&word.text, &['e', 'V', '?'], &values, &long));
    if client && !has_command {
        return reason_for(&call.words[0].text, RUNS_INPUT);
    }
    reason_for_any(call, "this may run a program or write a file", |text| {
        // `--loose-tee` is `--tee`, and `_` is `-`.
        let has_loose_prefix = text.starts_with("--loose") || text.starts_with("--enable-l");
        if has_loose_prefix
            || text.starts_with("--") && text.split('=').next().is_some_and(|name| name.contains('_'))
        {
            return true;
        }
        let lower = statement(text);
        [
            "\\",
            "soname",
            "plugin",
            "system ",
            "source ",
            "outfile",
            "dumpfile",
            "load data",
            "load_file",
            "pager ",
            "tee ",
            "edit",
        ]
        .iter()
        .any(|word| lower.contains(word))
    })
}

/// A statement for a database in lower case, with single blanks and no blank before a bracket.
fn statement(text: &str) -> String {
    let mut plain = text.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    while plain.contains(" (") {
        plain = plain.replace(" (", "(");
    }
    plain
}

/// Whether a statement contains one of the words.
fn has_any_word(statement: &str, words: &[&str]) -> bool {
    statement.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| words.contains(&word))
}
