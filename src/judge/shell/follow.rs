//! Which folder a command runs in, as far as the text tells.

use std::collections::HashMap;
use std::sync::Arc;

use super::places::{self, Care, Folders};
use super::script::{After, Script};
use super::word::{Marks, Word};

/// The folder that `cd` names, if it is spelled out.
pub(super) fn folder(words: &[Word]) -> Option<&str> {
    let mut rest = &words[1..];
    while let Some(first) =
        rest.first().filter(|first| matches!(first.text.as_str(), "-P" | "-L" | "--" | "-e"))
    {
        let ended = first.text == "--";
        rest = &rest[1..];
        if ended {
            break;
        }
    }
    match rest {
        [target]
            if target.is_literal()
                && !target.marks.has(Marks::DOLLAR_QUOTE)
                && !target.text.is_empty()
                && !target.text.starts_with('-') =>
        {
            Some(&target.text)
        }
        _ => None,
    }
}

/// `cd`, also behind `command`.
pub(super) fn changes_folder(words: &[Word]) -> bool {
    let rest = behind_command(words);
    rest.first().is_some_and(|word| matches!(word.text.as_str(), "cd" | "pushd" | "popd"))
}

pub(super) fn behind_command(words: &[Word]) -> &[Word] {
    let mut rest = words;
    while let Some(first) = rest.first() {
        let skip = matches!(first.text.as_str(), "command" | "builtin")
            || rest.len() < words.len() && first.text.starts_with('-');
        if !skip {
            break;
        }
        rest = &rest[1..];
    }
    rest
}

/// So many folders a line may possibly be in.
pub(super) const MOST_FOLDERS: usize = 12;

/// Folders in which a command may run.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Where {
    folders: Vec<String>,
    /// One of them lies in a place where any name may be a protected one.
    pub(super) special: bool,
}

impl Where {
    pub(super) fn at(all: Vec<String>, folders: &Folders) -> Self {
        let special = all.iter().any(|folder| places::care(folder, false, folders) > Care::Ordinary);
        Self { folders: all, special }
    }
}

impl std::ops::Deref for Where {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.folders
    }
}

/// The folders in which each command may run, if the text begins in `start`. A `cd` that `&&` follows has
/// happened; any other may have failed, or have happened in a shell of its own.
pub(super) fn follow(script: &Script, start: &Arc<Where>, folders: &Folders) -> Vec<Arc<Where>> {
    let has_cd = script.commands.iter().any(|command| changes_folder(&command.words));
    if !has_cd {
        return vec![Arc::clone(start); script.commands.len()];
    }
    // Sets of folders, each once: a line of a thousand `cd` soon repeats itself.
    let mut known: HashMap<Arc<Where>, usize> = HashMap::from([(Arc::clone(start), 0)]);
    let mut sets = vec![Arc::clone(start)];
    let mut steps: HashMap<(usize, &str, bool), usize> = HashMap::new();
    let mut scopes: HashMap<usize, usize> = HashMap::from([(0, 0)]);
    let mut all = Vec::with_capacity(script.commands.len());
    for command in &script.commands {
        let mut scope = command.scope;
        let mut climbed = Vec::new();
        let here = loop {
            if let Some(found) = scopes.get(&scope) {
                break *found;
            }
            climbed.push(scope);
            scope = script.scopes.get(scope).copied().unwrap_or(0);
        };
        // The shells around it, of which nothing was heard yet, stand where it does.
        scopes.extend(climbed.into_iter().map(|scope| (scope, here)));
        let mut next = here;
        if changes_folder(&command.words)
            && let Some(target) = folder(behind_command(&command.words))
        {
            let surely = command.then == Some(After::And);
            next = *steps.entry((here, target, surely)).or_insert_with(|| {
                let reached = sets[here].iter().map(|cwd| places::resolve(target, false, cwd, folders));
                let stayed = sets[here].iter().filter(|_| !surely).cloned();
                let mut set: Vec<String> = stayed.chain(reached).collect();
                // Long paths are dear to compare. Beyond the measure all of them are the same.
                folders.meter.spend(40 + set.iter().map(String::len).sum::<usize>());
                set.sort();
                set.dedup();
                set.truncate(MOST_FOLDERS);
                let set = Arc::new(Where::at(set, folders));
                *known.entry(Arc::clone(&set)).or_insert_with(|| {
                    sets.push(set);
                    sets.len() - 1
                })
            });
        }
        scopes.insert(command.scope, next);
        all.push(Arc::clone(&sets[here]));
    }
    all
}
