//! Limit on the work of one judgement. A model writes the line and can make it expensive, so a line
//! that exceeds the limit is not allowed. Steps are counted instead of measuring time, so that the
//! verdict is the same on every machine.

use std::cell::Cell;

/// Remaining steps. One step takes about ten nanoseconds.
#[derive(Debug)]
pub(in crate::judge::shell) struct WorkBudget {
    left: Cell<usize>,
    spent: Cell<bool>,
}

impl WorkBudget {
    pub(in crate::judge::shell) fn new(steps: usize) -> Self {
        Self { left: Cell::new(steps), spent: Cell::new(false) }
    }

    /// Uses this many steps. Returns whether they were available; if not, the budget is exhausted.
    pub(in crate::judge::shell) fn spend(&self, steps: usize) -> bool {
        match self.left.get().checked_sub(steps) {
            Some(left) => self.left.set(left),
            None => self.exhaust(),
        }
        !self.spent.get()
    }

    /// Uses all remaining steps: the line cannot be judged reliably, so nothing allows it.
    pub(in crate::judge::shell) fn exhaust(&self) {
        self.left.set(0);
        self.spent.set(true);
    }

    /// Whether more steps were requested than available.
    pub(in crate::judge::shell) fn is_spent(&self) -> bool {
        self.spent.get()
    }
}
