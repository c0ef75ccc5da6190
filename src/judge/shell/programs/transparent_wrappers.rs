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
    let name = first.text.as_str();
    let mut reader = WrapperReader { words, wrapper, index: 1, replaced_mark: None };
    while let Some(word) = words.get(reader.index).filter(|word| word.text.starts_with('-')) {
        let text = word.text.as_str();
        if !word.is_literal() {
            return WrapperMatch::Unparsed;
        }
        reader.index += 1;
        if text == "--" {
            break;
        }
        if name == "command" && matches!(text, "-v" | "-V" | "-pv" | "-pV") {
            return WrapperMatch::No;
        }
        if reader.skip_option(name, text).is_none() {
            return WrapperMatch::Unparsed;
        }
    }
    for _ in 0..wrapper.durations_before {
        if !words.get(reader.index).is_some_and(is_duration) {
            return WrapperMatch::Unparsed;
        }
        reader.index += 1;
    }
    let Some(inner_name) = words.get(reader.index) else { return WrapperMatch::Unparsed };
    if name != "xargs" {
        return WrapperMatch::At(reader.index);
    }
    let replaces = |mark: String| mark.is_empty() || inner_name.text.contains(&mark);
    if reader.replaced_mark.is_some_and(replaces) {
        WrapperMatch::Unparsed
    } else {
        WrapperMatch::AppendsArgs(reader.index)
    }
}

/// Reads the options of a wrapper.
struct WrapperReader<'w> {
    words: &'w [Word],
    wrapper: &'static Transparent,
    /// The next word.
    index: usize,
    /// The mark in the inner command that `xargs -I` replaces.
    replaced_mark: Option<String>,
}

impl WrapperReader<'_> {
    /// Moves behind the value of the option `text`, which was read already. `None` if the option is not known.
    fn skip_option(&mut self, name: &str, text: &str) -> Option<()> {
        let Transparent { flags, takes_value, .. } = self.wrapper;
        let (option, joined) = match text.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (text, None),
        };
        if flags.has(option) && joined.is_none() {
            return Some(());
        }
        if takes_value.has(option) {
            let value = match joined {
                Some(value) => value.to_owned(),
                None => self.next_value()?,
            };
            if option == "-I" {
                self.replaced_mark = Some(value);
            }
            return Some(());
        }
        // Joined: `-n10`, `-oL`, `-I{}`, `-k5s`; for `nice` also `-10`; clusters like `-0r`.
        let short = takes_value.iter().find(|listed| listed.len() == 2 && text.starts_with(**listed));
        if let Some(short) = short {
            if *short == "-I" {
                self.replaced_mark = Some(text[2..].to_owned());
            }
            return Some(());
        }
        let letters = &text[1..];
        if name == "nice" && letters.trim_start_matches('-').bytes().all(|c| c.is_ascii_digit()) {
            return Some(());
        }
        let is_flag = |c: char| flags.iter().any(|flag| flag.len() == 2 && flag.ends_with(c));
        if !letters.starts_with('-') && letters.chars().all(is_flag) {
            return Some(());
        }
        // A cluster that ends with a letter that takes a value: `-0n1`, `-0rI{}`.
        let flag_count = letters.chars().take_while(|c| is_flag(*c)).count();
        let rest = &letters[flag_count..];
        let letter = rest.chars().next().filter(|c| c.is_ascii_alphabetic() && flag_count > 0)?;
        if !takes_value.iter().any(|listed| listed.len() == 2 && listed.ends_with(letter)) {
            return None;
        }
        let value = if rest.len() > 1 { rest[1..].to_owned() } else { self.next_value()? };
        if letter == 'I' {
            self.replaced_mark = Some(value);
        }
        Some(())
    }

    /// The next word as a value, if it is literal.
    fn next_value(&mut self) -> Option<String> {
        let value = self.words.get(self.index).filter(|next| next.is_literal())?;
        self.index += 1;
        Some(value.text.clone())
    }
}

/// Whether a word is a duration: `5`, `1.5m`.
fn is_duration(word: &Word) -> bool {
    word.is_literal()
        && word.text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && word.text.trim_end_matches(['s', 'm', 'h', 'd']).bytes().all(|c| c.is_ascii_digit() || c == b'.')
}
