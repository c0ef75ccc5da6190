//! Invisible characters, and commands that answer the daemon's requests.

use crate::judge::shell::evaluate::pattern::name;
use crate::judge::shell::lex::word::{Marks, Word};

/// Whether a command answers the daemon's requests, or changes its permissions.
pub(in crate::judge::shell) fn approves_itself(words: &[Word]) -> bool {
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
    let program = name(&words[0].text);
    if !["agentctl", "agentd"].iter().any(|own| program.eq_ignore_ascii_case(own)) {
        return false;
    }
    // A word that expands to several words may become the verb.
    let chooses = |word: &&Word| word.marks.has(Marks::BRACE) || word.marks.has(Marks::GLOB);
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

/// Characters that a user would not see as they are.
pub(in crate::judge::shell) fn invisible_character(text: &str) -> Option<&'static str> {
    if text.is_ascii() {
        let control = text.bytes().any(|c| c < b' ' && c != b'\t' && c != b'\n' || c == 0x7f);
        return control.then_some("the line holds control characters");
    }
    text.chars().find_map(|c| match c {
        '\t' | '\n' | ' ' => None,
        c if c.is_control() => Some("the line holds control characters"),
        c if c.is_whitespace() => Some("the line holds blanks that are none to the shell"),
        '\u{ad}'
        | '\u{34f}'
        | '\u{600}'..='\u{605}'
        | '\u{61c}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{8e2}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{110bd}'
        | '\u{110cd}'
        | '\u{13430}'..='\u{1345f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => Some("the line holds characters that cannot be seen"),
        _ => None,
    })
}
