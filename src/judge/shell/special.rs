//! Checks that options alone cannot express: programs within arguments (sed, awk, git), operands
//! that are written, values with a sign in front.

use super::hatch::{Call, operands, verb};
use super::word::Marks;

fn hit(text: &str, what: &str) -> Option<String> {
    Some(format!("{text}: {what}"))
}

/// The first free word for which `wrong` holds.
fn any(call: &Call<'_>, what: &str, wrong: impl Fn(&str) -> bool) -> Option<String> {
    call.free().find(|(_, text)| wrong(text)).and_then(|(_, text)| hit(text, what))
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
    let (_, word) = found.iter().skip(1).find(|(at, _)| *at >= call.granted)?;
    hit(&word.text, "the second operand is written")
}

/// `+cmd` of pagers.
pub(super) fn plus(call: &Call<'_>) -> Option<String> {
    any(call, "a command of the pager can run programs", |text| text.starts_with('+'))
}

/// sed: only commands that neither run nor write.
pub(super) fn sed(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let mut scripts = Vec::new();
    let mut first_operand = None;
    let mut at = 1;
    let mut ended = false;
    while at < words.len() {
        let text = words[at].text.as_str();
        if !ended && text == "--" {
            ended = true;
        } else if !ended && text.starts_with("--") && text.len() > 2 {
            let (option, value) = text.split_once('=').map_or((text, None), |(o, v)| (o, Some(v)));
            if "--expression".starts_with(option) {
                match value {
                    Some(value) => scripts.push((at, value)),
                    None => {
                        at += 1;
                        scripts.extend(words.get(at).map(|word| (at, word.text.as_str())));
                    }
                }
            } else if "--line-length".starts_with(option) && value.is_none() {
                at += 1;
            }
        } else if !ended && text.starts_with('-') && text.len() > 1 {
            let letters = &text[1..];
            if let Some(place) = letters.find(['e', 'l']) {
                let rest = &letters[place + 1..];
                let is_script = letters.as_bytes()[place] == b'e';
                if rest.is_empty() {
                    at += 1;
                    if is_script {
                        scripts.extend(words.get(at).map(|word| (at, word.text.as_str())));
                    }
                } else if is_script {
                    scripts.push((at, rest));
                }
            }
        } else if first_operand.is_none() {
            first_operand = Some((at, text));
        }
        at += 1;
    }
    if scripts.is_empty() {
        scripts.extend(first_operand);
    }
    for (at, script) in scripts {
        if at < call.granted {
            continue;
        }
        if words.get(at).is_some_and(|word| !word.is_literal()) {
            return hit(script, "the script of sed is not literal");
        }
        if !is_tame_sed(script) {
            return hit(script, "this script of sed may run a program or write a file");
        }
    }
    None
}

/// Whether a sed script consists only of commands known to do no harm.
fn is_tame_sed(script: &str) -> bool {
    let s = script.as_bytes();
    let mut at = 0;
    // Skips text up to an unescaped sign; a bracket expression hides the sign in a pattern.
    let delimited = |mut at: usize, sign: u8, pattern: bool| -> Option<usize> {
        let mut class = false;
        while let Some(&c) = s.get(at) {
            match c {
                b'\\' => at += 1,
                b'\n' if pattern => return None,
                b'[' if pattern && !class => {
                    class = true;
                    // A `]` right behind the opening is one of the characters.
                    if s.get(at + 1) == Some(&b'^') {
                        at += 1;
                    }
                    if s.get(at + 1) == Some(&b']') {
                        at += 1;
                    }
                }
                b']' if class => class = false,
                // Whether a class hides the sign differs between implementations: not tame.
                c if c == sign && class => return None,
                c if c == sign => return Some(at + 1),
                _ => {}
            }
            at += 1;
        }
        None
    };
    loop {
        while s.get(at).is_some_and(|c| matches!(c, b' ' | b'\t' | b'\n' | b';')) {
            at += 1;
        }
        // Addresses.
        for _ in 0..2 {
            match s.get(at) {
                Some(b'0'..=b'9' | b'$' | b'+' | b'~') => {
                    at += 1;
                    while s.get(at).is_some_and(|c| c.is_ascii_digit() || matches!(c, b'~' | b'$')) {
                        at += 1;
                    }
                }
                Some(b'/') => match delimited(at + 1, b'/', true) {
                    Some(end) => at = end,
                    None => return false,
                },
                Some(b'\\') => {
                    let Some(&sign) = s.get(at + 1) else { return false };
                    match delimited(at + 2, sign, true) {
                        Some(end) => at = end,
                        None => return false,
                    }
                }
                _ => {}
            }
            while s.get(at).is_some_and(|c| matches!(c, b'I' | b'M')) {
                at += 1;
            }
            while s.get(at) == Some(&b' ') {
                at += 1;
            }
            if s.get(at) == Some(&b',') {
                at += 1;
                while s.get(at) == Some(&b' ') {
                    at += 1;
                }
            }
        }
        while s.get(at).is_some_and(|c| matches!(c, b' ' | b'!')) {
            at += 1;
        }
        let Some(&command) = s.get(at) else { return true };
        at += 1;
        match command {
            b'{' | b'}' | b'p' | b'P' | b'd' | b'D' | b'g' | b'G' | b'h' | b'H' | b'n' | b'N' | b'x'
            | b'=' | b'z' | b'F' => {}
            b'q' | b'Q' | b'l' | b'L' => {
                while s.get(at).is_some_and(|c| c.is_ascii_digit() || *c == b' ') {
                    at += 1;
                }
            }
            b'#' => {
                while s.get(at).is_some_and(|c| *c != b'\n') {
                    at += 1;
                }
            }
            b'b' | b't' | b'T' | b':' => {
                while s.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, b' ' | b'_')) {
                    at += 1;
                }
            }
            b'a' | b'i' | b'c' => {
                // Text to the end of the line; a backslash continues it.
                while let Some(&c) = s.get(at) {
                    match c {
                        b'\\' => at += 1,
                        b'\n' => break,
                        _ => {}
                    }
                    at += 1;
                }
            }
            b's' | b'y' => {
                let Some(&sign) = s.get(at) else { return false };
                if sign == b'\\' || sign == b'\n' || !sign.is_ascii() {
                    return false;
                }
                let Some(middle) = delimited(at + 1, sign, command == b's') else { return false };
                let Some(end) = delimited(middle, sign, false) else { return false };
                at = end;
                if command == b's' {
                    while s.get(at).is_some_and(|c| {
                        c.is_ascii_digit() || matches!(c, b'g' | b'p' | b'i' | b'I' | b'm' | b'M')
                    }) {
                        at += 1;
                    }
                }
            }
            _ => return false,
        }
        while s.get(at) == Some(&b' ') {
            at += 1;
        }
        if !matches!(s.get(at), None | Some(b';' | b'\n' | b'}' | b'#')) && command != b'{' && command != b'}'
        {
            return false;
        }
    }
}

/// awk: programs without `system`, pipes and output to files.
pub(super) fn awk(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let mut programs = Vec::new();
    let mut first_operand = None;
    let mut at = 1;
    while at < words.len() {
        let text = words[at].text.as_str();
        if matches!(text, "-v" | "-F" | "--assign" | "--field-separator") {
            at += 1;
        } else if matches!(text, "-e" | "--source") {
            at += 1;
            programs.extend(words.get(at).map(|word| (at, word.text.as_str())));
        } else if let Some(rest) = text.strip_prefix("--source=").or_else(|| text.strip_prefix("-e")) {
            programs.push((at, rest));
        } else if text == "--" || !text.starts_with('-') || text == "-" {
            if text == "--" {
                at += 1;
            }
            first_operand = words.get(at).map(|word| (at, word.text.as_str()));
            break;
        } else if text.starts_with("--")
            && !matches!(text, "--posix" | "--version" | "--csv" | "--re-interval")
        {
            // gawk takes abbreviations: `--so` is `--source`.
            if at >= call.granted && !text.starts_with("--field-separator=") && !text.starts_with("--assign=")
            {
                return hit(text, "this option of awk is not known");
            }
        }
        at += 1;
    }
    if programs.is_empty() {
        programs.extend(first_operand);
    }
    for (at, program) in programs {
        if at >= call.granted && (words[at].marks.has(Marks::NUMBER) || !is_tame_awk(program)) {
            return hit(program, "this awk program may run a program or write a file");
        }
    }
    None
}

fn is_tame_awk(program: &str) -> bool {
    // Code without its strings and patterns.
    let mut code = String::new();
    let mut letters = program.chars().peekable();
    let mut before = ';';
    while let Some(c) = letters.next() {
        match c {
            '"' => {
                loop {
                    match letters.next() {
                        Some('\\') => {
                            letters.next();
                        }
                        Some('"') | None => break,
                        Some(_) => {}
                    }
                }
                code.push('"');
                before = '"';
            }
            '/' if matches!(before, '(' | ',' | '{' | ';' | '!' | '~' | '&' | '\n') => {
                loop {
                    match letters.next() {
                        Some('\\') => {
                            letters.next();
                        }
                        // A class may hold a `/`; not looked into.
                        Some('[' | '\n') | None => return false,
                        Some('/') => break,
                        Some(_) => {}
                    }
                }
                code.push('/');
                before = '/';
            }
            '#' => return false,
            c => {
                code.push(c);
                if !matches!(c, ' ' | '\t') {
                    before = c;
                }
            }
        }
    }
    let bare = code.replace("||", "  ");
    if bare.contains('|') || code.contains('@') || program.contains("/inet") || program.contains("/dev/") {
        return false;
    }
    for word in ["system", "getline", "include", "load", "close", "extension", "\\"] {
        if code.contains(word) {
            return false;
        }
    }
    // `print … > file`
    let mut rest = code.as_str();
    while let Some(at) = rest.find("print") {
        rest = &rest[at + 5..];
        let end = rest.find([';', '}', '\n']).unwrap_or(rest.len());
        if rest[..end].contains('>') {
            return false;
        }
    }
    true
}

/// yq: operators that read other files or the environment are no hatch; `-i` is in the table.
pub(super) fn yq(call: &Call<'_>) -> Option<String> {
    any(call, "the expression loads or runs", |text| {
        ["load(", "load_str(", "system(", "env(", "eval("].iter().any(|word| text.contains(word))
    })
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
        let name = text.strip_prefix("--file=").or_else(|| text.strip_prefix("-f")).unwrap_or(text);
        name.split_once(':')
            .is_some_and(|(host, _)| !host.contains('/') && !host.is_empty() && !host.starts_with('-'))
    })
}

/// Archivers write where they are told.
pub(super) fn archive(call: &Call<'_>) -> Option<String> {
    let outside = |text: &str| !text.starts_with('-') && (call.outside)(text);
    any(call, "this lies outside the workspace", outside)
}

pub(super) fn seven(call: &Call<'_>) -> Option<String> {
    any(call, "this lies outside the workspace", |text| {
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
        let (option, value) =
            if let Some((option, value)) = text.split_once('=').filter(|(o, _)| o.starts_with("--")) {
                (option, value)
            } else if text.starts_with("--") {
                continue;
            } else if let Some(rest) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                // A cluster; what follows the letter is its value.
                match rest.find(['d', 'H', 'w', 'F', 'b']) {
                    Some(place) if place + 1 < rest.len() => (&text[..2], &rest[place + 1..]),
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
        let form = before.starts_with("--form")
            || before.ends_with('F')
            || option.starts_with("--form")
            || text.starts_with("-F");
        let reads = value.starts_with('@')
            || value.contains("%output")
            || (option.contains("urlencode") || before.contains("urlencode") || option.contains("url-query"))
                && value.contains('@')
            || form
                && (value.contains("=@")
                    || value.contains("=<")
                    || value.contains(";type")
                    || value.contains('@'))
            || option == "-b" && !value.contains('=')
            || before == "--cookie" && !value.contains('=');
        if reads {
            return hit(text, "a local file is sent or read, or a file is written");
        }
    }
    None
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

pub(super) fn sets_arp(call: &Call<'_>) -> Option<String> {
    let name = call.words[0].text.as_str();
    if name != "arp" {
        return None;
    }
    any(call, "this changes the system", |text| matches!(text, "-s" | "-d" | "--set" | "--delete"))
}

/// Commands of git that are git's own; any other may be an alias that runs anything.
const GIT_VERBS: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "add",
    "commit",
    "push",
    "pull",
    "fetch",
    "clone",
    "checkout",
    "switch",
    "restore",
    "branch",
    "tag",
    "merge",
    "rebase",
    "reset",
    "revert",
    "cherry-pick",
    "stash",
    "remote",
    "rev-parse",
    "rev-list",
    "describe",
    "blame",
    "annotate",
    "grep",
    "ls-files",
    "ls-tree",
    "ls-remote",
    "shortlog",
    "reflog",
    "worktree",
    "submodule",
    "init",
    "mv",
    "rm",
    "clean",
    "config",
    "bisect",
    "archive",
    "bundle",
    "apply",
    "am",
    "format-patch",
    "cat-file",
    "diff-tree",
    "diff-index",
    "diff-files",
    "for-each-ref",
    "show-ref",
    "symbolic-ref",
    "name-rev",
    "merge-base",
    "cherry",
    "count-objects",
    "fsck",
    "gc",
    "prune",
    "repack",
    "notes",
    "range-diff",
    "whatchanged",
    "sparse-checkout",
    "check-ignore",
    "check-attr",
    "hash-object",
    "write-tree",
    "read-tree",
    "commit-tree",
    "update-ref",
    "update-index",
    "pack-refs",
    "version",
    "help",
    "show-branch",
    "verify-commit",
    "verify-tag",
    "mktree",
    "mktag",
    "interpret-trailers",
    "stripspace",
    "check-mailmap",
    "check-ref-format",
    "merge-tree",
    "merge-file",
    "rerere",
    "replace",
    "whatsnew",
    "diff-pairs",
    "refs",
    "patch-id",
    "get-tar-commit-id",
    "cat",
    "lfs",
    "fetch-pack",
    "send-pack",
    "checkout-index",
    "ls-patches",
    "index-pack",
    "pack-objects",
    "unpack-objects",
    "verify-pack",
    "backfill",
];

pub(super) fn git(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    const VALUES: &[&str] = &[
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--config-env",
        "--exec-path",
        "--super-prefix",
        "--attr-source",
    ];
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if !text.starts_with('-') {
            break;
        }
        let free = at >= call.granted;
        let name = text.split('=').next().unwrap_or(text);
        let joined = text.split_once('=').map(|(_, value)| value);
        let next = words.get(at + 1).map(|word| word.text.as_str());
        let value_is_free = joined.map_or(at + 1 >= call.granted, |_| free);
        match name {
            "-C" | "--work-tree" => {
                if value_is_free && joined.or(next).is_none_or(|path| (call.outside)(path)) {
                    return hit(text, "another project");
                }
            }
            "--version"
            | "--help"
            | "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-replace-objects"
            | "--bare"
            | "--no-lazy-fetch"
            | "-v"
            | "-h"
            | "--html-path"
            | "--man-path"
            | "--info-path" => {}
            "--exec-path" if joined.is_none() => {}
            _ if free => return hit(text, "settings or programs for git on the command line"),
            _ => {}
        }
        at += if VALUES.contains(&text) && text != "--exec-path" { 2 } else { 1 };
    }
    let verb = words.get(at)?;
    if at >= call.granted && (!verb.is_literal() || !GIT_VERBS.contains(&verb.text.as_str())) {
        return hit(
            &verb.text,
            "not a command of git itself that is known to be harmless; it may be an alias",
        );
    }
    any(call, "this kind of address runs a program", |text| {
        let text = text.rsplit('=').next().unwrap_or(text);
        text.contains("ext::") || text.contains("fd::") || text.starts_with('-') && text.contains("::")
    })
    .or_else(|| {
        // `git log --output` and its like are in the table; file: addresses outside are projects.
        any(call, "another project", |text| {
            text.strip_prefix("file://").is_some_and(|path| (call.outside)(path))
        })
    })
}

/// The folder a clone goes to.
pub(super) fn clone(call: &Call<'_>) -> Option<String> {
    let found = operands(
        call.words,
        "-b --branch -o --origin --depth -j --jobs --filter --shallow-since --shallow-exclude --server-option",
    );
    // git, clone, address, folder
    let (at, folder) = found.get(2)?;
    (*at >= call.granted && (call.outside)(&folder.text))
        .then(|| format!("{}: outside the workspace", folder.text))
}

/// git config: reading is free, and so is a name and an address for commits.
pub(super) fn git_config(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let reads = words.iter().any(|word| {
        matches!(
            word.text.as_str(),
            "--get"
                | "--get-all"
                | "--get-regexp"
                | "--get-urlmatch"
                | "--get-color"
                | "--list"
                | "-l"
                | "get"
                | "list"
                | "--get-colorbool"
        )
    });
    let changes = words.iter().any(|word| {
        matches!(
            word.text.as_str(),
            "--add"
                | "--unset"
                | "--unset-all"
                | "--replace-all"
                | "--remove-section"
                | "--rename-section"
                | "set"
                | "unset"
                | "--edit"
        )
    });
    let names: Vec<(usize, &str)> = operands(words, "--type --default -f --file --blob --comment --value")
        .into_iter()
        .skip(2)
        .map(|(at, word)| (at, word.text.as_str()))
        .collect();
    if (reads || names.len() <= 1) && !changes {
        return None;
    }
    let elsewhere = words.iter().any(|word| matches!(word.text.as_str(), "--global" | "--system"));
    let harmless = matches!(names.first(), Some((_, "user.name" | "user.email"))) && !elsewhere && !changes;
    let spelled = names.first().is_some_and(|(at, _)| *at < call.granted);
    if harmless || spelled { None } else { hit("git config", "settings of git can run programs") }
}

/// make: variables on the command line can name programs.
pub(super) fn make(call: &Call<'_>) -> Option<String> {
    const HARMLESS: &[&str] = &[
        "V",
        "VERBOSE",
        "DEBUG",
        "CI",
        "JOBS",
        "VERSION",
        "RELEASE",
        "PROFILE",
        "MODE",
        "TARGET",
        "ARCH",
        "FEATURES",
        "N",
        "Q",
        "TEST",
        "NAME",
        "BUILD",
        "BUILD_TYPE",
        "CONFIG",
        "PLATFORM",
        "OS",
        "NO_COLOR",
        "FAST",
        "STRICT",
        "COVERAGE",
        "SILENT",
    ];
    any(call, "a variable of make may name a program", |text| {
        if text.starts_with('-') {
            return false;
        }
        let Some((name, value)) = text.split_once('=') else { return false };
        let name = name.trim_end_matches([':', '+', '?', '!']);
        let tame = value.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-'));
        !(HARMLESS.contains(&name) && tame)
    })
}

/// cmake -D: variables that name programs or code.
pub(super) fn cmake(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    for (at, text) in call.free() {
        let definition = text.strip_prefix("-D").map(|rest| {
            if rest.is_empty() { words.get(at + 1).map_or("", |word| word.text.as_str()) } else { rest }
        });
        let Some(definition) = definition else { continue };
        let name = definition.split(['=', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let harmless = [
            "CMAKE_BUILD_TYPE",
            "CMAKE_EXPORT_COMPILE_COMMANDS",
            "BUILD_SHARED_LIBS",
            "BUILD_TESTING",
            "CMAKE_CXX_STANDARD",
            "CMAKE_C_STANDARD",
            "CMAKE_VERBOSE_MAKEFILE",
        ];
        let simple = definition.split_once('=').is_some_and(|(_, value)| {
            matches!(
                value.to_ascii_uppercase().as_str(),
                "ON" | "OFF" | "TRUE" | "FALSE" | "YES" | "NO" | "0" | "1"
            )
        });
        if !harmless.contains(&name.as_str()) && !simple {
            return hit(definition, "a setting that may name a program");
        }
    }
    None
}

/// Properties that replace the program or the code that runs.
pub(super) fn java_properties(call: &Call<'_>) -> Option<String> {
    any(call, "a property that may run a program", |text| {
        let Some(name) = text.strip_prefix("-D").or_else(|| text.strip_prefix("-P")) else {
            return text.contains("exec:") || text.contains("antrun:") || text.contains("groovy:");
        };
        let lower = name.to_ascii_lowercase();
        [
            "exec",
            "java.home",
            "jvm",
            "argline",
            "path",
            "plugin",
            "settings",
            "classpath",
            "script",
            "init",
            "agent",
            "repo",
        ]
        .iter()
        .any(|word| lower.split('=').next().unwrap_or_default().contains(word))
    })
}

/// Arguments from a file, and options handed on to other programs.
pub(super) fn compiler(call: &Call<'_>) -> Option<String> {
    any(call, "options from a file, or for the programs behind", |text| {
        text.starts_with('@')
            || text.starts_with("-Wl,-plugin")
            || text.starts_with("-Wl,--plugin")
            || text.starts_with("-B")
            || text.starts_with("-fplugin")
            || text.starts_with("-specs")
            || text.starts_with("-fuse-ld")
            || text.starts_with("-Wp,")
            || text.starts_with("-fpass-plugin")
            || text.strip_prefix("-o").is_some_and(|path| !path.is_empty() && (call.outside)(path))
    })
}

/// ldd starts the program it is asked about.
pub(super) fn ldd(call: &Call<'_>) -> Option<String> {
    any(call, "ldd may run the program", |text| !text.starts_with('-'))
}

pub(super) fn protoc(call: &Call<'_>) -> Option<String> {
    any(call, "a plugin, a list of options, or output outside", |text| {
        text.starts_with('@')
            || text.starts_with("--plugin")
            || text
                .strip_prefix("--")
                .and_then(|text| text.split_once("_out="))
                .is_some_and(|(_, path)| (call.outside)(path.rsplit(':').next().unwrap_or(path)))
    })
}

/// cargo: `+toolchain` is fine; what stands behind `--` belongs to another program.
pub(super) fn cargo(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let at = verb(words, None)?;
    // Behind `--`, `cargo clippy` and `cargo rustc` hand options to the compiler.
    if matches!(words[at].text.as_str(), "clippy" | "rustc" | "rustdoc" | "c" | "check" | "doc") {
        return behind_dashes(call, |text, next| {
            let option = if text == "-C" || text == "--codegen" {
                next
            } else {
                text.strip_prefix("-C").unwrap_or("")
            };
            ["linker", "link-arg", "link-args", "pre-link", "dlltool", "profile"]
                .iter()
                .any(|word| option.starts_with(word))
                || text.starts_with("-Z")
                || text.starts_with("--sysroot")
                || text == "-o"
                || text.starts_with("--out-dir")
                || text.starts_with("--codegen=")
                || text.starts_with("--fix")
                || text.starts_with('@')
                || text.starts_with("--config")
        });
    }
    None
}

/// `cargo fmt -- --config …`
pub(super) fn cargo_fmt(call: &Call<'_>) -> Option<String> {
    behind_dashes(call, |text, _| text.starts_with("--config") || text.starts_with('@'))
}

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

/// rustc: code generation options that name programs, arguments from a file.
pub(super) fn rustc(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    call.free().find_map(|(at, text)| {
        let next = words.get(at + 1).map_or("", |word| word.text.as_str());
        let option = match text {
            "-C" | "--codegen" => next,
            _ => text.strip_prefix("--codegen=").or_else(|| text.strip_prefix("-C")).unwrap_or(""),
        };
        let names_program = ["linker", "link-arg", "link-args", "pre-link", "dlltool", "ar"]
            .iter()
            .any(|w| option.starts_with(w));
        if names_program || text.starts_with('@') { hit(text, "the linker is another program") } else { None }
    })
}

/// npm: addresses of code are loaded and run.
pub(super) fn npm(call: &Call<'_>) -> Option<String> {
    // `bun file.ts` runs the file.
    let name = call.words[0].text.as_str();
    if name == "bun"
        && let Some(at) = verb(call.words, None)
        && at >= call.granted
        && call.words[at].text.contains(['.', '/'])
    {
        return hit(&call.words[at].text, "code named on the command line");
    }
    None
}

/// pytest: tests outside the workspace are code from elsewhere; `-o` sets options.
pub(super) fn pytest(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    call.free().find_map(|(at, text)| {
        let value = match text {
            "-o" => words.get(at + 1).map(|word| word.text.as_str()),
            _ => text.strip_prefix("-o").filter(|rest| rest.contains('=')),
        };
        let value = value?;
        ["python_", "addopts", "pythonpath", "required", "usefixtures", "log_file", "cache_dir", "testpaths"]
            .iter()
            .any(|name| value.starts_with(name))
            .then(|| format!("{value}: a setting on the command line"))
    })
}

/// go: addresses of code, and linkers within flags.
pub(super) fn go(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let at = verb(words, None)?;
    if words[at].text == "run" {
        // `go run ./cmd` is the project; `go run host/path@version` is not.
        if let Some((place, target)) = operands(words, "-exec -C -tags -ldflags -gcflags").get(1)
            && *place >= call.granted
            && (target.text.contains('@')
                || (call.outside)(&target.text)
                || !(target.text.starts_with('.') || target.text.ends_with(".go")))
        {
            return hit(&target.text, "code named on the command line");
        }
    }
    any(call, "flags that name another program", |text| {
        text.contains("-extld")
            || text.contains("-extldflags")
            || text.contains("-toolexec")
            || text.contains("-linkmode")
    })
}

pub(super) fn dotnet(call: &Call<'_>) -> Option<String> {
    any(call, "code or properties named on the command line", |text| {
        let lower = text.to_ascii_lowercase();
        lower.ends_with(".dll")
            || lower.ends_with(".exe")
            || lower.ends_with(".csx")
            || lower.starts_with("-p:")
            || lower.starts_with("/p:")
            || lower.starts_with("-property:")
            || lower.starts_with("--property:")
            || lower.starts_with("@")
            || lower.starts_with("-logger:")
    })
}

/// sqlite3: dot commands run and write; so do some functions.
pub(super) fn sqlite(call: &Call<'_>) -> Option<String> {
    any(call, "this may run a program, load code or write a file", |text| {
        let lower = text.to_ascii_lowercase();
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
            "vacuum into",
            "fts3_tokenizer",
            "copy ",
            "install ",
            "httpfs",
        ]
        .iter()
        .any(|word| lower.contains(word))
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
            || lower.contains("copy ")
            || lower.contains("lo_export")
            || lower.contains("lo_import")
            || lower.contains("pg_read")
            || lower.contains("pg_write")
    })
}

fn is_tame_backslash(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("\\d") && text.matches('\\').count() == 1 && !text.contains(['|', '>'])
        || matches!(text, "\\l" | "\\l+" | "\\conninfo" | "\\q")
}

pub(super) fn mysql(call: &Call<'_>) -> Option<String> {
    any(call, "this may run a program or write a file", |text| {
        let lower = text.to_ascii_lowercase();
        [
            "\\",
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

/// docker: a context outside the workspace is sent away.
pub(super) fn docker(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let at = verb(words, None)?;
    if words[at].text == "build" {
        return any(call, "the folder lies outside the workspace", |text| {
            !text.starts_with('-')
                && (text.starts_with('/') || text.starts_with("..") || text.starts_with('~'))
                && (call.outside)(text)
                || text.contains("://")
        });
    }
    if words[at].text == "compose" {
        return any(call, "this runs a command or another project", |text| {
            matches!(text, "run" | "exec" | "cp" | "--file" | "publish")
        });
    }
    None
}

/// Values that are read from a local file and sent.
pub(super) fn local_files(call: &Call<'_>) -> Option<String> {
    any(call, "a local file is sent", |text| text.contains("file://") || text.contains("fileb://"))
}

/// Package managers: only what lists and shows.
pub(super) fn packages(_: &Call<'_>) -> Option<String> {
    None
}

/// `date MMDDhhmm` sets the clock.
pub(super) fn date(call: &Call<'_>) -> Option<String> {
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
