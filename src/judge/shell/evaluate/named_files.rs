//! Files that a command line names, for rules that forbid reading or changing them.

use std::path::Path;

use crate::shell::evaluate::ParsedLine;
use crate::shell::lex::syntax::{RedirKind, Redirection, SimpleCommand};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::braces;
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::Folders;
use crate::shell::programs::call::program_name;
use crate::shell::programs::lookup::argument_record;

/// Maximum number of `:` in a word after which a path is checked.
const MAX_COLONS: usize = 16;

impl ParsedLine<'_> {
    /// Returns the first result of `check_file` for a file that the line names. `check_file` gets a path, and
    /// whether it is written, that is, the target of a redirection; an argument counts as read. Paths
    /// are used as written. `rules` is the number of rules that `check_file` checks, for the work budget.
    /// `check_unknown` is called for a path that is not known, such as `~root/x`.
    pub(crate) fn find_named_file<T>(
        &self,
        rules: usize,
        check_file: &dyn Fn(&Path, bool) -> Option<T>,
        check_unknown: &dyn Fn(bool) -> Option<T>,
    ) -> Option<T> {
        let search = NamedFileSearch { folders: self.folders, rules, check_file, check_unknown };
        let scripts = self.collected.scripts().iter().zip(&self.cwds);
        let mut commands = scripts.flat_map(|(script, cwds)| script.commands.iter().zip(cwds));
        commands.find_map(|(command, cwds)| search.check_command(command, cwds))
    }
}

/// The parameters of [`ParsedLine::find_named_file`]. Each method returns the first result for the files of its part.
struct NamedFileSearch<'s, T> {
    folders: &'s Folders,
    rules: usize,
    check_file: &'s dyn Fn(&Path, bool) -> Option<T>,
    check_unknown: &'s dyn Fn(bool) -> Option<T>,
}

impl<T> NamedFileSearch<'_, T> {
    /// Checks the files of a command that may run in any of the folders `cwds`.
    fn check_command(&self, command: &SimpleCommand, cwds: &[String]) -> Option<T> {
        let in_redirections = command.redirs.iter().find_map(|redir| self.check_redirection(redir, cwds));
        let has_revisions = has_revisions(command);
        in_redirections.or_else(|| {
            command.words.iter().skip(1).find_map(|word| {
                self.check_if_unknown(word, false)
                    .or_else(|| self.check_argument(word, cwds))
                    .or_else(|| if has_revisions { self.check_in_repository(word) } else { None })
            })
        })
    }

    /// Checks the file of a redirection.
    fn check_redirection(&self, redir: &Redirection, cwds: &[String]) -> Option<T> {
        let reads = matches!(redir.kind, RedirKind::Input | RedirKind::Both);
        let writes = matches!(redir.kind, RedirKind::Output | RedirKind::Both);
        if (reads || writes)
            && let Some(result) = self.check_if_unknown(&redir.target, writes)
        {
            return Some(result);
        }
        let is_home = redir.target.marks.has_any(Marks::HOME);
        self.choices(&redir.target).iter().find_map(|target| {
            let written = writes.then(|| self.check_path(target, is_home, cwds, true));
            let read = reads.then(|| self.check_path(target, is_home, cwds, false));
            written.flatten().or(read.flatten())
        })
    }

    /// Checks the paths that an argument may contain.
    fn check_argument(&self, word: &Word, cwds: &[String]) -> Option<T> {
        let choices = self.choices(word).into_iter().map(|text| Word { text, ..word.clone() });
        choices.into_iter().find_map(|choice| {
            let mut paths = resolve::candidates(&choice);
            paths.retain(|(text, _)| !text.is_empty());
            paths.into_iter().find_map(|(text, is_home)| self.check_path(text, is_home, cwds, false))
        })
    }

    /// Checks a path in a revision: `git show HEAD:a/b`, `git diff ':(top)a/b'`. It is relative to the top of the
    /// repository.
    fn check_in_repository(&self, word: &Word) -> Option<T> {
        let is_left_out =
            |text: &str| [":!", ":^", ":(exclude"].iter().any(|prefix| text.starts_with(prefix));
        let may_have_path = word.text.contains(':') && !is_left_out(&word.text);
        let texts = if may_have_path { self.choices(word) } else { Vec::new() };
        texts.iter().find_map(|text| {
            // `x..HEAD:a`, `:0:a`, `HEAD^{/a:b}:a`: a path may follow each colon.
            let mut colons = text.match_indices(':');
            let first_colons = colons.by_ref().take(MAX_COLONS);
            let result = first_colons
                .map(|(index, _)| &text[index + 1..])
                .find_map(|path| self.check_path_from_top(path));
            if colons.next().is_some() {
                self.folders.work_budget.exhaust();
            }
            result
        })
    }

    /// Checks a path from the top of the repository, perhaps with magic of a pathspec before it.
    fn check_path_from_top(&self, text: &str) -> Option<T> {
        let magic = text.strip_prefix('(').and_then(|text| text.split_once(')'));
        let text = magic.map_or(text, |(_, rest)| rest);
        let text = text.trim_start_matches(['/', '!', '^']);
        let top = &self.folders.workspace;
        let is_checkable = !text.is_empty() && self.folders.work_budget.spend(self.rules * (10 + text.len()));
        is_checkable
            .then(|| (self.check_file)(Path::new(&resolve::resolve_in(text, top, self.folders)), false))
            .flatten()
    }

    /// Checks a path from each possible folder. With `is_home`, it begins with the tilde of the home folder.
    fn check_path(&self, text: &str, is_home: bool, cwds: &[String], writes: bool) -> Option<T> {
        let slashes = |text: &str| text.bytes().filter(|c| *c == b'/').count();
        let text_slashes = slashes(text);
        // Each rule checks a path and all folders above it.
        let is_affordable = |cwd: &&String| {
            let parts = text_slashes + if text.starts_with('/') { 0 } else { slashes(cwd) };
            self.folders.work_budget.spend(self.rules * (10 + 4 * parts + parts * parts / 4))
        };
        let path = |cwd: &String| resolve::resolve(text, is_home, cwd, self.folders);
        let mut affordable = cwds.iter().take_while(is_affordable);
        affordable.find_map(|cwd| (self.check_file)(Path::new(&path(cwd)), writes))
    }

    /// Calls `check_unknown` if the path of a word is not known.
    fn check_if_unknown(&self, word: &Word, writes: bool) -> Option<T> {
        let may_begin_with_tilde = |text: &String| {
            let value = text.split_once('=').map_or("", |(_, value)| value);
            [text, value].into_iter().any(resolve::is_other_tilde)
        };
        let is_unknown = word.marks.has_any(Marks::TILDE)
            || word.marks.has_any(Marks::BRACE) && self.choices(word).iter().any(may_begin_with_tilde);
        is_unknown.then(|| (self.check_unknown)(writes)).flatten()
    }

    /// The text of a word and its brace expansions; a sequence is not expanded.
    fn choices(&self, word: &Word) -> Vec<String> {
        let mut all = vec![word.text.clone()];
        if word.marks.has_any(Marks::BRACE) && self.folders.work_budget.spend(64 + 2 * word.text.len()) {
            match braces::choices(&word.text) {
                Some(texts) if !texts.iter().any(|text| text.contains('*')) => all.extend(texts),
                _ => self.folders.work_budget.exhaust(),
            }
        }
        all
    }
}

/// Whether a word of the command may be a path in a revision of a repository.
fn has_revisions(command: &SimpleCommand) -> bool {
    let repository_record =
        |word: &Word| argument_record(program_name(&word.text)).filter(|record| record.paths_in_revisions);
    let verb = command.words.get(1).map_or("", |verb| verb.text.as_str());
    let has_text_verb = || {
        command.words.first().and_then(repository_record).is_some_and(|record| record.text_verbs.has(verb))
    };
    command.words.iter().any(|word| repository_record(word).is_some()) && !has_text_verb()
}
