//! Invisible characters, and commands that answer the daemon's requests.

use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::call::program_name;
use types::invisible_chars::{EMOJI_SELECTOR, is_invisible};

/// Whether a command answers the daemon's requests, or changes its permissions.
pub(crate) fn approves_itself(words: &[Word]) -> bool {
    const VERBS: &[&str] = &[
        "approve",
        "deny",
        "answer",
        "rules",
        "rule",
        "trust",
        "untrust",
        "grant",
        "allow",
        "respond",
        "permissions",
        "permission",
        "mode",
        "set-mode",
        "policy",
        "revoke",
    ];
    const CALLS: &[&str] = &[
        "approve",
        "respond",
        "answer",
        "rule",
        "trust",
        "grant",
        "mode",
        "permission",
        "create",
        "submit",
        "update",
        "reload",
        "feedback",
    ];
    let program = program_name(&words[0].text);
    if !["agentctl", "agentd"].iter().any(|own| program.eq_ignore_ascii_case(own)) {
        return false;
    }
    // A word that expands to several words may become the verb.
    let chooses = |word: &&Word| word.marks.has_any(Marks::BRACE) || word.marks.has_any(Marks::GLOB);
    if words.iter().skip(1).take(2).any(|word| chooses(&word)) {
        return true;
    }
    let mut after_option = false;
    let mut verb = None;
    for word in &words[1..] {
        let text = word.text.as_str();
        if text.starts_with('-') {
            after_option = !text.contains('=');
            continue;
        }
        if VERBS.contains(&text)
            || !word.is_literal() && verb.is_none() && VERBS.iter().any(|v| text.contains(v))
        {
            let explains = text == "permissions" && words.iter().any(|word| word.text == "explain");
            return !explains;
        }
        if verb.is_none() && !after_option || matches!(text, "rpc" | "run" | "submit") {
            verb = Some(text);
            break;
        }
        after_option = false;
    }
    match verb {
        Some("rpc") => words.iter().any(|word| CALLS.iter().any(|call| word.text.contains(call))),
        Some("run") => words.iter().any(|word| {
            let text = word.text.as_str();
            text.starts_with("--tr")
                || ["yolo", "bypass"].iter().any(|mode| {
                    text == *mode || text.ends_with(&format!("={mode}")) || text == format!("-a{mode}")
                })
        }),
        _ => false,
    }
}

/// Why a user may not see the text as it is: it contains control or invisible characters. Such
/// characters could hide a command in a permission request.
pub(crate) fn invisible_character(text: &str) -> Option<&'static str> {
    if text.is_ascii() {
        let control = text.bytes().any(|c| c < b' ' && c != b'\t' && c != b'\n' || c == 0x7f);
        return control.then_some("the line holds control characters");
    }
    text.chars().find_map(|c| match c {
        '\t' | '\n' | ' ' => None,
        c if c.is_control() => Some("the line holds control characters"),
        c if c.is_whitespace() => Some("the line holds blanks that the shell does not treat as blanks"),
        c if is_invisible(c) || c == EMOJI_SELECTOR => Some("the line holds characters that cannot be seen"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_check_agrees_with_table_of_invisible_characters() {
        for c in (char::MIN..=char::MAX).filter(|c| !c.is_whitespace()) {
            let is_refused = invisible_character(&format!("ls {c}é")).is_some();
            assert_eq!(is_refused, is_invisible(c) || c == EMOJI_SELECTOR, "{c:?}");
        }
    }
}
