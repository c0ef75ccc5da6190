//! Tracks the working directory of each command, as far as the text determines it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::shell::lex::syntax::{Connector, Script};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::{Folders, PathProtection};

/// The folder that `cd` names literally. `None` for `cd -P`: it follows links, and the text does not
/// show their targets.
pub(crate) fn folder(words: &[Word]) -> Option<&str> {
    target(words)
        .filter(|target| target.is_certain && target.word.is_literal())
        .map(|target| target.word.text.as_str())
}

/// The target of a `cd`.
struct CdTarget<'w> {
    word: &'w Word,
    /// Whether the text determines the target, apart from the path of the home folder.
    is_certain: bool,
}

/// The target of a `cd`, `pushd` or `popd`; `None` if the text does not name one folder.
fn target(words: &[Word]) -> Option<CdTarget<'_>> {
    let mut rest = &words[1..];
    let mut is_certain = true;
    let is_options = |text: &str| text.len() > 1 && text[1..].bytes().all(|c| b"LPe@n".contains(&c));
    while let Some(first) = rest.first().filter(|first| first.text.starts_with('-') && first.is_literal()) {
        if first.text != "--" && !is_options(&first.text) {
            return None;
        }
        is_certain &= matches!(first.text.as_str(), "-L" | "--");
        rest = &rest[1..];
        if first.text == "--" {
            break;
        }
    }
    let [word] = rest else { return None };
    let may_be_several = word.marks.has_any(Marks::GLOB) || word.marks.has_any(Marks::BRACE);
    // `popd` and `pushd +1` return to a folder that was visited before.
    let turns = words[0].text == "popd" || words[0].text == "pushd" && word.text.starts_with('+');
    if may_be_several || turns || word.text.is_empty() || word.text.starts_with('-') {
        return None;
    }
    const OPEN_MARKS: [Marks; 4] = [Marks::EXPANDS, Marks::NUMBER, Marks::TILDE, Marks::DOLLAR_QUOTE];
    is_certain &= !OPEN_MARKS.iter().any(|mark| word.marks.has_any(*mark));
    Some(CdTarget { word, is_certain })
}

/// The word `~`.
fn home_word() -> Word {
    let mut marks = Marks::default();
    marks.add(Marks::HOME);
    Word { text: "~".into(), marks, ..Word::default() }
}

/// Whether a command is `cd`, `pushd` or `popd`, also after `command` or `builtin`.
pub(crate) fn changes_folder(words: &[Word]) -> bool {
    let rest = behind_command(words);
    rest.first().is_some_and(|word| matches!(word.text.as_str(), "cd" | "pushd" | "popd"))
}

/// The words behind `command` and `builtin` with their options.
pub(crate) fn behind_command(words: &[Word]) -> &[Word] {
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

/// Maximum number of possible working directories of one command.
pub(crate) const MAX_FOLDERS: usize = 12;

/// Folders in which a command may run.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PossibleFolders {
    folders: Vec<String>,
    /// Whether one of them is protected or sensitive, so that any name in it may be a protected path.
    pub(crate) has_special_folder: bool,
}

impl PossibleFolders {
    /// A set of folders.
    pub(crate) fn from_folders(all: Vec<String>, folders: &Folders) -> Self {
        let has_special_folder = all.len() >= MAX_FOLDERS
            || all
                .iter()
                .any(|folder| resolve::path_protection(folder, false, folders) > PathProtection::Ordinary);
        Self { folders: all, has_special_folder }
    }
}

impl std::ops::Deref for PossibleFolders {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.folders
    }
}

/// The possible working directories of a shell. The numbers are indexes of sets in [`FolderSets`].
#[derive(Clone, Copy)]
struct CwdState {
    /// The run of commands that `now` is about: see [`SimpleCommand::run`](crate::shell::lex::syntax::SimpleCommand).
    run: usize,
    /// The folders in the current run of commands, in which every earlier `cd` has succeeded.
    now: usize,
    /// The folders after the run. Each `cd` of the run may have failed, or may not have run.
    later: usize,
}

/// Sets of folders, each stored once, because a line with a thousand `cd` soon repeats the same sets.
struct FolderSets<'f> {
    folders: &'f Folders,
    /// The different sets.
    all: Vec<Arc<PossibleFolders>>,
    /// The index of each set in `all`.
    indexes: HashMap<Arc<PossibleFolders>, usize>,
    /// Results of [`Self::set_after_cd`].
    steps: HashMap<(usize, String, bool), usize>,
    /// Results of [`Self::union`].
    unions: HashMap<(usize, usize), usize>,
}

impl FolderSets<'_> {
    /// The index of a set, which is stored if it is new. A set of too many folders is cut, and then nothing allows the
    /// line.
    fn index_of_set(&mut self, mut set: Vec<String>) -> usize {
        // Comparing long paths is expensive. Once the budget is spent, all paths resolve to `/`.
        self.folders.work_budget.spend(40 + set.iter().map(String::len).sum::<usize>());
        set.sort();
        set.dedup();
        if set.len() > MAX_FOLDERS {
            // The cut set may lack a protected folder, so nothing may allow the line.
            self.folders.work_budget.exhaust();
            set.truncate(MAX_FOLDERS);
        }
        let set = Arc::new(PossibleFolders::from_folders(set, self.folders));
        *self.indexes.entry(Arc::clone(&set)).or_insert_with(|| {
            self.all.push(set);
            self.all.len() - 1
        })
    }

    /// The set of folders after a `cd` to `target` from each folder of the set `from`.
    fn set_after_cd(&mut self, from: usize, target: &Word) -> usize {
        let home = target.marks.has_any(Marks::HOME);
        let key = (from, target.text.clone(), home);
        if let Some(found) = self.steps.get(&key) {
            return *found;
        }
        let to = |cwd: &String| resolve::resolve(&target.text, home, cwd, self.folders);
        let set = self.index_of_set(self.all[from].iter().map(to).collect());
        self.steps.insert(key, set);
        set
    }

    /// The set of the folders of two sets.
    fn union(&mut self, one: usize, other: usize) -> usize {
        if one == other {
            return one;
        }
        let key = (one.min(other), one.max(other));
        if let Some(found) = self.unions.get(&key) {
            return *found;
        }
        let set = self.index_of_set(self.all[one].iter().chain(self.all[other].iter()).cloned().collect());
        self.unions.insert(key, set);
        set
    }
}

/// The folders in which each command may run, if the text starts in `start`. A `cd` has certainly
/// succeeded for the commands that follow it only by `&&`, unless an earlier command can skip it. For
/// all other commands, it may have failed, may not have run, or may have run in a subshell.
pub(crate) fn track_cwd(
    script: &Script,
    start: &Arc<PossibleFolders>,
    folders: &Folders,
) -> Vec<Arc<PossibleFolders>> {
    let has_cd = script.commands.iter().any(|command| changes_folder(&command.words));
    if !has_cd {
        return vec![Arc::clone(start); script.commands.len()];
    }
    let mut sets = FolderSets {
        folders,
        all: vec![Arc::clone(start)],
        indexes: HashMap::from([(Arc::clone(start), 0)]),
        steps: HashMap::new(),
        unions: HashMap::new(),
    };
    // All folders that were visited, because `cd -` and `popd` may return to any of them.
    let mut visited = 0;
    let mut scopes: HashMap<usize, CwdState> = HashMap::from([(0, CwdState { run: 0, now: 0, later: 0 })]);
    let mut command_folders = Vec::with_capacity(script.commands.len());
    for command in &script.commands {
        let mut scope = command.scope;
        let mut scopes_without_command = Vec::new();
        let enclosing = loop {
            if let Some(found) = scopes.get(&scope) {
                break *found;
            }
            scopes_without_command.push(scope);
            scope = script.scopes.get(scope).copied().unwrap_or(0);
        };
        let now = if enclosing.run == command.run { enclosing.now } else { enclosing.later };
        let mut state = match scopes_without_command.is_empty() {
            true => CwdState { run: command.run, now, later: enclosing.later },
            // The enclosing subshells that have no command yet start in the same folders.
            false => CwdState { run: command.run, now, later: now },
        };
        scopes.extend(scopes_without_command.into_iter().map(|scope| (scope, state)));
        command_folders.push(Arc::clone(&sets.all[state.now]));
        if changes_folder(&command.words) {
            let words = behind_command(&command.words);
            let home = home_word();
            // `cd` without a folder changes to the home folder.
            let is_home = words[0].text == "cd"
                && words[1..].iter().all(|word| matches!(word.text.as_str(), "--" | "-L" | "-P"));
            let target = match is_home {
                true => Some(CdTarget { word: &home, is_certain: true }),
                false => target(words),
            };
            let set_after = match &target {
                Some(target) => sets.set_after_cd(state.now, target.word),
                None => visited,
            };
            let set_if_uncertain = sets.union(state.now, set_after);
            visited = sets.union(visited, set_if_uncertain);
            let has_certainly_succeeded = target.is_some_and(|target| target.is_certain)
                && command.then == Some(Connector::And)
                && !command.joined;
            state.later = sets.union(state.later, set_if_uncertain);
            state.now = if has_certainly_succeeded { set_after } else { set_if_uncertain };
        }
        scopes.insert(command.scope, state);
    }
    command_folders
}
