//! git: its own commands, the files that they write, and its configuration.

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::{is_known_verb, own_options, stem};
use crate::shell::programs::operands::operands;
use crate::shell::programs::special::{any, reason_for};
use crate::shell::programs::text_rules::is_outside_path;

/// git's own options that do not pass, besides those with a value.
const ASKING_FLAGS: &[&str] = &["-p", "--paginate", "--bare", "--no-advice"];

/// git: its own options, addresses of other repositories, and verbs that remove files or run programs.
pub(crate) fn git(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    let name = stem(&words[0].text);
    let Some(own_options) = own_options(name) else {
        return reason_for(name, "its own options are not known");
    };
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
            "-C" | "--work-tree"
                if value_is_free && joined.or(next).is_none_or(|path| (call.outside)(path)) =>
            {
                return reason_for(text, "another project");
            }
            "-C" | "--work-tree" => {}
            _ if own_options.flags.has(name)
                && !ASKING_FLAGS.contains(&name)
                && (name != "--exec-path" || joined.is_none()) => {}
            _ if free => return reason_for(text, "settings or programs for git on the command line"),
            _ => {}
        }
        at += if own_options.texts.has(text) { 2 } else { 1 };
    }
    let verb = words.get(at)?;
    if at >= call.granted && (!verb.is_literal() || !is_known_verb(name, &verb.text)) {
        return reason_for(
            &verb.text,
            "not a command of git itself that is known to be harmless; it may be an alias",
        );
    }
    // A folder that looks like a repository has its own hooks (githooks(5), "pre-receive").
    if verb.text == "push" {
        let to = words.iter().enumerate().skip(at + 1).find(|(_, word)| !word.text.starts_with('-'));
        let is_folder = |text: &str| {
            text.starts_with('.') || text.starts_with("file:") || text.contains('/') && !text.contains(':')
        };
        if let Some((_, word)) = to.filter(|(at, word)| *at >= call.granted && is_folder(&word.text)) {
            return reason_for(&word.text, "a repository in a folder runs its own hooks");
        }
    }
    any(call, "this kind of address runs a program", |text| {
        // The name of a machine that begins with `-` is an option for ssh.
        let machine =
            text.split_once("://").map(|(_, rest)| rest.rsplit_once('@').map_or(rest, |(_, own)| own));
        let option = text.split_once("@-").is_some_and(|(user, own)| {
            own.contains(':') && user.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.'))
        });
        let text = text.rsplit('=').next().unwrap_or(text);
        option
            || machine.is_some_and(|name| name.starts_with('-'))
            || text.contains("://-")
            || text.contains("ext::")
            || text.contains("fd::")
            || text.starts_with('-') && text.contains("::")
    })
    .or_else(|| {
        let outside = |text: &str| is_outside_path(text, call);
        match verb.text.as_str() {
            "fetch" | "pull" | "push" | "clone" | "ls-remote" | "remote" | "submodule" => {
                any(call, "another project", |text| outside(text.strip_prefix("--repo=").unwrap_or(text)))
            }
            "diff" | "grep"
                if words.iter().any(|word| word.text.len() > 4 && "--no-index".starts_with(&word.text)) =>
            {
                any(call, "this lies outside the workspace", |text| !text.starts_with('-') && outside(text))
            }
            "clean" => {
                any(call, "this removes the files there", |text| !text.starts_with('-') && outside(text))
            }
            _ => None,
        }
    })
    .or_else(|| match verb.text.as_str() {
        "pull" => any(call, "this opens an editor", |text| {
            text.split_once('=').is_some_and(|(name, how)| {
                name.len() > 2 && "--rebase".starts_with(name) && how.starts_with('i')
            })
        }),
        // Another program checks the signature.
        "log" | "show" | "branch" | "tag" | "for-each-ref" | "reflog" | "whatchanged" | "rev-list"
        | "shortlog" => any(call, "this runs gpg", |text| {
            let asks = |rest: &str| rest.trim_start_matches(['+', '-', ' ']).starts_with('G');
            let sorts =
                matches!(verb.text.as_str(), "branch" | "tag" | "for-each-ref") && text.contains("signature");
            text.split('%').skip(1).any(asks) || text.contains("%(signature") || sorts
        }),
        "rm" => removes_all(call, at),
        "stash" if !words.iter().any(|word| word.text == "show") => {
            any(call, "this asks", |text| text == "-p" || text.len() > 2 && "--patch".starts_with(text))
        }
        _ => None,
    })
    .or_else(|| {
        // `git log --output` and similar are in the table; `file:` addresses outside the workspace are
        // other projects.
        any(call, "another project", |text| {
            text.strip_prefix("file://").is_some_and(|path| (call.outside)(path))
        })
    })
}

/// `git rm -r .` removes the whole workspace.
fn removes_all(call: &CommandCall<'_>, verb: usize) -> Option<String> {
    let words = &call.words[verb + 1..];
    let has_word =
        |wanted: &str| words.iter().take_while(|word| word.text != "--").any(|word| word.text == wanted);
    let recursive = words
        .iter()
        .any(|word| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('r'));
    if has_word("--cached") || has_word("-n") || has_word("--dry-run") || !recursive {
        return None;
    }
    any(call, "all files of the project are removed", |text| {
        let path = text.trim_start_matches("./").trim_end_matches('/');
        matches!(path, "" | "." | ".." | "*" | "**") && !text.is_empty()
            || path.starts_with(':')
            || path.ends_with("..")
            || !text.starts_with('-') && (call.outside)(&format!("{path}/.."))
    })
}

/// The target folder of a clone.
pub(crate) fn clone(call: &CommandCall<'_>) -> Option<String> {
    let operands = operands(
        call.words,
        "-b --branch -o --origin --depth -j --jobs --filter --shallow-since --shallow-exclude --server-option",
    );
    // git, clone, address, folder
    let (at, folder) = operands.get(2)?;
    (*at >= call.granted && (call.outside)(&folder.text))
        .then(|| format!("{}: outside the workspace", folder.text))
}

/// git config: reading needs no request, and neither does setting the name and address for commits.
pub(crate) fn git_config(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    let names: Vec<(usize, &str)> = operands(words, "--type --default -f --file --blob --comment --value")
        .into_iter()
        .skip(1)
        .map(|(at, word)| (at, word.text.as_str()))
        .collect();
    // Only the first operand is a verb; at another position it is a value that is set.
    let verb = names.first().map_or("", |(_, name)| *name);
    let options = || words.iter().map(|word| word.text.as_str()).take_while(|text| *text != "--");
    let reads = matches!(verb, "get" | "list")
        || options().any(|text| {
            matches!(
                text,
                "--get"
                    | "--get-all"
                    | "--get-regexp"
                    | "--get-urlmatch"
                    | "--get-color"
                    | "--list"
                    | "-l"
                    | "--get-colorbool"
            )
        });
    const CHANGES: &[&str] = &[
        "--add",
        "--unset",
        "--unset-all",
        "--replace-all",
        "--remove-section",
        "--rename-section",
        "--edit",
    ];
    let changes = matches!(verb, "set" | "unset" | "edit" | "rename-section" | "remove-section")
        || options().any(|text| text.len() > 2 && CHANGES.iter().any(|option| option.starts_with(text)));
    if (reads || names.len() <= 1) && !changes {
        return None;
    }
    let elsewhere = words.iter().any(|word| {
        matches!(word.text.as_str(), "--global" | "--system")
            || word.text.len() > 3
                && ["--global", "--system"].iter().any(|option| option.starts_with(&word.text))
    });
    let harmless = matches!(names.first(), Some((_, "user.name" | "user.email"))) && !elsewhere && !changes;
    let is_granted = names.first().is_some_and(|(at, _)| *at < call.granted);
    let reaches = call
        .ungranted_words()
        .any(|(_, text)| text.len() > 3 && ["--global", "--system"].iter().any(|o| o.starts_with(text)));
    if harmless || is_granted && !reaches {
        None
    } else {
        reason_for("git config", "settings of git can run programs")
    }
}
