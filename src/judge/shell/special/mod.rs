//! Checks that options alone cannot express: programs within arguments (sed, awk, git), operands
//! that are written, values with a sign in front.

mod build;
mod clients;
mod code;
mod git;
mod projects;
mod rust;
mod scripts;

pub(super) use build::{cmake, compiler, java_properties, ldd, make, protoc};
pub(super) use clients::{cloud, gh, gpg, helm, kubectl, systemctl};
pub(super) use code::{dotnet, go, npm, pytest};
pub(super) use git::{clone, git, git_config};
pub(super) use projects::{
    cargo_watch, coverage, deno, just, module, operands_are_code, python_module, sbt, scons, tests,
};
pub(super) use rust::{cargo, cargo_fmt, rustc, toolchain};
pub(super) use scripts::{awk, sed};

use super::hatch::{Call, operands, verb};
use super::word::{Marks, Word};

use clients::{has_word, statement};

fn hit(text: &str, what: &str) -> Option<String> {
    Some(format!("{text}: {what}"))
}

/// The first free word for which `wrong` holds.
fn any(call: &Call<'_>, what: &str, wrong: impl Fn(&str) -> bool) -> Option<String> {
    call.free().find(|(_, text)| wrong(text)).and_then(|(_, text)| hit(text, what))
}

/// What stands behind `--` and belongs to another program: each word with the one after it.
fn behind_dashes(call: &Call<'_>, wrong: impl Fn(&str, &str) -> bool) -> Option<String> {
    let words = call.words;
    let dashes = words.iter().position(|word| word.text == "--")?;
    words.iter().enumerate().skip((dashes + 1).max(call.granted)).find_map(|(at, word)| {
        let next = words.get(at + 1).map_or("", |word| word.text.as_str());
        if wrong(&word.text, next) {
            hit(&word.text, "this makes the program behind run another")
        } else {
            None
        }
    })
}

/// `rm`: what a recursive removal must not name is judged with the places; here only `xargs`.
pub(super) fn remove(_: &Call<'_>) -> Option<String> {
    None
}

/// `test -v 'a[$(id)]'` evaluates the subscript, and so do `-R` and arithmetic comparison in `[`.
pub(super) fn test(call: &Call<'_>) -> Option<String> {
    if !matches!(call.words[0].text.as_str(), "test" | "[") {
        return None;
    }
    let risky = call.words.iter().any(|word| {
        matches!(word.text.as_str(), "-v" | "-R" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-t")
    });
    if risky && call.words.iter().any(|word| word.text.contains('[') && word.text.len() > 1) {
        return hit("test", "a subscript is evaluated");
    }
    any(call, "the name of a variable is evaluated", |text| matches!(text, "-v" | "-R"))
}

pub(super) fn uniq(call: &Call<'_>) -> Option<String> {
    second_operand(call, "-f -s -w --skip-fields --skip-chars --check-chars")
}

pub(super) fn xxd(call: &Call<'_>) -> Option<String> {
    second_operand(call, "-c -g -l -s -o -n -cols -groupsize -len -seek -name -R")
}

fn second_operand(call: &Call<'_>, values: &str) -> Option<String> {
    let found = operands(call.words, values);
    // One word may be several.
    let several = |word: &Word| word.marks.has(Marks::GLOB) || word.marks.has(Marks::BRACE);
    if let Some((_, word)) = found.iter().find(|(at, word)| *at >= call.granted && several(word)) {
        return hit(&word.text, "the second operand is written");
    }
    let (_, word) = found.iter().skip(1).find(|(at, _)| *at >= call.granted)?;
    hit(&word.text, "the second operand is written")
}

/// `+cmd` of pagers. A line, the end and a pattern of plain characters are places in the text.
pub(super) fn plus(call: &Call<'_>) -> Option<String> {
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

/// yq: operators that read other files or the environment are no hatch; `-i` is in the table.
pub(super) fn yq(call: &Call<'_>) -> Option<String> {
    any(call, "the expression loads or runs", |text| {
        ["load(", "load_", "system(", "env(", "eval("].iter().any(|word| text.contains(word))
    })
}

/// jq: modules are code from files.
pub(super) fn jq(call: &Call<'_>) -> Option<String> {
    let loads = |part: &str| {
        ["import", "include"].iter().any(|word| {
            part.trim_start().strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with('"'))
        })
    };
    any(call, "a module is loaded", |text| text.split([';', '\n']).any(loads))
}

/// man: a path is a page from a file, with whatever it asks of the programs that set it.
pub(super) fn man(call: &Call<'_>) -> Option<String> {
    any(call, "a page from a file", |text| !text.starts_with('-') && text.contains('/'))
}

pub(super) fn mlr(call: &Call<'_>) -> Option<String> {
    any(call, "the expression may run a program or write a file", |text| {
        ["system", "exec", "tee", "emit", "print", "dump", "split", ">", "|"]
            .iter()
            .any(|word| text.contains(word))
    })
}

pub(super) fn pandoc(call: &Call<'_>) -> Option<String> {
    let format = |text: &str| text.ends_with(".lua") || text.contains("pdf");
    any(call, "code is loaded or a program is run", format)
}

/// ImageMagick: `PREFIX:` in front of a name chooses what reads it, `@` and `|` are lists and programs.
pub(super) fn magick(call: &Call<'_>) -> Option<String> {
    any(call, "a program may be run, or a script", |text| {
        text.starts_with(['@', '|']) || !text.starts_with('-') && text.contains(':') || text.contains(".msl")
    })
}

/// tar: the first word may be a cluster of letters without a dash; a remote archive runs a program.
pub(super) fn tar(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let first = words.get(1)?.text.as_str();
    if !first.starts_with('-') {
        if call.granted <= 1 && first.contains(['I', 'F', 'T', 'P', 'g']) {
            return hit(first, "these letters run a program, read a list or leave the folder");
        }
        // Letters that take values take the next words, in their order.
        let mut at = 2;
        for letter in first.chars() {
            let takes = matches!(letter, 'f' | 'C' | 'b' | 'X' | 'N' | 'V' | 'L' | 'K' | 'H');
            if !takes {
                continue;
            }
            if let Some(word) = words.get(at)
                && at >= call.granted
                && matches!(letter, 'C' | 'f')
                && word.text != "-"
                && (call.outside)(&word.text)
            {
                return hit(&word.text, "this lies outside the workspace");
            }
            at += 1;
        }
    }
    any(call, "a remote archive runs a program", |text| {
        let name = match text.strip_prefix('-') {
            Some(long) if long.starts_with("-f") => long.split_once('=').map_or(text, |(_, value)| value),
            Some(letters) => letters.split_once('f').map_or(text, |(_, value)| value),
            None => text,
        };
        name.split_once(':')
            .is_some_and(|(host, _)| !host.contains('/') && !host.is_empty() && !host.starts_with('-'))
    })
}

/// Archivers write where they are told.
pub(super) fn archive(call: &Call<'_>) -> Option<String> {
    // `-:` of unzip lets names with `..` lead out.
    let climbs = call.words[0].text.ends_with("unzip");
    let climbs = |text: &str| climbs && text.starts_with('-') && text.contains(':');
    let outside = |text: &str| !text.starts_with('-') && (call.outside)(text) || climbs(text);
    any(call, "this lies outside the workspace", outside)
}

pub(super) fn seven(call: &Call<'_>) -> Option<String> {
    // `-spf` keeps whole paths; lists name what is not in the text.
    any(call, "this lies outside the workspace, or may", |text| {
        if text.starts_with("-spf") || text.starts_with("-i@") || text.starts_with('@') {
            return true;
        }
        if !text.starts_with('-') {
            return (text.starts_with(['/', '~']) || text.split('/').any(|part| part == ".."))
                && (call.outside)(text);
        }
        text.strip_prefix("-o").or_else(|| text.strip_prefix("-w")).is_some_and(|path| (call.outside)(path))
    })
}

/// curl: values that begin with `@` send a file away or read options, `%output` writes one.
pub(super) fn curl(call: &Call<'_>) -> Option<String> {
    const DATA: &[&str] = &[
        "-d",
        "--data",
        "--data-ascii",
        "--data-binary",
        "--data-urlencode",
        "--json",
        "--url-query",
        "-H",
        "--header",
        "--proxy-header",
        "-w",
        "--write-out",
        "-F",
        "--form",
        "-b",
        "--cookie",
        "--url",
        "-u",
    ];
    let words = call.words;
    for (at, text) in call.free() {
        let before = words[at - 1].text.as_str();
        // The address may be put together of parts: `fil{e}:///x`.
        let scheme = text.split(':').next().unwrap_or_default().to_ascii_lowercase();
        let scheme = scheme.strip_prefix("--url=").unwrap_or(&scheme);
        if text.contains(':')
            && !text.contains(' ')
            && (scheme == "file" || scheme.contains(['{', '[']))
            && !matches!(
                before,
                "-d" | "--data" | "--data-raw" | "--json" | "-w" | "--write-out" | "--data-binary"
            )
        {
            return hit(text, "a local file is read through its address");
        }
        let cluster: String;
        let (option, value) =
            if let Some((option, value)) = text.split_once('=').filter(|(o, _)| o.starts_with("--")) {
                (option, value)
            } else if text.starts_with("--") {
                continue;
            } else if let Some(rest) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                // A cluster; what follows the letter is its value.
                // The first letter that takes a value takes the rest.
                match rest.find(CURL_VALUES) {
                    Some(place)
                        if rest[place..].starts_with(['d', 'H', 'w', 'F', 'b']) && place + 1 < rest.len() =>
                    {
                        cluster = format!("-{}", &rest[place..=place]);
                        (cluster.as_str(), &rest[place + 1..])
                    }
                    _ => continue,
                }
            } else {
                (before, text)
            };
        let is_long = |option: &str| {
            option.len() > 3 && option.starts_with("--") && DATA.iter().any(|own| own.starts_with(option))
        };
        let is_cluster = option.starts_with('-') && !option.starts_with("--");
        if !is_long(option) && !is_cluster {
            if text.to_ascii_lowercase().starts_with("file:") {
                return hit(text, "a local file is read through its address");
            }
            continue;
        }
        let value = value.strip_prefix('=').unwrap_or(value);
        let form = before.starts_with("--form")
            || before.ends_with('F')
            || option.starts_with("--form")
            || option == "-F";
        let reads = value.starts_with('@')
            || value.contains("%output")
            || (option.starts_with("--data-u")
                || before.starts_with("--data-u")
                || option.contains("url-query"))
                && value.contains('@')
            || form
                && (value.contains("=@")
                    || value.contains("=<")
                    || value.contains(";type")
                    || value.contains('@'))
            || option == "-b" && !value.contains('=')
            || (before == "--cookie" || option == "--cookie") && !value.contains('=');
        if reads {
            return hit(text, "a local file is sent or read, or a file is written");
        }
    }
    None
}

/// Letters of curl that take a value.
const CURL_VALUES: &[char] = &[
    'd', 'H', 'w', 'F', 'b', 'X', 'A', 'e', 'm', 'u', 'x', 'r', 'C', 'y', 'Y', 'z', 'P', 'U', 'D', 'E', 'K',
    'Q', 'T', 't', 'o', 'c', 'h',
];

/// Options from a file: `@file`; code behind a colon; a class that writes the report.
pub(super) fn response(call: &Call<'_>) -> Option<String> {
    let class = |text: &str| text.contains('.') && !text.contains('/');
    let told = |name: &str| super::hatch::stem(&call.words[0].text) == name;
    let named = call.free().find(|(at, text)| {
        let before = call.words[at - 1].text.as_str();
        text.starts_with("--output-format=") && class(text)
            || before == "--output-format" && class(text)
            || (before == "-f" && class(text) || text.starts_with("-f") && class(text)) && told("pylint")
            || text.starts_with("-p") && told("rollup")
    });
    if let Some((_, text)) = named {
        return hit(text, "code named on the command line");
    }
    any(call, "options from a file, or code", |text| {
        text.starts_with('@') || text.starts_with("--inject:") || text.starts_with("--alias:")
    })
}

/// ffmpeg: addresses of files.
pub(super) fn protocols(call: &Call<'_>) -> Option<String> {
    any(call, "this lies outside the workspace", |text| {
        text.split([':', '|'])
            .skip(1)
            .any(|path| !path.starts_with("//") && path.contains('/') && (call.outside)(path))
    })
}

/// Commands of redis that run code or change the server, however they are spelled.
pub(super) fn redis(call: &Call<'_>) -> Option<String> {
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
    let told = !operands(call.words, "-h -p -n -a -u --user --pass -i -r").is_empty()
        || call.words.iter().any(|word| matches!(word.text.as_str(), "--version" | "--help" | "-v"));
    if !told {
        return hit(&call.words[0].text, OBEYS);
    }
    any(call, "this runs code or changes the server", |text| {
        CHANGES.contains(&text.to_ascii_lowercase().as_str())
    })
}

/// Request items of httpie: `field@file`, `field=@file`, `@file`.
pub(super) fn http_items(call: &Call<'_>) -> Option<String> {
    any(call, "a local file is sent", |text| {
        text.starts_with('@')
            || text.contains("=@")
            || (text.contains('@') && !text.contains("://") && !text.starts_with('-'))
    })
}

/// `host:path`: something is sent away or fetched.
pub(super) fn remote(call: &Call<'_>) -> Option<String> {
    any(call, "this names another machine", |text| {
        !text.starts_with('-')
            && (text.contains("://")
                || text.split_once(':').is_some_and(|(host, _)| !host.contains('/') && !host.is_empty()))
    })
}

/// rsync: what is removed at the place it copies to.
pub(super) fn rsync(call: &Call<'_>) -> Option<String> {
    let removes = |word: &Word| word.text.starts_with("--del");
    let last = call.words.iter().rfind(|word| !word.text.starts_with('-'))?;
    let whole = last.text.trim_end_matches('/');
    let everything = whole.is_empty()
        || whole.split('/').all(|part| matches!(part, "." | ".."))
        || (call.outside)(&format!("{whole}/.."));
    if everything && call.words.iter().any(removes) {
        return hit(&last.text, "all that is there and not in the other folder is removed");
    }
    remote(call)
}

pub(super) fn sets_arp(call: &Call<'_>) -> Option<String> {
    let name = call.words[0].text.as_str();
    if name != "arp" {
        return None;
    }
    any(call, "this changes the system", |text| matches!(text, "-s" | "-d" | "--set" | "--delete"))
}

/// Clients of databases that are told nothing to do read it: from a pipe, a file, a here-document.
const OBEYS: &str = "without a command it does what its input says";

/// Whether a cluster of short options, or a long one, gives a client its command (or asks only what it is).
fn gives_command(text: &str, command: &[char], values: &[char], long: &[&str]) -> bool {
    if text.starts_with("--") {
        let name = text.split('=').next().unwrap_or(text);
        return long.contains(&name);
    }
    let letters = text.strip_prefix('-').unwrap_or_default();
    letters.chars().take_while(|letter| !values.contains(letter)).any(|letter| command.contains(&letter))
}

/// sqlite3: dot commands run and write; so do some functions.
pub(super) fn sqlite(call: &Call<'_>) -> Option<String> {
    let told = operands(call.words, "-separator -nullvalue -newline -mmap -maxsize -cmd -init -vfs").len()
        > 1
        || call.words.iter().any(|word| matches!(word.text.trim_start_matches('-'), "version" | "help"));
    if !told {
        return hit(&call.words[0].text, OBEYS);
    }
    any(call, "this may run a program, load code or write a file", |text| {
        let lower = text.to_ascii_lowercase();
        let address = lower.strip_prefix("file:").map(|path| path.split('?').next().unwrap_or(path));
        if address.is_some_and(|path| (call.outside)(path)) {
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
                && !is_tame_dot(line.trim())
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

fn is_tame_dot(line: &str) -> bool {
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

/// psql: backslash commands and COPY reach programs and files.
pub(super) fn psql(call: &Call<'_>) -> Option<String> {
    any(call, "this may run a program or write a file", |text| {
        let lower = text.to_ascii_lowercase();
        lower.contains('\\') && !is_tame_backslash(&lower)
            || lower.contains("program")
            || has_word(&lower, &["copy", "language", "extension", "load"])
            || statement(text).contains("alter system")
            || lower.contains("lo_export")
            || lower.contains("lo_import")
            || lower.contains("pg_read")
            || lower.contains("pg_write")
    })
}

/// psql itself.
pub(super) fn psql_client(call: &Call<'_>) -> Option<String> {
    let values = ['h', 'p', 'U', 'd', 'T', 'v', 'F', 'P', 'o', 'L', 'f', 'R'];
    let long = ["--command", "--list", "--version", "--help"];
    let told =
        call.words[1..].iter().any(|word| gives_command(&word.text, &['c', 'l', 'V', '?'], &values, &long));
    let spelled = &call.words[..call.granted.min(call.words.len())];
    let told = told || spelled.iter().any(|word| matches!(word.text.as_str(), "-f" | "--file"));
    if told { psql(call) } else { hit(&call.words[0].text, OBEYS) }
}

fn is_tame_backslash(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("\\d") && text.matches('\\').count() == 1 && !text.contains(['|', '>', '`'])
        || matches!(text, "\\l" | "\\l+" | "\\conninfo" | "\\q")
}

pub(super) fn mysql(call: &Call<'_>) -> Option<String> {
    let client = matches!(super::hatch::stem(&call.words[0].text), "mysql" | "mariadb" | "mycli" | "mysqlsh");
    let values = ['h', 'P', 'u', 'p', 'D', 'S'];
    let long = ["--execute", "--version", "--help"];
    let told = call.words[1..].iter().any(|word| gives_command(&word.text, &['e', 'V', '?'], &values, &long));
    if client && !told {
        return hit(&call.words[0].text, OBEYS);
    }
    any(call, "this may run a program or write a file", |text| {
        // `--loose-tee` is `--tee`, and `_` is `-`.
        let other = text.starts_with("--loose") || text.starts_with("--enable-l");
        if other || text.starts_with("--") && text.split('=').next().is_some_and(|name| name.contains('_')) {
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

/// TeX: its commands can stand in the place of a file.
pub(super) fn latex(call: &Call<'_>) -> Option<String> {
    any(call, "commands, or a format with commands", |text| text.contains('\\') || text.starts_with('&'))
}

/// docker: a context outside the workspace is sent away.
pub(super) fn docker(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    if let Some(project) = compose_project(call) {
        return hit(project, "this works on the project that a file names");
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

/// The `-f FILE` of docker compose. Only before its verb: behind it `-f` follows a log or forces.
fn compose_project<'a>(call: &Call<'a>) -> Option<&'a str> {
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
pub(super) fn local_files(call: &Call<'_>) -> Option<String> {
    any(call, "a local file is sent", |text| text.contains("file://") || text.contains("fileb://"))
}

/// Package managers: only what lists and shows.
/// `date MMDDhhmm` sets the clock.
pub(super) fn date(call: &Call<'_>) -> Option<String> {
    if call.words[..call.granted].iter().any(|word| matches!(word.text.as_str(), "-s" | "--set")) {
        return None;
    }
    let found = operands(call.words, "-d --date -f --file -r --reference");
    let set = found
        .iter()
        .find(|(at, word)| *at >= call.granted && word.text.starts_with(|c: char| c.is_ascii_digit()));
    set.and_then(|(_, word)| hit(&word.text, "this sets the clock"))
}

pub(super) fn hostname(call: &Call<'_>) -> Option<String> {
    any(call, "this sets the name", |text| !text.starts_with('-'))
}

/// `kill -9 -1` ends everything.
pub(super) fn kill(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    if let Some(reason) = any(call, "this may end the daemon", |text| text.contains("agentd")) {
        return Some(reason);
    }
    if matches!(words[0].text.as_str(), "pkill" | "killall" | "skill") {
        let values = "-s --signal -u --euid -U --uid -g --pgroup -G --group -t --terminal -P --parent -o -y";
        let found = operands(words, values);
        // A pattern is looked for anywhere in a name.
        let ours = |text: &str| "agentd".contains(text) || text.bytes().all(|c| !c.is_ascii_alphanumeric());
        if found.is_empty()
            && call.granted < words.len()
            && !words.iter().any(|word| matches!(word.text.as_str(), "-l" | "-V" | "-h"))
        {
            return hit(&words[0].text, "this ends whatever a person runs");
        }
        if let Some((_, word)) = found.iter().find(|(at, word)| *at >= call.granted && ours(&word.text)) {
            return hit(&word.text, "this may end the daemon");
        }
        return None;
    }
    call.free().find_map(|(at, text)| {
        let signal = at == 1 && text.starts_with('-');
        let everything = text.starts_with('-')
            && !signal
            && text[1..].bytes().all(|c| c.is_ascii_digit())
            && text.len() > 1;
        let one =
            matches!(text, "1" | "0") && !matches!(words[at - 1].text.as_str(), "-s" | "-n" | "--signal");
        (everything || one || text.starts_with('$'))
            .then(|| format!("{text}: this ends more than one process"))
    })
}
