//! Lists of words, and sets of one-letter options, in the record of a program (see the parent module).

use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error as _};

/// A list of words, in a file of records one text with blanks between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Vec<&'static str>);

impl Words {
    /// Whether one of the words equals the text.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.contains(&text)
    }

    /// Adds the words of another list.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Whether the list does not restrict anything, or has the text.
    pub(crate) fn is_empty_or_has(&self, text: &str) -> bool {
        self.0.is_empty() || self.has(text)
    }

    /// Whether the text begins with one of the words.
    pub(crate) fn has_prefix_of(&self, text: &str) -> bool {
        self.0.iter().any(|word| text.starts_with(word))
    }
}

impl Deref for Words {
    type Target = [&'static str];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.trim().is_empty() {
            return Err(D::Error::custom("an empty list"));
        }
        // The records are read once and kept.
        let text: &'static str = Box::leak(text.into_boxed_str());
        Ok(Self(text.split_whitespace().collect()))
    }
}

/// The one-letter options of three lists of a record, for a fast check of a cluster such as `-xzf`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordLetters {
    /// Letters that need a request.
    pub(crate) asks: Letters,
    /// Letters that need a request if their value is outside the workspace.
    pub(crate) asks_outside: Letters,
    /// Letters that take the rest of the cluster, or else the next word, as their value.
    pub(crate) takes_value: Letters,
}

impl RecordLetters {
    /// Whether no list has a one-letter option.
    pub(crate) fn is_empty(self) -> bool {
        self.asks.0 | self.asks_outside.0 | self.takes_value.0 == 0
    }
}

/// A set of ASCII characters that are options, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Letters(u128);

impl Letters {
    /// The options of a list that have one dash and one character.
    pub(super) fn from_options(options: &Words) -> Self {
        let letter = |option: &&str| match option.as_bytes() {
            [b'-', letter] if letter.is_ascii() => Some(u32::from(*letter)),
            _ => None,
        };
        Self(options.iter().filter_map(letter).fold(0, |all, letter| all | 1 << letter))
    }

    /// Whether the set has this character.
    pub(crate) fn has(self, letter: char) -> bool {
        letter.is_ascii() && self.0 & (1 << u32::from(letter)) != 0
    }
}
