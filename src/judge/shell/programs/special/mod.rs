//! Checks that options alone cannot express: programs within arguments (sed, awk, git), operands that
//! are written, values with a leading sign.

mod archives;
mod build;
mod clients;
mod code;
mod databases;
mod git;
mod network;
mod projects;
mod rust;
mod scripts;

pub(crate) use archives::{archive, seven, tar};
pub(crate) use build::{cmake, compiler, java_properties, ldd, make, protoc};
pub(crate) use clients::{cloud, gh, gpg, helm, kubectl, systemctl};
pub(crate) use code::{dotnet, go, npm, pytest, uv};
pub(crate) use databases::{mysql, psql, psql_client, redis, sqlite};
pub(crate) use git::{GIT_VALUES, clone, git, git_config};
pub(crate) use network::{curl, http_items, protocols, remote, rsync};
pub(crate) use projects::{
    cargo_watch, coverage, deno, just, module, operands_are_code, python_module, sbt, scons, tests,
};
pub(crate) use rust::{cargo, cargo_fmt, cargo_test, rustc, toolchain};
pub(crate) use scripts::{awk, sed};

use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::escape_options::operands;
use crate::shell::programs::lookup::verb;

fn reason_for(text: &str, what: &str) -> Option<String> {
    Some(format!("{text}: {what}"))
}

/// The first word beyond the grant for which `wrong` holds.
fn any(call: &CommandCall<'_>, what: &str, wrong: impl Fn(&str) -> bool) -> Option<String> {
    call.ungranted_words().find(|(_, text)| wrong(text)).and_then(|(_, text)| reason_for(text, what))
}

/// The first word after `--` for which `wrong` holds. The words after `--` belong to another program.
/// `wrong` receives each of them with the word after it.
fn wrong_after_dashes(call: &CommandCall<'_>, wrong: impl Fn(&str, &str) -> bool) -> Option<String> {
    let words = call.words;
    let dashes = words.iter().position(|word| word.text == "--")?;
    words.iter().enumerate().skip((dashes + 1).max(call.granted)).find_map(|(at, word)| {
        let next = words.get(at + 1).map_or("", |word| word.text.as_str());
        if wrong(&word.text, next) {
            reason_for(&word.text, "this makes the program behind run another")
        } else {
            None
        }
    })
}

/// `rm`: this check always passes, because the path checks judge recursive removal. It exists only for
/// `xargs`.
pub(crate) fn remove(_: &CommandCall<'_>) -> Option<String> {
    None
}

/// `test -v 'a[$(id)]'` evaluates the subscript, and so do `-R` and arithmetic comparison in `[`.
pub(crate) fn test(call: &CommandCall<'_>) -> Option<String> {
    if !matches!(call.words[0].text.as_str(), "test" | "[") {
        return None;
    }
    let risky = call.words.iter().any(|word| {
        matches!(word.text.as_str(), "-v" | "-R" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-t")
    });
    if risky && call.words.iter().any(|word| word.text.contains('[') && word.text.len() > 1) {
        return reason_for("test", "a subscript is evaluated");
    }
    any(call, "the name of a variable is evaluated", |text| matches!(text, "-v" | "-R"))
}

/// `printf %n NAME` assigns to a variable, for example `PATH` (printf(3), which bash follows).
pub(crate) fn printf(call: &CommandCall<'_>) -> Option<String> {
    let at = match call.words.get(1) {
        Some(word) if word.text == "--" => 2,
        _ => 1,
    };
    let format = call.words.get(at).filter(|_| at >= call.granted)?;
    let assigns = format.text.split('%').skip(1).any(|rest| {
        let flags = |c: char| c.is_ascii_digit() || "-+ #'*.hlLjqtzI".contains(c);
        rest.trim_start_matches(flags).starts_with('n')
    });
    if assigns || !format.is_literal() {
        return reason_for(&format.text, "a format may assign a variable");
    }
    None
}

pub(crate) fn uniq(call: &CommandCall<'_>) -> Option<String> {
    second_operand(call, "-f -s -w --skip-fields --skip-chars --check-chars")
}

pub(crate) fn xxd(call: &CommandCall<'_>) -> Option<String> {
    second_operand(call, "-c -g -l -s -o -n -cols -groupsize -len -seek -name -R")
}

fn second_operand(call: &CommandCall<'_>, values: &str) -> Option<String> {
    let found = operands(call.words, values);
    // One word may expand to several.
    let several = |word: &Word| word.marks.has(Marks::GLOB) || word.marks.has(Marks::BRACE);
    if let Some((_, word)) = found.iter().find(|(at, word)| *at >= call.granted && several(word)) {
        return reason_for(&word.text, "the second operand is written");
    }
    let (_, word) = found.iter().skip(1).find(|(at, _)| *at >= call.granted)?;
    reason_for(&word.text, "the second operand is written")
}

/// Pagers run `+cmd` as a command. A line number, the end and a pattern of plain characters are
/// harmless, because they are positions in the text.
pub(crate) fn plus(call: &CommandCall<'_>) -> Option<String> {
    let is_place = |text: &str| {
        let is_pattern = |rest: &str| rest.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_'));
        matches!(text, "G" | "F")
            || !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
            || text.strip_prefix('/').is_some_and(is_pattern)
    };
    any(call, "a command of the pager can run programs", |text| {
        text.strip_prefix('+').is_some_and(|rest| !is_place(rest))
    })
}

/// yq: expressions that load files, read the environment or run code; `-i` is in the table.
pub(crate) fn yq(call: &CommandCall<'_>) -> Option<String> {
    any(call, "the expression loads or runs", |text| {
        ["load(", "load_", "system(", "env(", "eval("].iter().any(|word| text.contains(word))
    })
}

/// jq: modules are code from files.
pub(crate) fn jq(call: &CommandCall<'_>) -> Option<String> {
    let loads = |part: &str| {
        ["import", "include"].iter().any(|word| {
            part.trim_start().strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with('"'))
        })
    };
    any(call, "a module is loaded", |text| text.split([';', '\n']).any(loads))
}

/// man: a path is a page from a file, which can choose the programs that format it.
pub(crate) fn man(call: &CommandCall<'_>) -> Option<String> {
    any(call, "a page from a file", |text| !text.starts_with('-') && text.contains('/'))
}

pub(crate) fn mlr(call: &CommandCall<'_>) -> Option<String> {
    any(call, "the expression may run a program or write a file", |text| {
        ["system", "exec", "tee", "emit", "print", "dump", "split", ">", "|"]
            .iter()
            .any(|word| text.contains(word))
    })
}

pub(crate) fn pandoc(call: &CommandCall<'_>) -> Option<String> {
    let format = |text: &str| text.ends_with(".lua") || text.contains("pdf");
    any(call, "code is loaded or a program is run", format)
}

/// ImageMagick: `PREFIX:` before a name selects the reader, `@` and `|` are lists and programs.
pub(crate) fn magick(call: &CommandCall<'_>) -> Option<String> {
    any(call, "a program may be run, or a script", |text| {
        text.starts_with(['@', '|']) || !text.starts_with('-') && text.contains(':') || text.contains(".msl")
    })
}

/// Options from a file: `@file`; code after a colon; a class that writes the report.
pub(crate) fn response(call: &CommandCall<'_>) -> Option<String> {
    let class = |text: &str| text.contains('.') && !text.contains('/');
    let is_program = |name: &str| crate::shell::programs::lookup::stem(&call.words[0].text) == name;
    let named = call.ungranted_words().find(|(at, text)| {
        let before = call.words[at - 1].text.as_str();
        text.starts_with("--output-format=") && class(text)
            || before == "--output-format" && class(text)
            || (before == "-f" && class(text) || text.starts_with("-f") && class(text))
                && is_program("pylint")
            || text.starts_with("-p") && is_program("rollup")
    });
    if let Some((_, text)) = named {
        return reason_for(text, "code named on the command line");
    }
    any(call, "options from a file, or code", |text| {
        text.starts_with('@') || text.starts_with("--inject:") || text.starts_with("--alias:")
    })
}

pub(crate) fn sets_arp(call: &CommandCall<'_>) -> Option<String> {
    let name = call.words[0].text.as_str();
    if name != "arp" {
        return None;
    }
    any(call, "this changes the system", |text| matches!(text, "-s" | "-d" | "--set" | "--delete"))
}

/// TeX: its commands can be given instead of a file.
pub(crate) fn latex(call: &CommandCall<'_>) -> Option<String> {
    any(call, "commands, or a format with commands", |text| text.contains('\\') || text.starts_with('&'))
}

/// docker: a context outside the workspace is sent to the daemon of docker.
pub(crate) fn docker(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    if let Some(project) = compose_project(call) {
        return reason_for(project, "this works on the project that a file names");
    }
    if let Some(reason) = clients::docker_verbs(call) {
        return Some(reason);
    }
    let at = verb(words, None)?;
    let image = words[at].text == "image" && words.get(at + 1).is_some_and(|word| word.text == "build");
    if words[at].text == "build" || image {
        return any(call, "the folder lies outside the workspace", |text| {
            !text.starts_with('-')
                && (text.starts_with('/') || text.starts_with("..") || text.starts_with('~'))
                && (call.outside)(text)
                || text.contains("://")
                || text.starts_with("git@")
                || text == "-"
        });
    }
    if words[at].text == "compose" {
        return any(call, "this runs a command or another project", |text| {
            matches!(text, "run" | "exec" | "cp" | "--file" | "publish")
        });
    }
    None
}

/// The `-f FILE` of docker compose. Only before its verb: after it, `-f` follows a log or forces.
fn compose_project<'a>(call: &CommandCall<'a>) -> Option<&'a str> {
    let names = |word: &Word| word.text.rsplit('/').next().is_some_and(|name| name.ends_with("-compose"));
    let begin = match call.words.first() {
        Some(first) if names(first) => 1,
        _ => call.words.iter().position(|word| word.text == "compose")? + 1,
    };
    let mut at = begin;
    while let Some(word) = call.words.get(at).filter(|word| word.text.starts_with('-')) {
        let text = word.text.as_str();
        let is_file = text.starts_with("-f") || text.starts_with("--f");
        if is_file && at >= call.granted {
            return Some(text);
        }
        let takes_next = matches!(
            text,
            "-f" | "--file"
                | "-p"
                | "--project-name"
                | "--profile"
                | "--ansi"
                | "--progress"
                | "--parallel"
                | "--env-file"
                | "--project-directory"
        );
        at += 1 + usize::from(takes_next);
    }
    None
}

/// Values that are read from a local file and sent.
pub(crate) fn local_files(call: &CommandCall<'_>) -> Option<String> {
    any(call, "a local file is sent", |text| text.contains("file://") || text.contains("fileb://"))
}

/// `date MMDDhhmm` sets the clock.
pub(crate) fn date(call: &CommandCall<'_>) -> Option<String> {
    if call.words[..call.granted].iter().any(|word| matches!(word.text.as_str(), "-s" | "--set")) {
        return None;
    }
    let found = operands(call.words, "-d --date -f --file -r --reference");
    let set = found
        .iter()
        .find(|(at, word)| *at >= call.granted && word.text.starts_with(|c: char| c.is_ascii_digit()));
    set.and_then(|(_, word)| reason_for(&word.text, "this sets the clock"))
}

pub(crate) fn hostname(call: &CommandCall<'_>) -> Option<String> {
    any(call, "this sets the name", |text| !text.starts_with('-'))
}

/// `kill -9 -1` ends all processes.
pub(crate) fn kill(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    if let Some(reason) = any(call, "this may end the daemon", |text| text.contains("agentd")) {
        return Some(reason);
    }
    if matches!(words[0].text.as_str(), "pkill" | "killall" | "skill") {
        let values = "-s --signal -u --euid -U --uid -g --pgroup -G --group -t --terminal -P --parent -o -y";
        let found = operands(words, values);
        // A pattern matches anywhere in a name.
        let ours = |text: &str| "agentd".contains(text) || text.bytes().all(|c| !c.is_ascii_alphanumeric());
        if found.is_empty()
            && call.granted < words.len()
            && !words.iter().any(|word| matches!(word.text.as_str(), "-l" | "-V" | "-h"))
        {
            return reason_for(&words[0].text, "this ends all processes of a user");
        }
        if let Some((_, word)) = found.iter().find(|(at, word)| *at >= call.granted && ours(&word.text)) {
            return reason_for(&word.text, "this may end the daemon");
        }
        return None;
    }
    call.ungranted_words().find_map(|(at, text)| {
        let signal = at == 1 && text.starts_with('-');
        let everything = text.starts_with('-')
            && !signal
            && text[1..].bytes().all(|c| c.is_ascii_digit())
            && text.len() > 1;
        let is_group_or_init =
            matches!(text, "1" | "0") && !matches!(words[at - 1].text.as_str(), "-s" | "-n" | "--signal");
        // The last background process of the line, or empty.
        let last = text == "$!";
        (everything || is_group_or_init || text.starts_with('$') && !last)
            .then(|| format!("{text}: this ends more than one process"))
    })
}
