//! Files that a command line names, for rules that forbid reading or changing them.

use std::path::Path;

use crate::shell::evaluate::ParsedLine;
use crate::shell::lex::syntax::RedirKind;
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::braces;
use crate::shell::paths::resolve;
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
        let scripts = self.all.scripts().iter().zip(&self.cwds);
        let mut commands = scripts.flat_map(|(script, cwds)| script.commands.iter().zip(cwds));
        commands.find_map(|(command, cwds)| {
            let check_path = |text: &str, home: bool, writes: bool| {
                let parts = |text: &str| text.bytes().filter(|c| *c == b'/').count();
                let own = parts(text);
                // Each rule checks a path and all folders above it.
                let is_cheap = |cwd: &&String| {
                    let parts = own + if text.starts_with('/') { 0 } else { parts(cwd) };
                    self.folders.work_budget.spend(rules * (10 + 4 * parts + parts * parts / 4))
                };
                let path = |cwd: &String| resolve::resolve(text, home, cwd, self.folders);
                cwds.iter().take_while(is_cheap).find_map(|cwd| check_file(Path::new(&path(cwd)), writes))
            };
            // The text and its brace expansions; a sequence is not expanded.
            let choices = |word: &Word| -> Vec<String> {
                let mut all = vec![word.text.clone()];
                if word.marks.has_any(Marks::BRACE)
                    && self.folders.work_budget.spend(64 + 2 * word.text.len())
                {
                    match braces::choices(&word.text) {
                        Some(texts) if !texts.iter().any(|text| text.contains('*')) => all.extend(texts),
                        _ => self.folders.work_budget.exhaust(),
                    }
                }
                all
            };
            let is_unknown = |word: &Word| {
                let is_choice = |text: &String| {
                    let value = text.split_once('=').map_or("", |(_, value)| value);
                    [text, value].into_iter().any(resolve::is_other_tilde)
                };
                word.marks.has_any(Marks::TILDE)
                    || word.marks.has_any(Marks::BRACE) && choices(word).iter().any(is_choice)
            };
            let check_if_unknown =
                |word: &Word, writes: bool| is_unknown(word).then(|| check_unknown(writes)).flatten();
            let found_in_redirections = command.redirs.iter().find_map(|redir| {
                let writes = matches!(redir.kind, RedirKind::Output | RedirKind::Both);
                if matches!(redir.kind, RedirKind::Input | RedirKind::Output | RedirKind::Both)
                    && let Some(found) = check_if_unknown(&redir.target, writes)
                {
                    return Some(found);
                }
                let home = redir.target.marks.has_any(Marks::HOME);
                choices(&redir.target).iter().find_map(|target| {
                    let written = matches!(redir.kind, RedirKind::Output | RedirKind::Both)
                        .then(|| check_path(target, home, true));
                    let read = matches!(redir.kind, RedirKind::Input | RedirKind::Both)
                        .then(|| check_path(target, home, false));
                    written.flatten().or(read.flatten())
                })
            });
            let check_argument = |word: &Word| {
                let find_in_word = |word: &Word| {
                    let mut paths = resolve::candidates(word);
                    paths.retain(|(text, _)| !text.is_empty());
                    paths.into_iter().find_map(|(text, home)| check_path(text, home, false))
                };
                choices(word)
                    .into_iter()
                    .map(|text| Word { text, ..word.clone() })
                    .find_map(|choice| find_in_word(&choice))
            };
            // `git show HEAD:a/b`, `git diff ':(top)a/b'`: relative to the top of the repository.
            let of_repository = |word: &Word| {
                argument_record(program_name(&word.text)).filter(|record| record.paths_in_revisions)
            };
            let check_from_top = |text: &str| {
                let text = text
                    .strip_prefix('(')
                    .and_then(|text| text.split_once(')'))
                    .map_or(text, |(_, rest)| rest);
                let text = text.trim_start_matches(['/', '!', '^']);
                let top = &self.folders.workspace;
                let is_checkable =
                    !text.is_empty() && self.folders.work_budget.spend(rules * (10 + text.len()));
                is_checkable
                    .then(|| check_file(Path::new(&resolve::resolve_in(text, top, self.folders)), false))
                    .flatten()
            };
            let has_text_verb = || {
                let verb = command.words.get(1).map_or("", |verb| verb.text.as_str());
                command.words.first().and_then(of_repository).is_some_and(|it| it.text_verbs.has(verb))
            };
            let has_revisions =
                command.words.iter().any(|word| of_repository(word).is_some()) && !has_text_verb();
            let check_in_repository = |word: &Word| {
                let is_left_out =
                    |text: &str| [":!", ":^", ":(exclude"].iter().any(|own| text.starts_with(own));
                let is_meant = has_revisions && word.text.contains(':') && !is_left_out(&word.text);
                let texts = if is_meant { choices(word) } else { Vec::new() };
                texts.iter().find_map(|text| {
                    // `x..HEAD:a`, `:0:a`, `HEAD^{/a:b}:a`: a path may follow each colon.
                    let mut colons = text.match_indices(':');
                    let found = colons
                        .by_ref()
                        .take(MAX_COLONS)
                        .find_map(|(index, _)| check_from_top(&text[index + 1..]));
                    if colons.next().is_some() {
                        self.folders.work_budget.exhaust();
                    }
                    found
                })
            };
            let check_argument = |word: &Word| {
                check_if_unknown(word, false)
                    .or_else(|| check_argument(word))
                    .or_else(|| check_in_repository(word))
            };
            found_in_redirections.or_else(|| command.words.iter().skip(1).find_map(check_argument))
        })
    }
}
