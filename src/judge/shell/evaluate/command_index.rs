//! The commands of a line by their first words, for rules that search for one.

use std::hash::BuildHasher as _;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::shell::evaluate::collect::{CollectedCommands, CommandView};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::call::{WorkBudget, program_name};

/// Maximum number of inspected positions at which an unknown program may run another one.
pub(super) const MAX_GUESSES: usize = 64;
/// Maximum number of inspected commands and options for all rules together, beyond commands that begin
/// with exactly the words of a rule.
const MAX_STEPS: usize = 100_000;

/// Whether a word looks like an option.
pub(super) fn is_option(word: &str) -> bool {
    word.starts_with(['-', '+'])
}

/// A program in the home folder: its path is literal except for the beginning.
pub(super) fn is_at_home(word: &Word) -> bool {
    let others = [Marks::EXPANDS, Marks::NUMBER, Marks::GLOB, Marks::BRACE, Marks::TILDE];
    word.marks.has_any(Marks::HOME)
        && word.text.contains('/')
        && !others.iter().any(|mark| word.marks.has_any(*mark))
}

/// Key of the index of commands.
#[derive(Hash)]
pub(super) enum CommandKey<'w> {
    /// This word, which is not an option, follows the name.
    Argument(&'w str, &'w str),
    /// No word follows the name.
    Alone(&'w str),
    /// An option follows the name, or a word that is known only at run time.
    Odd(&'w str),
    /// A command with this name, whatever follows; one is enough.
    Program(&'w str),
    /// A possible beginning of a command with this name.
    Maybe(&'w str),
}

impl<'w> CommandKey<'w> {
    /// A number for the kind of key, and the name of the program.
    fn kind_and_program(&self) -> (u8, &'w str) {
        match self {
            Self::Argument(program, _) => (0, program),
            Self::Alone(program) => (1, program),
            Self::Odd(program) => (2, program),
            Self::Program(program) => (3, program),
            Self::Maybe(program) => (4, program),
        }
    }
}

/// The commands of a line indexed by their first words: with many rules, most search for an absent
/// command.
#[derive(Debug)]
pub(crate) struct CommandIndex {
    /// By the hash of a key, with the kind of the first key; every lookup compares the words.
    commands_by_key: FxHashMap<u64, (u8, Vec<CommandView>)>,
    /// Two keys have the same hash: a command may be missing in the index. Only a deliberately constructed line
    /// does this, and no command can be excluded in it.
    pub(super) has_collision: bool,
    /// Commands whose name is known only at run time.
    pub(super) unknown: Vec<CommandView>,
    pub(super) step_budget: WorkBudget,
}

impl CommandIndex {
    /// The index of all commands of a line.
    pub(crate) fn from_commands(all: &CollectedCommands) -> Self {
        let mut index = Self {
            commands_by_key: FxHashMap::default(),
            has_collision: false,
            unknown: Vec::new(),
            step_budget: WorkBudget::new(MAX_STEPS),
        };
        for view in &all.views {
            let words = all.words(*view);
            let Some(first) = words.first() else { continue };
            // `~/bin/git` is git as well.
            let is_name_known = first.is_literal() || is_at_home(first);
            if !is_name_known {
                // Store one more than the maximum, so that a lookup sees that there are too many.
                if index.unknown.len() <= MAX_GUESSES {
                    index.unknown.push(*view);
                }
                continue;
            }
            let program = program_name(&first.text);
            index.add(all, CommandKey::Program(program), *view, 1);
            match words.get(1) {
                None if view.gets_more_words => index.add(all, CommandKey::Odd(program), *view, usize::MAX),
                None => index.add(all, CommandKey::Alone(program), *view, 1),
                Some(word) if word.is_literal() && !is_option(&word.text) => {
                    index.add(all, CommandKey::Argument(program, &word.text), *view, usize::MAX);
                }
                Some(_) => index.add(all, CommandKey::Odd(program), *view, usize::MAX),
            }
        }
        for view in &all.possible_commands {
            if let Some(first) = all.words(*view).first() {
                index.add(all, CommandKey::Maybe(program_name(&first.text)), *view, MAX_GUESSES + 1);
            }
        }
        index
    }

    /// Stores at most `max` commands for a key.
    fn add(&mut self, all: &CollectedCommands, key: CommandKey<'_>, view: CommandView, max: usize) {
        let (kind, program) = key.kind_and_program();
        let (first_kind, views) =
            self.commands_by_key.entry(FxBuildHasher.hash_one(key)).or_insert_with(|| (kind, Vec::new()));
        let is_same =
            |first: &CommandView| kind == *first_kind && program_name(&all.words(*first)[0].text) == program;
        self.has_collision |= !views.first().is_none_or(is_same);
        if views.len() < max {
            views.push(view);
        }
    }

    /// The commands with this key.
    pub(super) fn commands_with(&self, key: CommandKey<'_>) -> &[CommandView] {
        self.commands_by_key.get(&FxBuildHasher.hash_one(key)).map_or(&[], |(_, views)| views)
    }
}
