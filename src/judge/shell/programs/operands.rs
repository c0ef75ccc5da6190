//! The operands of a call, and words that may be options.

use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::lookup::stem;

/// `npm run publish`: the words after the verb are the name of a project script and its arguments.
pub(crate) fn names_a_script(words: &[Word]) -> bool {
    let is_npm = |word: &Word| matches!(stem(&word.text), "npm" | "pnpm" | "yarn");
    let runs = |word: &Word| word.is_literal() && matches!(word.text.as_str(), "run" | "run-script" | "test");
    words.first().is_some_and(is_npm) && words.get(1).is_some_and(runs)
}

/// The operands of a call: words that are neither options nor their values. `takes_value` lists the options
/// whose value is the next word, separated by blanks.
pub(crate) fn operands<'w>(words: &'w [Word], takes_value: &str) -> Vec<(usize, &'w Word)> {
    operands_by(words, |option| has_word(takes_value, option))
}

/// Whether a list of words with blanks between them has this one.
pub(crate) fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// Same as [`operands`], for options of which `takes_value` holds.
pub(crate) fn operands_by(words: &[Word], takes_value: impl Fn(&str) -> bool) -> Vec<(usize, &Word)> {
    let mut operands = Vec::new();
    let mut ended = false;
    let mut index = 1;
    while let Some(word) = words.get(index) {
        if !ended && word.text == "--" {
            ended = true;
        } else if ended || !word.text.starts_with('-') || word.text == "-" {
            operands.push((index, word));
        } else if takes_value(&word.text) {
            index += 1;
        }
        index += 1;
    }
    operands
}

/// Whether a word may expand to an option of a program.
pub(crate) fn may_become_an_option(word: &Word) -> bool {
    // A file may have a name that makes the word an option; the text after `=` is its value.
    let is_pattern = || word.text.split('=').next().is_some_and(|name| name.contains(['*', '?', '[']));
    word.marks.has_any(Marks::GLOB_FIRST)
        || word.marks.has_any(Marks::GLOB) && word.text.starts_with('-') && is_pattern()
}
