//! git: its own options and verbs, the addresses of other repositories, and its configuration.
//!
//! Each check returns why the call needs a request, and `None` if it finds no reason. Only words that no grant contains
//! give a reason ([`CommandCall::is_ungranted`]).
//!
//! git accepts abbreviated long options, such as `--pat` for `--patch`. So a word names an option also if it is a
//! beginning of it ([`abbreviates`]).

use crate::shell::lex::word::Word;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::{is_known_verb, own_options, stem};
use crate::shell::programs::operands::operands;
use crate::shell::programs::special::{reason_for, reason_for_any, reason_text};
use crate::shell::programs::text_rules::is_outside_path;

/// Global git flags without a value that still need a request.
const REQUEST_FLAGS: &[&str] = &["-p", "--paginate", "--bare", "--no-advice"];

/// Whether a word is an option or a beginning of it with at least `min_bytes` bytes.
fn abbreviates(text: &str, option: &str, min_bytes: usize) -> bool {
    text.len() >= min_bytes && option.starts_with(text)
}

/// Why a call of git needs a request: by its global options, by its verb, or by an address or path.
pub(crate) fn git(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    let name = stem(&words[0].text);
    if own_options(name).is_none() {
        return reason_for(name, "its own options are not known");
    }
    let verb_index = match verb_behind_options(name, call) {
        Ok(verb_index) => verb_index,
        Err(reason) => return Some(reason),
    };
    let verb = words.get(verb_index)?;
    if call.is_ungranted(verb_index) && (!verb.is_literal() || !is_known_verb(name, &verb.text)) {
        return reason_for(
            &verb.text,
            "not a command of git itself that is known to be harmless; it may be an alias",
        );
    }
    local_push_reason(call, verb_index)
        .or_else(|| program_address_reason(call))
        .or_else(|| outside_reason(call, verb))
        .or_else(|| verb_reason(call, verb_index))
        .or_else(|| {
            // `git log --output` and similar are in the table; `file:` addresses outside the workspace are
            // other projects.
            reason_for_any(call, "another project", |text| {
                text.strip_prefix("file://").is_some_and(|path| call.is_outside(path))
            })
        })
}

/// The index of the verb, behind the global options. The error says why one of these options needs a request.
fn verb_behind_options(name: &str, call: &CommandCall<'_>) -> Result<usize, String> {
    let words = call.words;
    let mut index = 1;
    let Some(own_options) = own_options(name) else { return Ok(index) };
    while let Some(word) = words.get(index) {
        let text = word.text.as_str();
        if !text.starts_with('-') {
            break;
        }
        let is_ungranted = call.is_ungranted(index);
        let option = text.split('=').next().unwrap_or(text);
        let joined = text.split_once('=').map(|(_, value)| value);
        let next = words.get(index + 1).map(|word| word.text.as_str());
        let is_value_ungranted = joined.map_or(call.is_ungranted(index + 1), |_| is_ungranted);
        match option {
            "-C" | "--work-tree"
                if is_value_ungranted && joined.or(next).is_none_or(|path| call.is_outside(path)) =>
            {
                return Err(reason_text(text, "another project"));
            }
            "-C" | "--work-tree" => {}
            _ if own_options.flags.has(option)
                && !REQUEST_FLAGS.contains(&option)
                && (option != "--exec-path" || joined.is_none()) => {}
            _ if is_ungranted => {
                return Err(reason_text(text, "settings or programs for git on the command line"));
            }
            _ => {}
        }
        index += if own_options.texts.has(text) { 2 } else { 1 };
    }
    Ok(index)
}

/// Why a push to a folder needs a request: a folder that looks like a repository has its own hooks (githooks(5),
/// "pre-receive").
fn local_push_reason(call: &CommandCall<'_>, verb_index: usize) -> Option<String> {
    if call.words[verb_index].text != "push" {
        return None;
    }
    let mut operands = call.words.iter().enumerate().skip(verb_index + 1);
    let (index, target) = operands.find(|(_, word)| !word.text.starts_with('-'))?;
    let text = target.text.as_str();
    let is_folder =
        text.starts_with('.') || text.starts_with("file:") || text.contains('/') && !text.contains(':');
    (call.is_ungranted(index) && is_folder)
        .then(|| reason_text(text, "a repository in a folder runs its own hooks"))
}

/// Why an address of a repository needs a request: git runs a program to reach it.
fn program_address_reason(call: &CommandCall<'_>) -> Option<String> {
    reason_for_any(call, "this kind of address runs a program", |text| {
        // The name of a machine that begins with `-` is an option for ssh.
        let machine = text
            .split_once("://")
            .map(|(_, rest)| rest.rsplit_once('@').map_or(rest, |(_, machine)| machine));
        let is_ssh_option = text.split_once("@-").is_some_and(|(user, machine)| {
            machine.contains(':')
                && user.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.'))
        });
        let text = text.rsplit('=').next().unwrap_or(text);
        is_ssh_option
            || machine.is_some_and(|name| name.starts_with('-'))
            || text.contains("://-")
            || text.contains("ext::")
            || text.contains("fd::")
            || text.starts_with('-') && text.contains("::")
    })
}

/// Why an operand outside the workspace needs a request, for verbs that use operands as paths.
fn outside_reason(call: &CommandCall<'_>, verb: &Word) -> Option<String> {
    let is_outside = |text: &str| is_outside_path(text, call);
    let is_operand_outside = |text: &str| !text.starts_with('-') && is_outside(text);
    let has_no_index = || call.words.iter().any(|word| abbreviates(&word.text, "--no-index", 5));
    match verb.text.as_str() {
        "fetch" | "pull" | "push" | "clone" | "ls-remote" | "remote" | "submodule" => {
            reason_for_any(call, "another project", |text| {
                is_outside(text.strip_prefix("--repo=").unwrap_or(text))
            })
        }
        "diff" | "grep" if has_no_index() => {
            reason_for_any(call, "this lies outside the workspace", is_operand_outside)
        }
        "clean" => reason_for_any(call, "this removes the files there", is_operand_outside),
        _ => None,
    }
}

/// Why an argument needs a request that only some verbs have.
fn verb_reason(call: &CommandCall<'_>, verb_index: usize) -> Option<String> {
    let verb = call.words[verb_index].text.as_str();
    match verb {
        "pull" => reason_for_any(call, "this opens an editor", |text| {
            text.split_once('=').is_some_and(|(option, kind)| {
                // `interactive` may be abbreviated as well.
                abbreviates(option, "--rebase", 3) && kind.starts_with('i')
            })
        }),
        // Another program checks the signature.
        "log" | "show" | "branch" | "tag" | "for-each-ref" | "reflog" | "whatchanged" | "rev-list"
        | "shortlog" => reason_for_any(call, "this runs gpg", |text| {
            // `%G?` in a format, also with a sign before the letter: `%+GS`.
            let is_signature = |rest: &str| rest.trim_start_matches(['+', '-', ' ']).starts_with('G');
            let may_sort = matches!(verb, "branch" | "tag" | "for-each-ref");
            text.split('%').skip(1).any(is_signature)
                || text.contains("%(signature")
                || may_sort && text.contains("signature")
        }),
        "rm" => removal_reason(call, verb_index),
        "stash" if !call.words.iter().any(|word| word.text == "show") => {
            reason_for_any(call, "this asks", |text| text == "-p" || abbreviates(text, "--patch", 3))
        }
        _ => None,
    }
}

/// Why a `git rm` needs a request: `git rm -r .` removes the whole workspace.
fn removal_reason(call: &CommandCall<'_>, verb_index: usize) -> Option<String> {
    let words = &call.words[verb_index + 1..];
    let has_option =
        |option: &str| words.iter().take_while(|word| word.text != "--").any(|word| word.text == option);
    let is_recursive = words
        .iter()
        .any(|word| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('r'));
    if has_option("--cached") || has_option("-n") || has_option("--dry-run") || !is_recursive {
        return None;
    }
    reason_for_any(call, "all files of the project are removed", |text| {
        let path = text.trim_start_matches("./").trim_end_matches('/');
        matches!(path, "" | "." | ".." | "*" | "**") && !text.is_empty()
            || path.starts_with(':')
            || path.ends_with("..")
            || !text.starts_with('-') && call.is_outside(&format!("{path}/.."))
    })
}

/// Why a clone needs a request: its target folder is outside the workspace.
pub(crate) fn clone(call: &CommandCall<'_>) -> Option<String> {
    let operands = operands(
        call.words,
        "-b --branch -o --origin --depth -j --jobs --filter --shallow-since --shallow-exclude --server-option",
    );
    // git, clone, address, folder
    let (index, folder) = operands.get(2)?;
    (call.is_ungranted(*index) && call.is_outside(&folder.text))
        .then(|| format!("{}: outside the workspace", folder.text))
}

/// Why a `git config` needs a request. Reading needs none, and neither does setting the name and address for commits in
/// the repository.
pub(crate) fn git_config(call: &CommandCall<'_>) -> Option<String> {
    let names: Vec<(usize, &str)> =
        operands(call.words, "--type --default -f --file --blob --comment --value")
            .into_iter()
            .skip(1)
            .map(|(index, word)| (index, word.text.as_str()))
            .collect();
    // Only the first operand is a verb; at another position it is a value that is set.
    let verb = names.first().map_or("", |(_, name)| *name);
    let changes = changes_config(call.words, verb);
    if (reads_config(call.words, verb) || names.len() <= 1) && !changes {
        return None;
    }
    let names_global_config = call.words.iter().any(|word| is_global_option(&word.text));
    let sets_author = matches!(names.first(), Some((_, "user.name" | "user.email")));
    let is_harmless = sets_author && !names_global_config && !changes;
    let is_name_granted = names.first().is_some_and(|(index, _)| !call.is_ungranted(*index));
    let names_global_config_ungranted = call.ungranted_words().any(|(_, text)| is_global_option(text));
    if is_harmless || is_name_granted && !names_global_config_ungranted {
        None
    } else {
        reason_for("git config", "settings of git can run programs")
    }
}

/// Whether a word selects the configuration of the user or of the machine, perhaps abbreviated.
fn is_global_option(text: &str) -> bool {
    ["--global", "--system"].iter().any(|option| abbreviates(text, option, 4))
}

/// The words of a `git config` that may be options.
fn config_options(words: &[Word]) -> impl Iterator<Item = &str> {
    words.iter().map(|word| word.text.as_str()).take_while(|text| *text != "--")
}

/// Whether a `git config` has a verb or an option that reads.
fn reads_config(words: &[Word], verb: &str) -> bool {
    const READ_OPTIONS: &[&str] = &[
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--get-color",
        "--list",
        "-l",
        "--get-colorbool",
    ];
    matches!(verb, "get" | "list") || config_options(words).any(|text| READ_OPTIONS.contains(&text))
}

/// Whether a `git config` has a verb or an option that changes something, perhaps abbreviated.
fn changes_config(words: &[Word], verb: &str) -> bool {
    const CHANGE_OPTIONS: &[&str] = &[
        "--add",
        "--unset",
        "--unset-all",
        "--replace-all",
        "--remove-section",
        "--rename-section",
        "--edit",
    ];
    let is_change = |text: &str| CHANGE_OPTIONS.iter().any(|option| abbreviates(text, option, 3));
    matches!(verb, "set" | "unset" | "edit" | "rename-section" | "remove-section")
        || config_options(words).any(is_change)
}
