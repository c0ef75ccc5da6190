//! Lists of words in a record.

use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error as _};

/// A list of words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Vec<&'static str>);

impl Words {
    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.contains(&text)
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub(crate) fn is_empty_or_has(&self, text: &str) -> bool {
        self.0.is_empty() || self.has(text)
    }

    pub(crate) fn any_begins(&self, text: &str) -> bool {
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

/// Options of one letter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordLetters {
    pub(crate) asks: Letters,
    pub(crate) asks_outside: Letters,
    pub(crate) takes_value: Letters,
}

impl RecordLetters {
    pub(crate) fn is_empty(self) -> bool {
        self.asks.0 | self.asks_outside.0 | self.takes_value.0 == 0
    }
}

/// A set of ASCII letters, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Letters(u128);

impl Letters {
    pub(super) fn of_options(options: &Words) -> Self {
        let letter = |option: &&str| match option.as_bytes() {
            [b'-', letter] if letter.is_ascii() => Some(u32::from(*letter)),
            _ => None,
        };
        Self(options.iter().filter_map(letter).fold(0, |all, letter| all | 1 << letter))
    }

    pub(crate) fn has(self, letter: char) -> bool {
        letter.is_ascii() && self.0 & (1 << u32::from(letter)) != 0
    }
}
