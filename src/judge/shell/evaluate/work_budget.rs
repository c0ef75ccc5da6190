//! How much work one judgement may be. A line is written by a model, and what makes it dear is its own affair:
//! what cannot be judged within the measure is not allowed. Work is counted and not timed, so that a verdict is
//! the same on every machine.

use std::cell::Cell;

/// Steps that are left. One is some ten nanoseconds.
#[derive(Debug)]
pub(in crate::judge::shell) struct WorkBudget {
    left: Cell<usize>,
    spent: Cell<bool>,
}

impl WorkBudget {
    pub(in crate::judge::shell) fn new(steps: usize) -> Self {
        Self { left: Cell::new(steps), spent: Cell::new(false) }
    }

    /// Takes so many steps. Whether there were as many; if not, there are none from now on.
    pub(in crate::judge::shell) fn spend(&self, steps: usize) -> bool {
        match self.left.get().checked_sub(steps) {
            Some(left) => self.left.set(left),
            None => self.exhaust(),
        }
        !self.spent.get()
    }

    /// Takes all that is left: what was seen cannot be judged for certain, and nothing allows the line.
    pub(in crate::judge::shell) fn exhaust(&self) {
        self.left.set(0);
        self.spent.set(true);
    }

    /// Whether more was asked for than there was.
    pub(in crate::judge::shell) fn is_spent(&self) -> bool {
        self.spent.get()
    }
}
