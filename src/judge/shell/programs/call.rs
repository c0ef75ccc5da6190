//! One command as the records see it, and the limit on the work of its judgement.

use std::cell::Cell;

use crate::shell::lex::word::Word;

/// Reason for a command with too many arguments to inspect.
pub(crate) const TOO_COMPLEX: &str = "there is too much in this line to be judged";

/// One command under judgement.
pub(crate) struct CommandCall<'a> {
    /// All its words, the name first.
    pub(crate) words: &'a [Word],
    /// The number of its first words that a grant contains literally: the user allowed exactly these words.
    pub(crate) granted_count: usize,
    /// Whether a text names something outside the workspace: see [`Self::is_outside`].
    pub(crate) outside: &'a dyn Fn(&str) -> bool,
    /// The remaining work budget of the judgement.
    pub(crate) work_budget: &'a WorkBudget,
}

impl<'a> CommandCall<'a> {
    /// Whether no grant contains the word at this index.
    pub(crate) fn is_ungranted(&self, index: usize) -> bool {
        index >= self.granted_count
    }

    /// Whether a text names something outside the workspace.
    pub(crate) fn is_outside(&self, text: &str) -> bool {
        (self.outside)(text)
    }

    /// The words that no grant contains, with their indexes. The name of the program is never among them.
    pub(crate) fn ungranted_words(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.words
            .iter()
            .enumerate()
            .skip(self.granted_count.max(1))
            .map(|(index, word)| (index, word.text.as_str()))
    }
}

/// The part after the last `/`: deny rules match programs by it.
pub(crate) fn program_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Limit on the work of one judgement. A model writes the line and can make it expensive, so a line
/// that exceeds the limit is not allowed. Steps are counted instead of measuring time, so that the
/// verdict is the same on every machine. One step takes about ten nanoseconds.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    left: Cell<usize>,
    spent: Cell<bool>,
}

impl WorkBudget {
    /// A budget of this many steps.
    pub(crate) fn new(steps: usize) -> Self {
        Self { left: Cell::new(steps), spent: Cell::new(false) }
    }

    /// Uses this many steps. Returns whether they were available; if not, the budget is exhausted.
    pub(crate) fn spend(&self, steps: usize) -> bool {
        match self.left.get().checked_sub(steps) {
            Some(left) => self.left.set(left),
            None => self.exhaust(),
        }
        !self.spent.get()
    }

    /// Uses all remaining steps: the line cannot be judged reliably, so nothing allows it.
    pub(crate) fn exhaust(&self) {
        self.left.set(0);
        self.spent.set(true);
    }

    /// Whether more steps were requested than available.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent.get()
    }
}
