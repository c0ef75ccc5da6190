//! Words of a command as files: files that must not be read, written or removed without a request.

use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::braces;
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::{Folders, PathProtection};
use crate::shell::paths::sensitive_paths;
use crate::shell::paths::write_targets::{WriteTargets, created_paths};
use crate::shell::programs::call::program_name;
use crate::shell::programs::lookup::{CommandRecords, stem};
use crate::shell::programs::operands::may_become_an_option;
use crate::shell::programs::record::FileEffect;

/// Checks the words that no grant contains as files: which need a request for reading or writing.
pub(crate) fn check_ungranted_words(
    records: CommandRecords,
    words: &[Word],
    granted_count: usize,
    cwds: &[String],
    has_special_folder: bool,
    folders: &Folders,
) -> Result<(), String> {
    let written = WriteTargets::new(records, words);
    for (word, source) in created_paths(records, words, &folders.work_budget) {
        let has_wildcards = word.marks.has_any(Marks::GLOB) || word.marks.has_any(Marks::BRACE);
        let is_protected_inside = |cwd: &String| {
            let path = resolve::resolve_in(&word.text, cwd, folders);
            folders.contains_path(&path)
                && resolve::path_protection(&path, has_wildcards, folders) > PathProtection::Ordinary
        };
        if cwds.iter().any(is_protected_inside) {
            return Err(format!("a copy of {} needs the user's consent", source.text));
        }
    }
    for (index, word) in words.iter().enumerate().skip(granted_count.max(1)) {
        let may_be_path = has_special_folder
            || word.text.contains(['/', '~', '$', '*', '?', '[', '{', '.'])
            || !word.text.is_ascii();
        if may_be_path {
            check_word(records.effect(), word, written.is(index), cwds, folders)?;
        }
    }
    Ok(())
}

/// Checks the words that no grant contains, for a command that the grant makes write: none may be
/// outside the workspace.
pub(crate) fn check_written_inside(
    words: &[Word],
    granted_count: usize,
    cwds: &[String],
    folders: &Folders,
) -> Result<(), String> {
    // The script of sed and awk is not a file.
    let scripts = matches!(stem(&words[0].text), "sed" | "gsed" | "awk" | "gawk")
        && !words.iter().any(|word| word.text.starts_with("-e") || word.text.starts_with("--ex"));
    let script = words.iter().skip(1).position(|word| !word.text.starts_with('-')).filter(|_| scripts);
    for (index, word) in words.iter().enumerate().skip(granted_count) {
        let text = word.text.as_str();
        let is_code =
            matches!(words[index - 1].text.as_str(), "-e" | "--expression") || script == Some(index - 1);
        if is_code {
            continue;
        }
        if text.starts_with('-') || !text.contains(['/', '~', '.']) {
            continue;
        }
        check_word(FileEffect::Writes, word, true, cwds, folders)?;
    }
    Ok(())
}

/// Checks one word as a file that the command reads, or also writes. The error says why it needs a request.
fn check_word(
    kind: FileEffect,
    word: &Word,
    written: bool,
    cwds: &[String],
    folders: &Folders,
) -> Result<(), String> {
    if word.marks.has_any(Marks::BRACE) {
        return each_choice(kind, word, written, cwds, folders);
    }
    let has_wildcards = word.marks.has_any(Marks::GLOB);
    // `--exclude` takes a pattern of files that are not written.
    let changed = written && !word.text.starts_with("--exclude");
    for (text, home) in resolve::candidates(word) {
        for cwd in cwds {
            let path = resolve::resolve(text, home, cwd, folders);
            if sensitive_paths::is_private(&path, folders)
                || has_wildcards && sensitive_paths::may_find_private(&path, folders)
            {
                return Err(format!("a command needs the user's consent to read {}", word.text));
            }
            if changed && resolve::path_protection(&path, has_wildcards, folders) > PathProtection::Ordinary {
                return Err(format!("{} needs the user's consent", word.text));
            }
        }
    }
    if matches!(kind, FileEffect::Writes | FileEffect::Copies) && written {
        let value = word.text.split_once('=').map_or(word.text.as_str(), |(_, value)| value);
        // `cp -at/x a`
        let joined = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let target = joined.and_then(|rest| rest.split_once('t')).map_or("", |(_, target)| target);
        let target =
            if kind == FileEffect::Copies || target.starts_with(['/', '~', '.']) { target } else { "" };
        let whole = word.text.as_str();
        let others = [value, target].into_iter().filter(|text| !text.is_empty() && *text != whole);
        for text in std::iter::once(whole).chain(others).filter(|text| !text.starts_with('-')) {
            let home = text == whole && word.marks.has_any(Marks::HOME) || text.starts_with("~/");
            // `dd` reads this file and does not write it.
            if whole.starts_with("if=") {
                continue;
            }
            let is_outside = resolve::is_other_tilde(text)
                || cwds.iter().any(|cwd| {
                    let path = resolve::resolve(text, home, cwd, folders);
                    !folders.contains_path(&path)
                        && !["/tmp", "/var/tmp"].iter().any(|folder| resolve::is_in(&path, folder))
                        && !matches!(path.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr")
                });
            if is_outside {
                return Err(format!("{} lies outside the workspace", word.text));
            }
        }
    }
    Ok(())
}

/// The brace expansions of a word, each as a separate word.
fn each_choice(
    kind: FileEffect,
    word: &Word,
    written: bool,
    cwds: &[String],
    folders: &Folders,
) -> Result<(), String> {
    let too_many = || format!("the braces of {} have too many choices", word.text);
    if !folders.work_budget.spend(64 + 2 * word.text.len()) {
        return Err(too_many());
    }
    for text in braces::choices(&word.text).ok_or_else(too_many)? {
        // bash expands tildes after braces, also after the `=` of an assignment.
        let value = text.split_once('=').map_or("", |(_, value)| value);
        if [&text, value].into_iter().any(resolve::is_other_tilde) {
            return Err(format!("{text} is known only at run time"));
        }
        let mut marks = Marks::default();
        if text.contains(['*', '?', '[']) {
            marks.add(Marks::GLOB);
        }
        if text == "~" || text.starts_with("~/") {
            marks.add(Marks::HOME);
        }
        check_word(kind, &Word { text, marks, ..word.clone() }, written, cwds, folders)
            .map_err(|why| format!("{}: {why}", word.text))?;
    }
    Ok(())
}

/// Recursive removal of important folders, and moving them away.
pub(crate) fn check_removal(words: &[Word], cwds: &[String], folders: &Folders) -> Result<(), String> {
    match program_name(&words[0].text) {
        "rm" | "grm" => {}
        "mv" | "gmv" => return check_move(words, cwds, folders),
        _ => return Ok(()),
    }
    if !is_recursive(words) {
        return Ok(());
    }
    let options_end = end_of_options(words);
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if index < options_end && text.starts_with('-') {
            continue;
        }
        let is_whole_folder = matches!(
            text.trim_start_matches("./").trim_end_matches('/'),
            "*" | ".*" | "." | ".." | "" | "**" | "{*,.*}" | ".[!.]*" | "?*"
        ) && !text.is_empty();
        let last = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let everything = word.marks.has_any(Marks::GLOB) && is_any_name(last);
        if word.marks.has_any(Marks::BRACE) && !has_plain_braces(text) {
            return Err(format!("{text} may name a file whose removal needs the user's consent"));
        }
        for cwd in cwds {
            let path = resolve::resolve(text, word.marks.has_any(Marks::HOME), cwd, folders);
            let parent = path.rfind('/').filter(|index| *index > 0).map_or("/", |index| &path[..index]);
            let folder = if everything { parent } else { path.as_str() };
            let above = folder == "/" || folders.contains_workspace_or_home(folder);
            let is_git = path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
            let has_wildcards = word.marks.has_any(Marks::GLOB)
                && last.starts_with('.')
                && ".git".starts_with(last.split(['*', '?', '[', '{']).next().unwrap_or_default());
            if is_whole_folder || above || is_git || has_wildcards {
                return Err(format!("removing {text} needs the user's consent"));
            }
        }
    }
    Ok(())
}

/// Whether an `rm` removes folders with their content.
pub(crate) fn is_recursive(words: &[Word]) -> bool {
    words[..end_of_options(words)].iter().skip(1).any(|word| {
        let text = word.text.as_str();
        text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R'])
            || text.len() > 2 && "--recursive".starts_with(text)
            || may_become_an_option(word) && !word.is_literal()
    })
}

/// Index of the `--`, or the number of words.
fn end_of_options(words: &[Word]) -> usize {
    words.iter().position(|word| word.text == "--").unwrap_or(words.len())
}

/// `mv /the/workspace elsewhere`.
fn check_move(words: &[Word], cwds: &[String], folders: &Folders) -> Result<(), String> {
    let operands: Vec<&Word> = words[1..].iter().filter(|word| !word.text.starts_with('-')).collect();
    let has_target_option =
        words.iter().any(|word| word.text.starts_with("-t") || word.text.starts_with("--t"));
    let moved_count = if has_target_option { operands.len() } else { operands.len().saturating_sub(1) };
    for word in &operands[..moved_count] {
        for cwd in cwds {
            let path = resolve::resolve(&word.text, word.marks.has_any(Marks::HOME), cwd, folders);
            let is_git = path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
            if is_git || path == "/" || folders.contains_workspace_or_home(&path) {
                return Err(format!("moving {} needs the user's consent", word.text));
            }
        }
    }
    Ok(())
}

/// Whether a name consists only of wildcards: `*`, `?*`, `[a-z]*`, `.*`.
pub(crate) fn is_any_name(name: &str) -> bool {
    let mut rest = name.strip_prefix('.').unwrap_or(name);
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '*' | '?' => &rest[1..],
            '[' => match rest.get(2..).and_then(|more| more.find(']')) {
                Some(end) => &rest[end + 3..],
                None => return false,
            },
            _ => return false,
        };
    }
    !name.is_empty() && name != "."
}

/// Whether the braces of a word only choose between plain names below the folder. No alternative is
/// empty or contains more than letters, digits, `_` and `-`, and no component begins with a dot.
fn has_plain_braces(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut before = '/';
    for c in text.chars() {
        let empty = matches!(before, '{' | ',');
        match c {
            '{' => depth += 1,
            '}' if depth == 0 || empty => return false,
            '}' => depth -= 1,
            ',' if depth > 0 && empty => return false,
            '.' if before == '/' => return false,
            '/' if before == '/' => return false,
            _ if depth > 0 && !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ',')) => return false,
            _ => {}
        }
        before = c;
    }
    depth == 0 && !text.starts_with('~')
}
