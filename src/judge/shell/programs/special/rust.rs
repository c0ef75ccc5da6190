//! cargo and rustc.

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::find_verb;
use crate::shell::programs::special::{reason_after_dashes, reason_for};

/// cargo: descriptions of targets; the words after `--`, which belong to another program.
pub(crate) fn cargo(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    let index = find_verb(words, None)?;
    // A target description names the linker.
    let target = call.ungranted_words().find(|(index, text)| {
        let file = text.strip_prefix("--target=").or((words[index - 1].text == "--target").then_some(*text));
        file.is_some_and(|file| file.contains('/') || file.ends_with(".json"))
    });
    if let Some((_, text)) = target {
        return reason_for(text, "the description of a target may name any linker");
    }
    // After `--`, `cargo clippy` and `cargo rustc` pass options to the compiler.
    if matches!(words[index].text.as_str(), "clippy" | "rustc" | "rustdoc" | "c" | "check" | "doc") {
        return reason_after_dashes(call, |text, next| {
            let option = if text == "-C" || text == "--codegen" {
                next
            } else {
                text.strip_prefix("-C").map_or("", |option| option.trim_start_matches('='))
            };
            ["linker", "link-arg", "link-args", "pre-link", "dlltool", "profile"]
                .iter()
                .any(|word| option.starts_with(word))
                || text.starts_with("-Z")
                || text.starts_with("--sysroot")
                || text.starts_with("--emit") && text.contains('/')
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

/// rustc: code generation options that name programs, arguments from a file.
pub(crate) fn rustc(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    call.ungranted_words().find_map(|(index, text)| {
        let next = words.get(index + 1).map_or("", |word| word.text.as_str());
        let option = match text {
            "-C" | "--codegen" => next,
            _ => text
                .strip_prefix("--codegen=")
                .or_else(|| text.strip_prefix("-C"))
                .unwrap_or("")
                .trim_start_matches('='),
        };
        let names_program = ["linker", "link-arg", "link-args", "pre-link", "dlltool", "ar"]
            .iter()
            .any(|w| option.starts_with(w));
        let emits = |text: &str| {
            text.split_once('=')
                .is_some_and(|(_, path)| call.is_outside(path.rsplit('=').next().unwrap_or(path)))
        };
        let before = words[index - 1].text.as_str();
        let leaves_workspace = text.starts_with("--emit=")
            && emits(text.strip_prefix("--emit=").unwrap_or(text))
            || matches!(before, "--emit" | "--extern" | "--print") && emits(text)
            || text.starts_with("--print=") && emits(text.strip_prefix("--print=").unwrap_or(text));
        if names_program || leaves_workspace || text.starts_with('@') {
            reason_for(text, "the linker is another program")
        } else {
            None
        }
    })
}
