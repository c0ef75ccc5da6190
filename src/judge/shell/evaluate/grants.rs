//! The grants that may allow a command.

use rustc_hash::FxHashMap;

use crate::shell::evaluate::pattern::CommandPattern;
use crate::shell::lex::word::Word;

/// An allow rule for commands: its pattern, and an identifier for the caller.
#[derive(Clone, Copy)]
pub(crate) struct Grant<'r, R> {
    pub(crate) pattern: &'r CommandPattern,
    pub(crate) rule: R,
}

/// Grants indexed by their first words, because only a few of thousands can match a command.
pub(super) struct Grants<'g, R> {
    all: &'g [Grant<'g, R>],
    index: FxHashMap<(&'g str, Option<&'g str>), Vec<usize>>,
}

impl<'g, R> Grants<'g, R> {
    /// The index of these grants.
    pub(super) fn new(all: &'g [Grant<'g, R>]) -> Self {
        let mut index: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (position, grant) in all.iter().enumerate() {
            if let Some(key) = grant.pattern.key() {
                index.entry(key).or_default().push(position);
            }
        }
        Self { all, index }
    }

    /// The grants that may cover `words`, or the words from `from` on, in their order.
    pub(super) fn for_command(&self, words: &[Word], from: usize) -> impl Iterator<Item = &Grant<'g, R>> {
        let mut positions: Vec<usize> = Vec::new();
        for words in [words, &words[from..]].iter().take(if from > 0 { 2 } else { 1 }) {
            let Some(first) = words.first() else { continue };
            let second = words.get(1).map(|word| word.text.as_str());
            positions.extend(self.index.get(&(first.text.as_str(), None)).into_iter().flatten());
            if second.is_some() {
                positions.extend(self.index.get(&(first.text.as_str(), second)).into_iter().flatten());
            }
        }
        positions.sort_unstable();
        positions.dedup();
        positions.into_iter().map(|position| &self.all[position])
    }
}

impl CommandPattern {
    /// How many of the inner command's words the grant contains literally, and whether it is exact.
    /// `from` is the position of the inner command after wrappers.
    pub(super) fn spells(&self, words: &[Word], from: usize) -> Option<(usize, bool)> {
        let exact = matches!(self, Self::Exact { .. });
        if let Some(granted_count) = self.covers(&words[from..]) {
            return Some((granted_count, exact));
        }
        // The grant contains the wrapper and more.
        self.covers(words)
            .filter(|granted_count| from > 0 && *granted_count > from)
            .map(|granted_count| (granted_count - from, exact))
    }
}
