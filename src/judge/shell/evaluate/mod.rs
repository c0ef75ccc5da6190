//! The judgement of a command line: actions that are always denied, and commands that grants allow.

mod always_denied;
mod bypass_guard;
pub(super) mod collect;
mod grants;
pub(super) mod invisible_chars;
mod named_files;
pub(super) mod oversized;
pub(super) mod pattern;
pub(super) mod tree_sitter_check;
pub(super) mod word_checks;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use crate::file_facts::{FileFacts, FileRead, Obstacle};
use crate::shell::lex::syntax::{RedirKind, Redirection, SimpleCommand, UnsupportedSyntax};
use crate::shell::paths::cwd_tracking::{MAX_FOLDERS, PossibleFolders, changes_folder, folder, track_cwd};
use crate::shell::paths::files;
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::{Folders, may_name_protected_path};
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::call::program_name;
use crate::shell::programs::escape_options::{TOO_COMPLEX, may_become_an_option};
use crate::shell::programs::lookup::rows;
use crate::shell::read_only;
use collect::{CollectedCommands, collect};
pub(crate) use grants::Grant;
use grants::Grants;
use oversized::condense;
use pattern::{CommandIndex, CommandPattern, PatternMatch};

use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::inner_commands::inner_commands;
use crate::shell::programs::special;
use crate::shell::programs::table::FileEffect;
use crate::shell::programs::transparent_wrappers::{WrapperMatch, match_wrapper};
use invisible_chars::invisible_character;
use word_checks::{CHANGES_SHELL, assignment, check_redirection, check_words};

/// Maximum bytes of a line that can be allowed.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Maximum nesting of a line that can be allowed.
const MAX_NESTING: usize = 50;
/// Maximum number of words that are judged individually.
const MAX_WORDS: usize = 4_000;

/// Maximum number of reads that are inspected on the disk.
const MAX_READS: usize = 256;

/// Maximum number of reported parts. The part that needs a request is among them.
const MAX_PARTS: usize = 64;

/// The outcome of a part.
#[derive(Clone, Debug)]
pub(crate) struct PartOutcome<'t, R> {
    /// Borrowed if possible: a nested command contains its inner commands, so copies would use much
    /// memory.
    pub(crate) command: Cow<'t, str>,
    pub(crate) words: Vec<String>,
    pub(crate) allowed: bool,
    /// The grant that allows it.
    pub(crate) rule: Option<R>,
    pub(crate) reason: String,
}

/// A parsed command line with its folders.
pub(crate) struct ParsedLine<'a> {
    text: &'a str,
    /// The parsed text: the whole line, or pieces of an oversized one.
    read: Cow<'a, str>,
    folders: &'a Folders,
    all: CollectedCommands,
    /// The possible folders of each command of each text.
    cwds: Vec<Vec<Arc<PossibleFolders>>>,
    /// For each command of each text: the position after its last word that can concern a protected
    /// path.
    matters: Vec<Vec<usize>>,
    /// Why the line is denied whatever is granted; computed once.
    forbidden: OnceCell<Option<String>>,
    /// Positions of the commands that the second parser finds; computed once.
    second: OnceCell<Option<Vec<usize>>>,
    /// Same for the text without here-documents and prefixes; computed once.
    eased: OnceCell<Option<Vec<usize>>>,
    /// The programs that the line names; computed once.
    programs: OnceCell<CommandIndex>,
    /// For each command of the line: what it reads if it only reads, otherwise why it needs a grant;
    /// computed once.
    reads: Vec<OnceCell<CommandReads>>,
    /// What the disk says about these reads.
    facts: Option<&'a FileFacts>,
}

/// What a read-only command reads, or why the command needs a grant.
type CommandReads = Result<Vec<FileRead>, String>;

impl<'a> ParsedLine<'a> {
    pub(crate) fn new(text: &'a str, folders: &'a Folders) -> Self {
        let read = condense(text);
        let all = collect(&read);
        let start = Arc::new(PossibleFolders::from_folders(vec![folders.start.clone()], folders));
        let mut cwds: Vec<Vec<Arc<PossibleFolders>>> = Vec::with_capacity(all.scripts().len());
        for script in all.scripts() {
            let own = match script.origins.as_slice() {
                [] => track_cwd(script, &start, folders),
                origins => origins.iter().map(|at| Arc::clone(&cwds[0][*at])).collect(),
            };
            cwds.push(own);
        }
        let last = |command: &SimpleCommand| {
            command.words.iter().rposition(|word| may_name_protected_path(&word.text))
        };
        let behind = |command: &SimpleCommand| last(command).map_or(0, |at| at + 1);
        let matters =
            all.scripts().iter().map(|script| script.commands.iter().map(behind).collect()).collect();
        let (forbidden, programs) = (OnceCell::new(), OnceCell::new());
        let (second, eased) = (OnceCell::new(), OnceCell::new());
        let reads = vec![OnceCell::new(); all.main().commands.len()];
        let facts = None;
        Self { text, read, folders, all, cwds, matters, forbidden, second, eased, programs, reads, facts }
    }

    /// Sets what the disk says about the reads of the line.
    pub(crate) fn with_facts(self, facts: &'a FileFacts) -> Self {
        Self { facts: Some(facts), ..self }
    }

    /// Everything that the read-only commands of the line read.
    pub(crate) fn file_reads(&self) -> Vec<FileRead> {
        let mut all: Vec<FileRead> = Vec::new();
        if self.has_too_many_words() {
            return all;
        }
        for at in 0..self.all.main().commands.len() {
            let choices = self.loop_choices(at).unwrap_or_default();
            for read in choices.iter().filter_map(|choice| self.command_reads(choice, at).ok()).flatten() {
                if all.len() < MAX_READS && !all.contains(&read) {
                    all.push(read);
                }
            }
        }
        all
    }

    /// The command, once for each value of its loop variables.
    fn loop_choices(&self, at: usize) -> Option<Cow<'_, [SimpleCommand]>> {
        let main = self.all.main();
        let command = &main.commands[at];
        match command.is_looped {
            true => main.loop_choices(command).map(Cow::Owned),
            false => Some(Cow::Borrowed(std::slice::from_ref(command))),
        }
    }

    /// The words of the only command of the line, if its first two are spelled out.
    pub(crate) fn single_command(&self) -> Option<Vec<&str>> {
        let mut commands = self.all.main().commands.iter().filter(|command| !command.yields_text);
        let command = commands.next().filter(|command| !command.is_looped && command.assigns.is_empty())?;
        let is_spelled = command.words.iter().take(2).all(Word::is_bare);
        (commands.next().is_none() && is_spelled)
            .then(|| command.words.iter().map(|word| word.text.as_str()).collect())
    }

    /// Whether judging the line exceeded the work budget. The results may then be incomplete, so
    /// nothing allows the line.
    pub(crate) fn exceeds_work_budget(&self) -> Option<&'static str> {
        (self.folders.work_budget.is_spent() || self.is_in_pieces()).then_some(TOO_COMPLEX)
    }

    /// Whether only pieces of the line were parsed.
    fn is_in_pieces(&self) -> bool {
        matches!(self.read, Cow::Owned(_))
    }

    /// Whether the line has so many words that no rule for a command may allow it.
    pub(crate) fn is_excessive(&self) -> bool {
        self.text.len() > MAX_LINE_BYTES || self.has_too_many_words()
    }

    /// A command without words counts as one: it may have redirections.
    fn has_too_many_words(&self) -> bool {
        let commands = &self.all.main().commands;
        commands.iter().map(|command| command.words.len().max(1)).sum::<usize>() > MAX_WORDS
    }

    fn tree_sitter_commands(&self) -> Option<&[usize]> {
        self.second.get_or_init(|| tree_sitter_check::commands(self.text)).as_deref()
    }

    /// The commands that the second parser finds in the text without here-documents and prefixes. It
    /// does not support every here-document, `time (…)` and `! { …; }`, so it runs again without them
    /// if it disagrees with the lexer.
    fn eased(&self) -> Option<&[usize]> {
        let look = || tree_sitter_check::commands(&self.all.main().eased(self.text)?);
        self.eased.get_or_init(look).as_deref()
    }

    /// Searches for the command of a rule.
    pub(crate) fn find_command(&self, pattern: &CommandPattern) -> PatternMatch {
        pattern.find_command(
            self.text,
            &self.all,
            self.programs.get_or_init(|| CommandIndex::from_commands(&self.all)),
        )
    }

    /// Whether the line was understood well enough to conclude that a command that was not found is
    /// absent.
    pub(crate) fn is_understood(&self) -> bool {
        !self.is_excessive()
            && self.all.main().depth <= MAX_NESTING
            && !self.all.hidden
            && self.all.scripts().iter().all(|script| !script.has(UnsupportedSyntax::Syntax))
            && [Self::tree_sitter_commands, Self::eased]
                .iter()
                .any(|look| look(self).is_some_and(|found| tree_sitter_check::adds_nothing(found, &self.all)))
    }

    /// Why only a rule for the whole text may allow the line, if so. With `safe`, read-only commands may
    /// run in loops.
    pub(crate) fn unsupported(&self, safe: bool) -> Option<&'static str> {
        if self.text.len() > MAX_LINE_BYTES {
            return Some("the line is longer than 64 KiB");
        }
        if self.all.main().depth > MAX_NESTING {
            return Some("the line is nested deeper than 50");
        }
        if let Some(reason) = invisible_character(self.text) {
            return Some(reason);
        }
        let mut beyond = self.all.main().beyond.iter().map(|(what, _)| *what);
        beyond.find(|what| !(safe && *what == UnsupportedSyntax::ForLoop)).map(UnsupportedSyntax::reason)
    }

    /// Whether the text contains invisible characters or exceeds the limits.
    pub(crate) fn is_unreadable(&self) -> Option<&'static str> {
        if self.text.len() > MAX_LINE_BYTES || self.all.main().depth > MAX_NESTING {
            return Some("the line is too long or too deeply nested to be judged");
        }
        invisible_character(self.text)
    }

    /// Whether the second parser finds the same commands as the lexer.
    pub(crate) fn is_confirmed(&self) -> bool {
        let script = self.all.main();
        self.tree_sitter_commands().is_some_and(|found| tree_sitter_check::agrees(found, script, false))
            || self.eased().is_some_and(|found| tree_sitter_check::agrees(found, script, true))
    }

    /// Whether a command of the line changes the working directory.
    pub(crate) fn changes_folder(&self) -> bool {
        let mut commands = self.all.scripts().iter().flat_map(|script| &script.commands);
        commands.any(|command| changes_folder(&command.words))
    }

    /// Judges each simple command with the grants; with `safe`, read-only commands pass. Of many
    /// commands only some are reported, including those that need a request.
    pub(crate) fn parts<R: Copy>(&self, grants: &[Grant<'_, R>], safe: bool) -> Vec<PartOutcome<'_, R>> {
        let ordered = self.command_order();
        if self.has_too_many_words() {
            let asks = || Err("the line has too many words to be judged".to_owned());
            return ordered.into_iter().take(MAX_PARTS).map(|at| self.outcome(at, asks())).collect();
        }
        let grants = Grants::new(grants);
        let mut moved = self.folders.starts_outside_top();
        let mut judged = Vec::new();
        for at in ordered {
            judged.push((at, self.part(at, moved, &grants, safe)));
            moved |= changes_folder(&self.all.main().commands[at].words);
        }
        if judged.len() > MAX_PARTS {
            judged.sort_by_key(|(_, judged)| judged.is_ok());
            judged.truncate(MAX_PARTS);
        }
        judged.into_iter().map(|(at, judged)| self.outcome(at, judged)).collect()
    }

    /// Whether the line itself has a command.
    pub(crate) fn has_commands(&self) -> bool {
        !self.all.main().commands.is_empty()
    }

    /// The first command that needs a grant. As `parts` without grants, but stops there.
    pub(crate) fn first_not_free(&self) -> Option<Cow<'_, str>> {
        let no_grants = Grants::<()>::new(&[]);
        let has_too_many_words = self.has_too_many_words();
        let mut moved = self.folders.starts_outside_top();
        let needs_grant = |at: &usize| {
            let is_free = !has_too_many_words && self.part(*at, moved, &no_grants, true).is_ok();
            moved |= changes_folder(&self.all.main().commands[*at].words);
            !is_free
        };
        let at = self.command_order().into_iter().find(needs_grant)?;
        Some(self.command_text(at))
    }

    /// The text of a command of the line itself, or its words if the text shows it in another form.
    fn command_text(&self, at: usize) -> Cow<'_, str> {
        let command = &self.all.main().commands[at];
        let text = if command.derived { None } else { self.read.get(command.start..command.end) };
        let joined_words =
            || command.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        text.map_or_else(|| Cow::Owned(joined_words()), Cow::Borrowed)
    }

    /// The commands of the line in the order of the text.
    fn command_order(&self) -> Vec<usize> {
        let script = self.all.main();
        let mut ordered: Vec<usize> = (0..script.commands.len()).collect();
        ordered.sort_by_key(|at| (script.commands[*at].derived, script.commands[*at].start));
        ordered
    }

    /// The outcome of a command of the line itself.
    fn outcome<R>(&self, at: usize, judged: Result<(Option<R>, String), String>) -> PartOutcome<'_, R> {
        let command = &self.all.main().commands[at];
        let (allowed, rule, reason) = match judged {
            Ok((rule, reason)) => (true, rule, reason),
            Err(reason) => (false, None, reason),
        };
        let words = command.words.iter().map(|word| word.text.clone()).collect();
        PartOutcome { command: self.command_text(at), words, allowed, rule, reason }
    }

    /// Whether a rule may be suggested for this line, for a prefix or for this text only. Removing a
    /// folder with all content must not be granted with one key. If the request is about a secret, a
    /// suggested rule must not allow reading all other secrets.
    pub(crate) fn may_be_offered(&self, is_prefix: bool) -> bool {
        let scripts =
            self.all.scripts().iter().zip(&self.cwds).take_while(|(script, _)| {
                std::ptr::eq(*script, self.all.main()) || !script.origins.is_empty()
            });
        let mut commands = scripts
            .flat_map(|(script, cwds)| script.commands.iter().zip(cwds))
            .filter(|(it, _)| !it.words.is_empty());
        let reads = || self.reads.iter().filter_map(OnceCell::get).flatten().flatten();
        if is_prefix && reads().any(|read| self.obstacle(read).is_some()) {
            return false;
        }
        !commands.any(|(command, cwds)| {
            let words = &command.words;
            let is_secret = |word: &Word| self.folders.may_name_secret(&word.text, cwds);
            files::removal(words, cwds, self.folders).is_err()
                || is_prefix && rows(words).kind() == FileEffect::Reads && words[1..].iter().any(is_secret)
        })
    }

    /// One simple command: the grant that allows it (none for a free command), or why it needs a
    /// request. No grant allows a command in a loop.
    fn part<R: Copy>(
        &self,
        at: usize,
        moved: bool,
        grants: &Grants<'_, R>,
        safe: bool,
    ) -> Result<(Option<R>, String), String> {
        let command = &self.all.main().commands[at];
        if command.yields_text {
            return Ok((None, "yields the text of its here-document".into()));
        }
        if !command.is_looped {
            return self.simple_command(command, at, moved, grants, safe);
        }
        if changes_folder(&command.words) {
            return Err("the folder changes with each pass of the loop".into());
        }
        if command.words.first().is_some_and(|first| !first.variables.is_empty()) {
            return Err("the name of the command is not spelled out".into());
        }
        let choices = self.loop_choices(at).ok_or("the values of the loop are too many or not certain")?;
        let no_grants = Grants::new(&[]);
        let mut passed = None;
        for choice in choices.iter() {
            passed = Some(self.simple_command(choice, at, moved, &no_grants, safe)?);
        }
        passed.ok_or_else(|| "the loop has no values".into())
    }

    /// As [`Self::part`], for a command whose variables of loops have values.
    fn simple_command<R: Copy>(
        &self,
        command: &SimpleCommand,
        at: usize,
        moved: bool,
        grants: &Grants<'_, R>,
        safe: bool,
    ) -> Result<(Option<R>, String), String> {
        let cwds = &*self.cwds[0][at];
        for assign in &command.assigns {
            assignment(assign, command.words.is_empty())?;
        }
        for redir in &command.redirs {
            check_redirection(redir, cwds, self.folders)?;
        }
        let words = command.words.as_slice();
        let Some(first) = words.first() else {
            let secret = command.redirs.iter().find(|redir| {
                redir.kind == RedirKind::Input && self.folders.may_name_secret(&redir.target.text, cwds)
            });
            return if command.redirs.is_empty() {
                Err("nothing runs here".into())
            } else if let Some(redir) = secret.filter(|_| safe) {
                // The inner command may be read-only and print the content.
                Err(format!("{} may hold a secret", redir.target.text))
            } else if safe {
                self.check_reads(&read_only::redirected_reads(command, cwds, self.folders)?)?;
                Ok((None, "redirections that need no permission".into()))
            } else {
                // Redirections after `( … )` or `{ … }`.
                Ok((None, "redirections that need no permission".into()))
            };
        };
        check_words(words)?;
        if let Some(reason) = self.builtin_allowed(words, cwds)? {
            return Ok((None, reason));
        }
        if command.is_looped && words.len() == 1 && matches!(first.text.as_str(), "break" | "continue") {
            return Ok((None, "stays in the loop".into()));
        }
        // More folders than are tracked.
        if cwds.len() >= MAX_FOLDERS {
            return Err("it may run in any of too many folders".into());
        }
        if CHANGES_SHELL.contains(&first.text.as_str()) {
            return Err(format!("{} changes the shell or runs what it is given", first.text));
        }
        let (inner, fed) = unwrap(words)?;
        let from = words.len() - inner.len();
        if from > 0 {
            check_words(inner)?;
            if !fed && let Some(reason) = self.builtin_allowed(inner, cwds)? {
                return Ok((None, reason));
            }
            if CHANGES_SHELL.contains(&inner[0].text.as_str()) {
                return Err(format!("{} changes the shell or runs what it is given", inner[0].text));
            }
        }
        let found = inner_commands(inner);
        let plain = program_name(&inner[0].text);
        let by_hatch = matches!(plain, "find" | "fd" | "fdfind" | "git");
        let script_of_shell =
            found.hidden && found.texts.is_empty() && found.at.is_empty() && rows(inner).is_known();
        // Without arguments most runners start a shell, or execute their input.
        let says = matches!(
            plain,
            "env" | "nice" | "command" | "builtin" | "trap" | "jobs" | "time" | "uname26" | "arch"
        );
        let only_says = inner.len() == 2 && matches!(inner[1].text.as_str(), "--version" | "--help")
            || read_only::prints_version(inner);
        if found.runs && !by_hatch && !script_of_shell && !only_says && (inner.len() > 1 || !says) {
            return Err(format!("{plain} runs the command it is given"));
        }
        let mut refused = None;
        for grant in grants.for_command(words, from) {
            if !self.folders.work_budget.spend(2) {
                return Err(TOO_COMPLEX.into());
            }
            let Some((granted_count, exact)) = grant.pattern.spells(words, from) else { continue };
            if moved && inner[0].text.contains('/') && !inner[0].text.starts_with('/') {
                refused = Some("after cd the relative name is another file".to_owned());
                continue;
            }
            let judged = if exact {
                files::removal(inner, cwds, self.folders)
            } else {
                self.arguments(inner, granted_count, fed, cwds)
            };
            match judged {
                Ok(()) => return Ok((Some(grant.rule), "granted".to_owned())),
                Err(reason) => refused = Some(reason),
            }
        }
        if let Some(reason) = refused {
            return Err(reason);
        }
        if !safe || !command.assigns.is_empty() {
            return Err(format!("no rule allows {}", inner[0].text));
        }
        let own = command.is_looped.then(|| self.command_reads(command, at));
        let reads = match &own {
            Some(own) => own,
            None => self.reads[at].get_or_init(|| self.command_reads(command, at)),
        };
        self.check_reads(reads.as_ref().map_err(Clone::clone)?)?;
        Ok((None, "read-only, inside the workspace".to_owned()))
    }

    /// What a command reads if it only reads, otherwise why it needs a grant.
    fn command_reads(&self, command: &SimpleCommand, at: usize) -> CommandReads {
        let cwds = &*self.cwds[0][at];
        let (inner, fed) = unwrap(&command.words)?;
        let Some(first) = inner.first() else {
            return read_only::redirected_reads(command, cwds, self.folders);
        };
        let mut reads = if fed {
            let wrapper = &command.words[..command.words.len() - inner.len()];
            let listed = self.listed_files(command, wrapper, cwds);
            let listed =
                listed.ok_or_else(|| format!("{} gets arguments that are not in the text", first.text))?;
            read_only::fed_reads(inner, listed, cwds, self.folders)?
        } else {
            read_only::file_reads(inner, command.fed_by.is_some(), cwds, self.folders)?
        };
        reads.extend(read_only::redirected_reads(command, cwds, self.folders)?);
        Ok(reads)
    }

    /// The files that `xargs` gets, if a command that only lists files feeds it.
    fn listed_files(
        &self,
        command: &SimpleCommand,
        wrapper: &[Word],
        cwds: &[String],
    ) -> Option<Vec<FileRead>> {
        // With a mark, the names stand anywhere in the command.
        let is_mark = |word: &Word| {
            word.text.starts_with("--r") || word.text.starts_with("-I") || word.text.starts_with("-i")
        };
        if command.is_looped || wrapper.iter().any(is_mark) {
            return None;
        }
        let mut source = command.fed_by?;
        loop {
            let before = &self.all.main().commands[source];
            let is_quiet =
                |redir: &Redirection| redir.kind == RedirKind::Output && redir.target.text == "/dev/null";
            if before.is_looped || !before.assigns.is_empty() || !before.redirs.iter().all(is_quiet) {
                return None;
            }
            // The names are relative to the folder of the command that lists them.
            if **self.cwds[0][source] != *cwds {
                return None;
            }
            if !read_only::passes_lines(&before.words) {
                return read_only::listed_files(&before.words, before.fed_by.is_some(), cwds, self.folders);
            }
            source = before.fed_by?;
        }
    }

    fn obstacle(&self, read: &FileRead) -> Option<Obstacle> {
        match self.facts {
            Some(facts) => facts.obstacle(read),
            None => FileFacts::default().obstacle(read),
        }
    }

    fn check_reads(&self, reads: &[FileRead]) -> Result<(), String> {
        match reads.iter().find_map(|read| self.obstacle(read)) {
            Some(obstacle) => Err(obstacle.to_string()),
            None => Ok(()),
        }
    }

    /// Builtins that are always allowed.
    fn builtin_allowed(&self, words: &[Word], cwds: &[String]) -> Result<Option<String>, String> {
        match words[0].text.as_str() {
            "pwd" | "true" | "false" | ":" => Ok(Some("has no effect".into())),
            "cd" => {
                let target = folder(words).ok_or("cd to a folder that is not spelled out")?;
                let inside = cwds.iter().all(|cwd| {
                    self.folders.contains_path(&resolve::resolve(target, false, cwd, self.folders))
                });
                if inside && cwds.len() < MAX_FOLDERS {
                    Ok(Some("stays in the workspace".into()))
                } else {
                    Err("cd to a folder outside the workspace".into())
                }
            }
            _ => Ok(None),
        }
    }

    /// Arguments that a prefix does not cover, and files that need a request.
    fn arguments(
        &self,
        words: &[Word],
        granted_count: usize,
        fed: bool,
        cwds: &PossibleFolders,
    ) -> Result<(), String> {
        files::removal(words, cwds, self.folders)?;
        let rows = rows(words);
        let work_budget = &self.folders.work_budget;
        let outside = |text: &str| read_only::is_outside(text, cwds, self.folders);
        if let Some(reason) = rows.request_reason(&CommandCall {
            words,
            granted: granted_count,
            outside: &outside,
            work_budget,
        }) {
            return Err(reason);
        }
        // `python -m pytest`: the rules for pytest apply.
        if let Some(at) = special::python_module(words, granted_count) {
            let words = &words[at..];
            let call = CommandCall { words, granted: granted_count - at, outside: &outside, work_budget };
            if let Some(reason) = crate::shell::programs::lookup::rows(words).request_reason(&call) {
                return Err(reason);
            }
        }
        // `sed -i`: the words of the grant make it write.
        if granted_count > 1 && rows.writes_as_granted(&words[..granted_count], work_budget) {
            files::refuse_to_leave(words, granted_count, cwds, self.folders)?;
        }
        let plain = program_name(&words[0].text);
        // With `-t` they write to another folder than the last operand.
        let has_target = matches!(plain, "cp" | "gcp" | "mv" | "gmv" | "ln" | "gln" | "install" | "ginstall");
        let is_tame = |word: &Word| (has_target || plain == "rm") && has_ending(word);
        if (has_target || rows.has_escape_options())
            && let Some(word) = words
                .iter()
                .skip(granted_count.max(1))
                .find(|word| may_become_an_option(word) && !is_tame(word))
        {
            return Err(format!("{} may become an option of {}", word.text, words[0].text));
        }
        if fed && (rows.has_escape_options() || rows.kind() != FileEffect::Reads) {
            return Err(format!("{} gets arguments that are not in the text", words[0].text));
        }
        files::refuse(rows, words, granted_count, cwds, cwds.special, self.folders)
    }
}

/// `*.o`: no option of `rm` contains a dot, and of the options of `cp` only a folder name with this
/// ending does.
fn has_ending(word: &Word) -> bool {
    !word.marks.has(Marks::BRACE)
        && word.text.rsplit(['*', '?', ']']).next().is_some_and(|ending| ending.starts_with('.'))
}

/// The command after transparent wrappers, and whether it gets more words.
fn unwrap(words: &[Word]) -> Result<(&[Word], bool), String> {
    let mut rest = words;
    let mut fed = false;
    loop {
        match match_wrapper(rest) {
            WrapperMatch::No => return Ok((rest, fed)),
            WrapperMatch::At(from) => rest = &rest[from..],
            WrapperMatch::AppendsArgs(from) => {
                fed = true;
                rest = &rest[from..];
            }
            WrapperMatch::Unparsed => {
                return Err(format!("the arguments of {} are not understood", rest[0].text));
            }
        }
    }
}
