//! Arguments that look like an escape option but are harmless, by their value or by the words around
//! them. Also arguments that look like one in programs without a table entry.

use crate::shell::lex::word::Word;
use crate::shell::programs::call::CommandCall;

/// Whether the value of an option is not a path, even if it looks like one: `--base=/app`, `--exclude
/// /x/`.
pub(crate) fn is_no_path(option: &str) -> bool {
    const OTHERS: &[&str] = &[
        "base", "url", "href", "public", "pattern", "ignore", "exclude", "include", "filter", "grep",
        "match", "regex", "name", "select", "expr", "route", "prefix",
    ];
    option.len() > 2 && OTHERS.iter().any(|word| option.to_ascii_lowercase().contains(word))
}

/// Words that suggest an escape option in unknown programs.
const SUSPICIOUS: &[&str] = &[
    "exec",
    "execute",
    "command",
    "cmd",
    "shell",
    "config",
    "conf",
    "cfg",
    "configuration",
    "settings",
    "rc",
    "rcfile",
    "plugin",
    "plugins",
    "preload",
    "require",
    "loader",
    "eval",
    "script",
    "hook",
    "hooks",
    "pager",
    "editor",
    "browser",
    "preprocessor",
    "postprocessor",
    "program",
    "interpreter",
    "rsh",
    "proxycommand",
    "library",
    "module",
    "extension",
    "output",
    "outfile",
    "out",
    "upload",
    "init",
    "python",
    "compiler",
    "linker",
    "wrapper",
    "runner",
    "inject",
    "helper",
    "checker",
    "sequencer",
    "cc",
    "cxx",
];

pub(crate) fn is_suspicious(name: &str) -> bool {
    name.len() > 2
        && !name.starts_with("no-")
        && name.split(['-', '_', '.']).any(is_suspicious_part)
        && !name.ends_with("format")
        && !name.ends_with("color")
        && !name.ends_with("version")
}

/// Whether a part of an option's name is suspicious, or an inner part such as `output` in `outputFile`.
fn is_suspicious_part(part: &str) -> bool {
    let mut begin = 0;
    let mut humps = part.char_indices().filter(|(_, c)| c.is_ascii_uppercase()).map(|(at, _)| at);
    loop {
        let next = humps.next();
        let hump = &part[begin..next.unwrap_or(part.len())];
        if SUSPICIOUS.iter().any(|word| word.eq_ignore_ascii_case(hump)) {
            return true;
        }
        let Some(at) = next else { return SUSPICIOUS.iter().any(|word| word.eq_ignore_ascii_case(part)) };
        begin = at;
    }
}

/// Whether an option that usually needs a request has no effect here: no file is written, or the plugin
/// is disabled.
pub(crate) fn has_no_effect(names: &str, option: &str, value: &str) -> bool {
    match names {
        "curl" => matches!(option, "-o" | "--output") && matches!(value, "/dev/null" | "-"),
        "wget|wget2" => matches!(option, "-O" | "--output-document") && matches!(value, "/dev/null" | "-"),
        _ => is_built_in(names, option, value),
    }
}

/// Whether the value of an option that loads code is a component that the program contains.
fn is_built_in(names: &str, option: &str, value: &str) -> bool {
    const REPORTS: &[&str] = &[
        "dot",
        "spec",
        "default",
        "verbose",
        "basic",
        "json",
        "junit",
        "tap",
        "list",
        "min",
        "nyan",
        "progress",
        "html",
        "github-actions",
        "line",
        "text",
        "text-summary",
        "lcov",
        "stylish",
        "compact",
        "unix",
        "tty",
        "string",
        "documentation",
        "checkstyle",
        "hanging-process",
    ];
    const SURROUNDINGS: &[&str] = &[
        "jsdom",
        "node",
        "happy-dom",
        "forks",
        "threads",
        "chromium",
        "firefox",
        "webkit",
        "chrome",
        "electron",
        "edge",
        "v8",
        "istanbul",
    ];
    const TOOLS: &[&str] = &[
        "targets",
        "query",
        "graph",
        "commands",
        "deps",
        "inputs",
        "list",
        "rules",
        "missingdeps",
        "compdb",
    ];
    match names.split('|').next() {
        Some("ninja") => option == "-t" && TOOLS.contains(&value),
        // Without a name, tsc uses the project's configuration.
        Some("tsc") => option == "-c" && (value.is_empty() || value.starts_with('-')),
        Some("dotnet") => {
            let logger = value.split(';').next().unwrap_or_default();
            matches!(option, "-l" | "--logger")
                && matches!(logger, "trx" | "console" | "html")
                && !value.contains('/')
        }
        Some("pytest") => option == "-p" && value.starts_with("no:"),
        Some("eslint") => matches!(option, "-f" | "--format" | "--formatter") && REPORTS.contains(&value),
        Some("jest") => match option {
            "-R" | "--reporter" | "--reporters" | "--coverageReporters" | "--format" => {
                REPORTS.contains(&value)
            }
            "--env" | "--environment" | "--testEnvironment" | "--pool" | "--browser"
            | "--coverageProvider" => SURROUNDINGS.contains(&value),
            // In vitest it takes no value.
            "--globals" => !value.starts_with('{'),
            _ => false,
        },
        Some("gem") => {
            matches!(option, "-f" | "--format")
                && (REPORTS.contains(&value) || matches!(value, "p" | "d" | "h" | "j"))
        }
        _ => false,
    }
}

/// Verbs that are followed only by names of objects. After them, a word such as `exec` is a name and
/// not a command.
const NAMES_FOLLOW: &[(&str, &[&str])] = &[
    ("cargo", &["test", "bench", "build", "check", "clippy", "doc", "tree", "search"]),
    ("docker", &["logs", "inspect", "ps", "images", "stats", "top", "port", "history", "diff"]),
    ("podman", &["logs", "inspect", "ps", "images", "stats", "top", "port", "history", "diff"]),
    ("kubectl", &["get", "describe", "logs", "top", "explain"]),
    ("oc", &["get", "describe", "logs", "explain"]),
    (
        "systemctl",
        &["status", "show", "is-active", "is-enabled", "is-failed", "list-units", "list-unit-files"],
    ),
    (
        "npm",
        &[
            "view",
            "info",
            "show",
            "search",
            "ls",
            "list",
            "why",
            "explain",
            "install",
            "i",
            "uninstall",
            "ci",
        ],
    ),
    ("pnpm", &["view", "info", "search", "ls", "list", "why", "install", "i", "add", "remove"]),
    ("yarn", &["info", "list", "why", "add", "remove", "install"]),
    ("bun", &["add", "install", "remove"]),
];

/// Whether the word at `at` follows such a verb.
pub(crate) fn is_behind_names(words: &[Word], at: usize) -> bool {
    let (Some(program), Some(verb)) = (words.first(), words.get(1)) else { return false };
    let row = NAMES_FOLLOW.iter().find(|(name, _)| *name == program.text);
    at > 1 && verb.is_literal() && row.is_some_and(|(_, verbs)| verbs.contains(&verb.text.as_str()))
}

/// Whether an option is an escape option only in another program of the same row.
pub(crate) fn belongs_to_other_program(call: &CommandCall<'_>, text: &str) -> bool {
    // `pnpm -r build` builds every package of the workspace; `bun -r x` loads x.
    let is_word = |nth: usize, wanted: &str| call.words.get(nth).is_some_and(|word| word.text == wanted);
    // `docker run -v` mounts a folder; compose removes the volumes that belong to it.
    let global = matches!(text, "-g" | "--global") && is_word(0, "npm");
    let lists =
        ["ls", "list", "outdated", "root", "bin", "prefix", "view"].iter().any(|verb| is_word(1, verb));
    global && lists
        // `prettier -c` only checks files; `eslint -c` names a configuration.
        || text == "-c" && is_word(0, "prettier")
        || text == "-f" && (is_word(0, "pip") && is_word(1, "show") || is_word(0, "man"))
        || text == "-r" && is_word(0, "pnpm")
        || text == "-v" && is_word(1, "compose") && call.words.iter().any(|word| word.text == "down")
}

/// Whether a word for a kind of object is followed by a read-only verb: `docker volume ls`.
pub(crate) fn is_read_only(words: &[Word], at: usize) -> bool {
    const KINDS: &[&str] = &[
        "volume",
        "context",
        "config",
        "secret",
        "system",
        "plugin",
        "network",
        "buildx",
        "builder",
        "node",
        "stack",
        "service",
        "manifest",
        "rollout",
        "auth",
        "state",
        "workspace",
        "repo",
        "registry",
        "alias",
        "extension",
        "gist",
        "ssh-key",
        "gpg-key",
        "configure",
        "token",
        "owner",
        "snippet",
        "toolchain",
        "component",
        "target",
        "override",
        "tool",
        "python",
    ];
    const READ_ONLY_VERBS: &[&str] = &[
        "ls",
        "list",
        "inspect",
        "df",
        "view",
        "get",
        "status",
        "show",
        "info",
        "history",
        "get-contexts",
        "current-context",
        "can-i",
    ];
    let is = |at: Option<usize>, of: &[&str]| {
        at.and_then(|at| words.get(at)).is_some_and(|word| of.contains(&word.text.as_str()))
    };
    let bundles =
        at == 1 && words[0].text == "bundle" && matches!(words[at].text.as_str(), "install" | "update");
    let composes = words.get(1).is_some_and(|word| word.text == "compose") && words[at].text == "config";
    let reads = |word: &Word| word.text.starts_with("list-") || word.text.starts_with("get-");
    let of_iam = words[0].text == "aws" && words[at].text == "iam" && words.get(at + 1).is_some_and(reads);
    // `yarn upgrade` upgrades dependencies. In the other programs of the row, `upgrade` upgrades the
    // program itself.
    let of_yarn = words[0].text == "yarn" && words[at].text == "upgrade";
    of_iam
        || of_yarn
        || is(Some(at), KINDS)
            && (is(at.checked_add(1), READ_ONLY_VERBS) || is(at.checked_sub(1), &["search"]))
        || composes
        || bundles
}

/// For programs that accept abbreviated commands: their harmless commands and aliases, even if one is a
/// prefix of a dangerous one.
pub(crate) fn abbreviates(program: &str) -> Option<&'static str> {
    match program {
        "npm" => Some(
            "i in ins inst insta instal install isntall add ci ic cit it install-test t tst test start stop restart rb \
            rebuild r rm un uninstall remove up update udpate ls list la ll outdated audit run rum run-script v view info \
            show s se search find ping prefix prune pkg pack query root sbom shrinkwrap stars version why explain whoami \
            dedupe ddp diff docs doctor fund help",
        ),
        "bundle" | "bundler" => Some(
            "install i update u list ls show outdated check info doctor clean lock pack package platform version help remove",
        ),
        "composer" => Some(
            "install i update u upgrade require r remove rm uninstall show info list outdated why depends why-not prohibits \
            dump-autoload dumpautoload validate check-platform-reqs audit test run search licenses suggests status diagnose \
            bump fund about clear-cache cc clearcache reinstall help",
        ),
        "hg" | "chg" => Some(
            "status st diff log commit ci add update up co pull push merge summary sum shelve show id in out s",
        ),
        "gradle" | "gradlew" => Some("p"),
        _ => None,
    }
}

/// Whether a command is an abbreviation of one that needs a request.
pub(crate) fn is_short_for(text: &str, known: &str, asks: &[&str]) -> bool {
    !known.split_whitespace().any(|own| own == text) && asks.iter().any(|command| command.starts_with(text))
}
