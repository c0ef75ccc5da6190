//! Transparent wrappers: `time`, `timeout`, `nice` and similar, with the options that have no other
//! effect. A grant applies to the command inside them.

use crate::shell::lex::word::Word;
use crate::shell::programs::lookup::transparent_wrapper;
use crate::shell::programs::record::runs::Transparent;

/// For a transparent wrapper, the position of the inner command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrapperMatch {
    /// The program is not a transparent wrapper.
    No,
    /// The inner command begins at this word.
    At(usize),
    /// It is `xargs`; the inner command begins at this word, and gets more words.
    AppendsArgs(usize),
    /// It is a transparent wrapper, but its arguments are not understood.
    Unparsed,
}

/// Finds the inner command of `time`, `timeout`, `nice`, `nohup`, `stdbuf`, `command` and `xargs`, with
/// the options that have no other effect.
pub(crate) fn match_wrapper(words: &[Word]) -> WrapperMatch {
    let Some(first) = words.first().filter(|first| first.is_literal()) else { return WrapperMatch::No };
    let Some(wrapper) = transparent_wrapper(&first.text) else { return WrapperMatch::No };
    let Transparent { flags, takes_value, durations_before } = wrapper;
    let name = first.text.as_str();
    let mut index = 1;
    let mut replaces = None;
    while let Some(word) = words.get(index) {
        let text = word.text.as_str();
        if !text.starts_with('-') {
            break;
        }
        if !word.is_literal() {
            return WrapperMatch::Unparsed;
        }
        index += 1;
        if text == "--" {
            break;
        }
        if name == "command" && matches!(text, "-v" | "-V" | "-pv" | "-pV") {
            return WrapperMatch::No;
        }
        let (option, joined) = match text.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (text, None),
        };
        if flags.has(option) && joined.is_none() {
            continue;
        }
        if takes_value.has(option) {
            let value = match joined {
                Some(value) => value,
                None => {
                    let Some(next) = words.get(index).filter(|next| next.is_literal()) else {
                        return WrapperMatch::Unparsed;
                    };
                    index += 1;
                    &next.text
                }
            };
            if option == "-I" {
                replaces = Some(value.to_owned());
            }
            continue;
        }
        // Joined: `-n10`, `-oL`, `-I{}`, `-k5s`; for `nice` also `-10`; clusters like `-0r`.
        let short = takes_value.iter().find(|listed| listed.len() == 2 && text.starts_with(**listed));
        if let Some(short) = short {
            if *short == "-I" {
                replaces = Some(text[2..].to_owned());
            }
            continue;
        }
        if name == "nice" && text[1..].trim_start_matches('-').bytes().all(|c| c.is_ascii_digit()) {
            continue;
        }
        let is_flag = |c: char| flags.iter().any(|flag| flag.len() == 2 && flag.ends_with(c));
        let cluster = &text[1..];
        if !cluster.starts_with('-') && cluster.chars().all(is_flag) {
            continue;
        }
        // A cluster that ends with a letter that takes a value: `-0n1`, `-0rI{}`.
        let flags_before = cluster.chars().take_while(|c| is_flag(*c)).count();
        let rest = &cluster[flags_before..];
        let Some(letter) = rest.chars().next().filter(|c| c.is_ascii_alphabetic() && flags_before > 0) else {
            return WrapperMatch::Unparsed;
        };
        if !takes_value.iter().any(|listed| listed.len() == 2 && listed.ends_with(letter)) {
            return WrapperMatch::Unparsed;
        }
        let value = if rest.len() > 1 {
            rest[1..].to_owned()
        } else {
            let Some(next) = words.get(index).filter(|next| next.is_literal()) else {
                return WrapperMatch::Unparsed;
            };
            index += 1;
            next.text.clone()
        };
        if letter == 'I' {
            replaces = Some(value);
        }
    }
    for _ in 0..*durations_before {
        let is_duration = words.get(index).is_some_and(|word| {
            word.is_literal()
                && word.text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                && word
                    .text
                    .trim_end_matches(['s', 'm', 'h', 'd'])
                    .bytes()
                    .all(|c| c.is_ascii_digit() || c == b'.')
        });
        if !is_duration {
            return WrapperMatch::Unparsed;
        }
        index += 1;
    }
    if index >= words.len() {
        return WrapperMatch::Unparsed;
    }
    if name == "xargs" {
        let fills = replaces.is_some_and(|mark| mark.is_empty() || words[index].text.contains(&mark));
        return if fills { WrapperMatch::Unparsed } else { WrapperMatch::AppendsArgs(index) };
    }
    WrapperMatch::At(index)
}
