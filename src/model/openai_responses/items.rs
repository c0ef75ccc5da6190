//! Items of an answer, one after another.
//!
//! The API numbers the items of an answer (`output_index`) and may tell several at once. Outside, blocks
//! come one after another, so what is told of a later item waits until the earlier one is done.

use std::collections::{BTreeMap, BTreeSet};

use crate::types::model::Delta;

use super::super::assembly::Assembly;
use super::super::signature::{Sealed, seal};

/// Something told of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More text, or more of a refusal.
    Text(String),
    /// More of the reasoning or of its summary.
    Thinking(String),
    /// It is a call.
    Call { id: String, tool: String },
    /// More of the call's arguments.
    Input(String),
    /// It is complete, and this is the whole of it.
    Done(Whole),
}

/// A complete item: what was not told in pieces is taken from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Whole {
    pub text: String,
    pub thinking: String,
    pub sealed: Option<Sealed>,
    pub call: Option<(String, String, String)>,
}

/// The items of one answer.
#[derive(Debug, Default)]
pub(super) struct Items {
    current: u64,
    /// What was told of the current item so far.
    told: Told,
    waiting: BTreeMap<u64, Vec<Step>>,
    done: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Told {
    text: bool,
    thinking: bool,
    call: bool,
    input: bool,
}

impl Items {
    /// Takes a step of item `index` and hands on what is ready. Steps of an item that is done are
    /// repetitions.
    pub(super) fn step(&mut self, index: u64, step: Step, answer: &mut Assembly, out: &mut Vec<Delta>) {
        if index < self.current || self.done.contains(&index) {
            return;
        }
        if index > self.current {
            if matches!(step, Step::Done(_)) {
                self.done.insert(index);
            }
            self.waiting.entry(index).or_default().push(step);
            return;
        }
        self.take(step, answer, out);
    }

    /// Nothing more comes: what waits is handed on in order.
    pub(super) fn finish(&mut self, answer: &mut Assembly, out: &mut Vec<Delta>) {
        while let Some((index, steps)) = self.waiting.pop_first() {
            self.next(index, answer, out);
            for step in steps {
                self.apply(step, answer, out);
            }
        }
        answer.close(out);
    }

    fn take(&mut self, step: Step, answer: &mut Assembly, out: &mut Vec<Delta>) {
        let mut is_done = self.apply(step, answer, out);
        while is_done {
            self.next(self.current + 1, answer, out);
            is_done = false;
            for step in self.waiting.remove(&self.current).unwrap_or_default() {
                is_done |= self.apply(step, answer, out);
            }
        }
    }

    fn next(&mut self, index: u64, answer: &mut Assembly, out: &mut Vec<Delta>) {
        answer.close(out);
        self.current = index;
        self.told = Told::default();
    }

    /// Whether the item is done with it.
    fn apply(&mut self, step: Step, answer: &mut Assembly, out: &mut Vec<Delta>) -> bool {
        match step {
            Step::Text(text) => {
                self.told.text |= !text.is_empty();
                answer.text(&text, out);
            }
            Step::Thinking(text) => {
                self.told.thinking |= !text.is_empty();
                answer.thinking(&text, out);
            }
            Step::Call { id, tool } => {
                if !self.told.call {
                    self.told.call = true;
                    answer.call(&id, &tool, out);
                }
            }
            Step::Input(json) => {
                // Arguments of something that never said it is a call are nobody's.
                if self.told.call {
                    self.told.input |= !json.is_empty();
                    answer.call_input(&json, out);
                }
            }
            Step::Done(whole) => {
                self.whole(whole, answer, out);
                return true;
            }
        }
        false
    }

    fn whole(&mut self, whole: Whole, answer: &mut Assembly, out: &mut Vec<Delta>) {
        if !self.told.thinking {
            answer.thinking(&whole.thinking, out);
        }
        if let Some(sealed) = whole.sealed {
            answer.signature(&seal(&sealed), out);
        }
        if !self.told.text {
            answer.text(&whole.text, out);
        }
        if let Some((id, tool, json)) = whole.call {
            if !self.told.call {
                answer.call(&id, &tool, out);
            }
            if !self.told.input {
                answer.call_input(&json, out);
            }
        }
    }
}
