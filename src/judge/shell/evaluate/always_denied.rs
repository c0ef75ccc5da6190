//! Actions of a command line that are denied whatever is granted: writing protected paths, and
//! answering the daemon's own requests.

use crate::shell::evaluate::collect::CommandView;
use crate::shell::evaluate::invisible_chars::approves_itself;
use crate::shell::evaluate::{MAX_LINE_BYTES, ParsedLine};
use crate::shell::lex::syntax::{RedirKind, SimpleCommand};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::braces;
use crate::shell::paths::cwd_tracking::PossibleFolders;
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::{PathProtection, WordUse, may_name_protected_path};
use crate::shell::paths::write_targets::{WriteTargets, created_paths};
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::call::program_name;
use crate::shell::programs::inner_commands::{inner_commands, marks_inner_commands};
use crate::shell::programs::lookup::find_records;

/// Maximum number of the daemon's own programs in a line that are inspected individually.
const MAX_OWN_PROGRAMS: usize = 64;

/// Programs that run another program and also write a file themselves, for example a log.
const WRITING_RUNNERS: &[&str] = &[
    "strace",
    "ltrace",
    "time",
    "gtime",
    "perf",
    "valgrind",
    "hyperfine",
    "parallel",
    "ssh",
    "script",
    "flock",
    "uftrace",
    "heaptrack",
];

impl ParsedLine<'_> {
    /// Why the line is denied whatever is granted.
    pub(crate) fn forbidden(&self) -> Option<&str> {
        self.forbidden.get_or_init(|| self.find_forbidden(false)).as_deref()
    }

    /// Same as `forbidden`, with brace expansion. It does not affect permission requests; it only finds
    /// actions that are always denied.
    pub(crate) fn forbidden_by_choice(&self) -> Option<String> {
        let mut commands = self.collected.scripts().iter().flat_map(|script| &script.commands);
        let has_braces = |command: &SimpleCommand| {
            let targets = command.redirs.iter().map(|redir| &redir.target);
            command.words.iter().chain(targets).any(|word| word.marks.has_any(Marks::BRACE))
        };
        commands.any(has_braces).then(|| self.find_forbidden(true)).flatten()
    }

    /// The text with its braces expanded, as far as the text alone determines the result.
    fn with_choices(&self) -> Option<String> {
        let script = self.collected.main();
        let commands = script.commands.iter().filter(|command| !command.derived);
        let words = commands
            .flat_map(|command| command.words.iter().chain(command.redirs.iter().map(|it| &it.target)));
        let mut chosen: Vec<&Word> = words.filter(|word| word.marks.has_any(Marks::BRACE)).collect();
        chosen.sort_by_key(|word| word.start);
        let (mut text, mut done) = (String::new(), 0);
        for word in chosen {
            // A nested brace group is expanded together with its outer one.
            if word.start < done {
                continue;
            }
            let choices = self.choices(word).into_iter().filter(|choice| !choice.is_empty());
            let quoted = |choice: String| {
                let (home, rest) = match choice.strip_prefix("~/") {
                    Some(rest) => ("~/", rest.to_owned()),
                    None => ("", choice),
                };
                format!("{home}'{}'", rest.replace('\'', "'\\''"))
            };
            let choices: Vec<String> = choices.map(quoted).collect();
            text += self.parsed_text.get(done..word.start)?;
            text += &choices.join(" ");
            done = word.end;
        }
        text += self.parsed_text.get(done..)?;
        (text.len() <= 2 * MAX_LINE_BYTES).then_some(text)
    }

    /// Why the line is denied whatever is granted. With `by_choice`, also each brace expansion is checked.
    fn find_forbidden(&self, by_choice: bool) -> Option<String> {
        if by_choice
            && let Some(text) = self.with_choices()
            && self.folders.work_budget.spend(4 * text.len())
            && let Some(reason) = ParsedLine::new(&text, self.folders).forbidden()
        {
            return Some(reason.to_owned());
        }
        for (index, script) in self.collected.scripts().iter().enumerate() {
            for (command, cwds) in script.commands.iter().zip(&self.cwds[index]) {
                for redir in &command.redirs {
                    if matches!(redir.kind, RedirKind::Output | RedirKind::Both)
                        && (cwds.has_special_folder || may_name_protected_path(&redir.target.text))
                        && self.path_protection(&redir.target, cwds) == PathProtection::Protected
                    {
                        return Some(format!(
                            "{} is protected: nothing allows writing there",
                            redir.target.text
                        ));
                    }
                }
            }
        }
        if self.collected.is_too_large {
            return self.roughly_forbidden();
        }
        let guessed = self.collected.possible_commands.iter().map(|view| self.collected.words(*view));
        let is_own_program = |words: &&[Word]| matches!(program_name(&words[0].text), "agentctl" | "agentd");
        if guessed.filter(is_own_program).take(MAX_OWN_PROGRAMS).any(approves_itself) {
            return Some("a command may not answer the daemon's own questions".to_owned());
        }
        self.collected.views.iter().find_map(|view| {
            let words = self.collected.words(*view);
            approves_itself(words)
                .then(|| "a command may not answer the daemon's own questions".to_owned())
                .or_else(|| {
                    self.writes_protected(*view, words, by_choice)
                        .map(|text| format!("{text} is protected: nothing allows writing there"))
                })
        })
    }

    /// Same check for a line that is too large to inspect each command: every word is checked.
    fn roughly_forbidden(&self) -> Option<String> {
        for (index, script) in self.collected.scripts().iter().enumerate() {
            for (nth, command) in script.commands.iter().enumerate() {
                let (words, cwds) = (&command.words, &self.cwds[index][nth]);
                let is_own_program = |word: &&Word| matches!(program_name(&word.text), "agentctl" | "agentd");
                if words.iter().any(|word| is_own_program(&word)) {
                    return Some("the command for the daemon is too complex to be judged".to_owned());
                }
                let has_special_folder = cwds.has_special_folder;
                let protected_word = words.iter().find(|word| {
                    (has_special_folder || may_name_protected_path(&word.text))
                        && self.protection_within(word, cwds, WordUse::Text) == PathProtection::Protected
                });
                if let Some(word) = protected_word {
                    return Some(format!(
                        "{} is protected, and the command is too complex to be judged",
                        word.text
                    ));
                }
            }
        }
        None
    }

    /// The word of a command that names a protected path to be written, if there is one.
    fn writes_protected<'w>(&self, view: CommandView, words: &'w [Word], by_choice: bool) -> Option<&'w str> {
        let cwds = &self.cwds[view.script()][view.command()];
        let has_special_folder = cwds.has_special_folder;
        // An option can set the end of a backup's name without naming the whole path: `-S gentd` for
        // `.a`.
        let is_suffix = |word: &Word| {
            word.text.starts_with("--su") || word.text.starts_with('-') && word.text.contains('S')
        };
        let may_name_protected = self.protected_path_ends[view.script()][view.command()] > view.from()
            || words.iter().any(is_suffix);
        if !has_special_folder && !may_name_protected {
            return None;
        }
        // In deeply nested commands, each command inspects all words after it, so the work is
        // quadratic.
        if !self.folders.work_budget.spend(16 + 4 * words.len()) {
            return None;
        }
        let program = program_name(&words[0].text);
        if matches!(program, "cd" | "pushd" | "exec") {
            return None;
        }
        if view.runs && !marks_inner_commands(program) {
            return self.runner_writes_protected(program, words, cwds);
        }
        let records = find_records(words);
        let outside = |_: &str| false;
        let work_budget = &self.folders.work_budget;
        let call = CommandCall { words, granted_count: 0, outside: &outside, work_budget };
        // Then any word may be a file that it writes.
        let needs_request = records.request_reason(&call).is_some();
        let written = WriteTargets::new(records, words);
        // A file with a protected name counts only in the workspace and in the daemon's folders. In
        // other folders it is only a copy of the protected content.
        let is_kept = |word: &Word| {
            let home = word.marks.has_any(Marks::HOME);
            let is_here = |cwd: &String| {
                let path = resolve::resolve(&word.text, home, cwd, self.folders);
                self.folders.contains_path(&path) || self.folders.is_daemons(&path)
            };
            cwds.iter().any(is_here) && self.path_protection(word, cwds) == PathProtection::Protected
        };
        let mut created = created_paths(records, words, &self.folders.work_budget).into_iter();
        if let Some((_, source)) =
            created.find(|(word, source)| (by_choice || !source.marks.has_any(Marks::BRACE)) && is_kept(word))
        {
            return Some(source.text.as_str());
        }
        words.iter().enumerate().skip(1).find_map(|(index, word)| {
            let written = || {
                needs_request
                    || written.is(index)
                    || records.may_need_request() && resolve::is_output(&word.text)
            };
            if !(has_special_folder || may_name_protected_path(&word.text)) || !written() {
                return None;
            }
            let word_use = if needs_request { WordUse::Text } else { WordUse::Argument };
            let is_chosen = |text: String| {
                let home = text.starts_with("~/");
                self.protection_of(&text, home, word, cwds) == PathProtection::Protected
            };
            (self.protection_within(word, cwds, word_use) == PathProtection::Protected
                || by_choice && self.choices(word).into_iter().any(is_chosen))
            .then_some(word.text.as_str())
        })
    }

    /// The brace expansions of a word, if there are not too many.
    pub(super) fn choices(&self, word: &Word) -> Vec<String> {
        let chooses =
            word.marks.has_any(Marks::BRACE) && self.folders.work_budget.spend(64 + 2 * word.text.len());
        chooses.then(|| braces::choices(&word.text)).flatten().unwrap_or_default()
    }

    /// Same check for a command that runs another one; the inner command is checked separately.
    fn runner_writes_protected<'w>(
        &self,
        program: &str,
        words: &'w [Word],
        cwds: &PossibleFolders,
    ) -> Option<&'w str> {
        if !WRITING_RUNNERS.contains(&program) {
            return None;
        }
        // These programs receive whole command lines as single words.
        let inner = match program {
            "script" | "hyperfine" => words.len(),
            _ => inner_commands(words).starts.into_iter().min().unwrap_or(words.len()),
        };
        let is_option = |index: usize| words[index].text.starts_with('-');
        // An option may be followed by its value; `script FILE`, `flock FILE COMMAND`.
        let names_file =
            |index: usize| is_option(index) || is_option(index - 1) || matches!(program, "script" | "flock");
        let protected_word = (1..inner).filter(|index| names_file(*index)).map(|index| &words[index]);
        let mut protected_word =
            protected_word.filter(|word| cwds.has_special_folder || may_name_protected_path(&word.text));
        protected_word
            .find(|word| self.protection_within(word, cwds, WordUse::Argument) == PathProtection::Protected)
            .map(|word| word.text.as_str())
    }

    /// The protection of the path that a word names.
    fn path_protection(&self, word: &Word, cwds: &[String]) -> PathProtection {
        self.protection_of(&word.text, word.marks.has_any(Marks::HOME), word, cwds)
    }

    /// The protection of the path that a word names, and of the paths within the word.
    fn protection_within(&self, word: &Word, cwds: &[String], word_use: WordUse) -> PathProtection {
        resolve::candidates_in(word, word_use)
            .into_iter()
            .map(|(text, home)| self.protection_of(text, home, word, cwds))
            .max()
            .unwrap_or(PathProtection::Ordinary)
    }

    /// The strongest protection of a path from any of the possible folders.
    fn protection_of(&self, text: &str, home: bool, word: &Word, cwds: &[String]) -> PathProtection {
        let has_wildcards = word.marks.has_any(Marks::GLOB) || word.marks.has_any(Marks::BRACE);
        cwds.iter()
            .map(|cwd| {
                resolve::path_protection(
                    &resolve::resolve(text, home, cwd, self.folders),
                    has_wildcards,
                    self.folders,
                )
            })
            .max()
            .unwrap_or(PathProtection::Ordinary)
    }
}
