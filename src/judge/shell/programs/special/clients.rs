//! Clients of services: what they send, and which verbs only read.

use crate::shell::lex::word::Word;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::{find_own_verb, find_verb, stem};
use crate::shell::programs::operands::{has_word, operands};
use crate::shell::programs::special::{reason_for, reason_for_any};

/// Clients of forges: what they send, and the words after `--`, which are for git.
pub(crate) fn gh(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    let index = find_own_verb(words).unwrap_or(1);
    let is_word = |nth: usize, text: &str| words.get(index + nth).is_some_and(|word| word.text == text);
    let sets = (is_word(0, "variable") || is_word(0, "secret")) && is_word(1, "set");
    if sets && call.is_ungranted(index) {
        return reason_for("set", "a value, or a file of them, is sent");
    }
    let clones = is_word(0, "repo") && (is_word(1, "clone") || is_word(1, "fork"));
    if clones
        && let Some((_, text)) = call
            .ungranted_words()
            .find(|(_, text)| *text == "--" || call.is_outside(text) && !text.contains("://"))
    {
        return reason_for(text, "options for git, or a folder outside the workspace");
    }
    // `-F` and similar options are in the table; `-T` is a template from a file.
    let template = call.ungranted_words().find(|(index, text)| {
        text.strip_prefix("-T")
            .is_some_and(|path| !path.is_empty() && call.is_outside(path.trim_start_matches('=')))
            || matches!(*text, "-T" | "--template")
                && words.get(index + 1).is_some_and(|path| call.is_outside(&path.text))
    });
    template.and_then(|(_, text)| reason_for(text, "a file outside the workspace is sent"))
}

/// kubectl and its aliases: files outside the workspace, and formats that a file gives.
pub(crate) fn kubectl(call: &CommandCall<'_>) -> Option<String> {
    let index = find_verb(call.words, None)?;
    let builds = call.words.iter().any(|word| word.text == "kustomize");
    let path = call.ungranted_words().find(|(_, text)| {
        let reads = ["columns-file=", "template-file=", "templatefile=", "jsonpath-file="];
        builds && call.is_outside(text)
            || text.split_once("-file=").is_some_and(|(_, path)| call.is_outside(path))
            || reads.iter().any(|option| text.contains(option))
    });
    path.filter(|(path_index, _)| *path_index > index).and_then(|(_, text)| {
        reason_for(text, "this lies outside the workspace, or says what is done with it")
    })
}

/// aws: only read-only verbs pass; each verb tells its effect.
pub(crate) fn aws(call: &CommandCall<'_>) -> Option<String> {
    if stem(&call.words[0].text) != "aws" {
        return None;
    }
    let takes_value =
        "--profile --region --output --query --endpoint-url --color --cli-read-timeout --cli-connect-timeout";
    let operands = operands(call.words, takes_value);
    let (index, action) = operands.get(1)?;
    const READ_ONLY_VERBS: &str = "describe list get ls help tail filter query scan wait head batch-get lookup search validate \
        check select estimate test view history simulate detect start-query decode";
    let is_read_only = READ_ONLY_VERBS.split_whitespace().any(|begin| {
        action.text.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    let secret = action.text.contains("password")
        || action.text.contains("-token")
        || action.text.contains("get-object");
    (call.is_ungranted(*index) && (!is_read_only || secret))
        .then(|| format!("{}: this is not read-only", action.text))
}

/// gpg: without a read-only verb, it decrypts, signs, encrypts or changes keys.
pub(crate) fn gpg(call: &CommandCall<'_>) -> Option<String> {
    const READ_ONLY_VERBS: &str = "--verify -k -K --list-keys --list-key --list-secret-keys --list-public-keys --list-sigs \
        --list-signatures --check-sigs --fingerprint --version --help -h --list-packets --print-md \
        --print-mds --list-config --show-keys --dump-options --locate-keys";
    if !matches!(stem(&call.words[0].text), "gpg" | "gpgsm") {
        return None;
    }
    let name = |word: &'_ Word| word.text.split('=').next().unwrap_or_default().to_owned();
    if call.words.iter().any(|word| has_word(READ_ONLY_VERBS, &name(word))) {
        return None;
    }
    let has_granted_option = call.words[..call.granted_count.min(call.words.len())]
        .iter()
        .skip(1)
        .any(|word| word.text.starts_with("--"));
    if has_granted_option {
        None
    } else {
        reason_for(&call.words[0].text, "this creates or changes something, or shows a secret")
    }
}

/// docker: a context outside the workspace is sent to the daemon of docker.
pub(crate) fn docker(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    if let Some(project) = compose_project(call) {
        return reason_for(project, "this works on the project that a file names");
    }
    let index = find_verb(words, None)?;
    let image = words[index].text == "image" && words.get(index + 1).is_some_and(|word| word.text == "build");
    if words[index].text == "build" || image {
        return reason_for_any(call, "the folder lies outside the workspace", |text| {
            !text.starts_with('-')
                && (text.starts_with('/') || text.starts_with("..") || text.starts_with('~'))
                && call.is_outside(text)
                || text.contains("://")
                || text.starts_with("git@")
                || text == "-"
        });
    }
    if words[index].text == "compose" {
        return reason_for_any(call, "this runs a command or another project", |text| {
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
    let mut index = begin;
    while let Some(word) = call.words.get(index).filter(|word| word.text.starts_with('-')) {
        let text = word.text.as_str();
        let is_file = text.starts_with("-f") || text.starts_with("--f");
        if is_file && call.is_ungranted(index) {
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
        index += 1 + usize::from(takes_next);
    }
    None
}
