//! The judgement of a command line: actions that are always denied, and commands that grants allow.

mod always_denied;
mod bypass_guard;
pub(super) mod collect;
mod command_index;
mod grants;
pub(super) mod invisible_chars;
mod judge_command;
mod named_files;
pub(super) mod oversized;
mod parts;
pub(super) mod pattern;
mod reads;
pub(super) mod tree_sitter_check;
pub(super) mod word_checks;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use crate::file_facts::{FileFacts, FileRead};
use crate::shell::lex::syntax::{SimpleCommand, UnsupportedSyntax};
use crate::shell::lex::word::Word;
use crate::shell::paths::cwd_tracking::{PossibleFolders, changes_folder, track_cwd};
use crate::shell::paths::resolve::{Folders, may_name_protected_path};
use crate::shell::programs::call::TOO_COMPLEX;
use collect::{CollectedCommands, collect};
use command_index::CommandIndex;
pub(crate) use grants::Grant;
use invisible_chars::invisible_character;
use oversized::condense;
pub(crate) use parts::PartOutcome;
use pattern::{CommandPattern, PatternMatch};
use tree_sitter_check::{TextForm, agrees};

/// Maximum bytes of a line that can be allowed.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Maximum nesting of a line that can be allowed.
const MAX_NESTING: usize = 50;
/// Maximum number of words that are judged individually.
const MAX_WORDS: usize = 4_000;

/// Maximum number of reads that are inspected on the disk.
const MAX_READS: usize = 256;

/// A parsed command line with its folders.
pub(crate) struct ParsedLine<'a> {
    text: &'a str,
    /// The parsed text: the whole line, or pieces of an oversized one.
    parsed_text: Cow<'a, str>,
    folders: &'a Folders,
    collected: CollectedCommands,
    /// The possible folders of each command of each text.
    cwds: Vec<Vec<Arc<PossibleFolders>>>,
    /// For each command of each text: the position after its last word that can concern a protected
    /// path.
    protected_path_ends: Vec<Vec<usize>>,
    /// Why the line is denied whatever is granted; computed once.
    forbidden: OnceCell<Option<String>>,
    /// Positions of the commands that the second parser finds; computed once.
    tree_sitter: OnceCell<Option<Vec<usize>>>,
    /// Same for the text without here-documents and prefixes; computed once.
    tree_sitter_without_ignorable: OnceCell<Option<Vec<usize>>>,
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
    /// Parses a line that starts in the folder `folders.start`.
    pub(crate) fn new(text: &'a str, folders: &'a Folders) -> Self {
        let parsed_text = condense(text);
        let collected = collect(&parsed_text);
        let start = Arc::new(PossibleFolders::from_folders(vec![folders.start.clone()], folders));
        let mut cwds: Vec<Vec<Arc<PossibleFolders>>> = Vec::with_capacity(collected.scripts().len());
        for script in collected.scripts() {
            let command_folders = match script.origins.as_slice() {
                [] => track_cwd(script, &start, folders),
                origins => origins.iter().map(|index| Arc::clone(&cwds[0][*index])).collect(),
            };
            cwds.push(command_folders);
        }
        let end_of_paths = |command: &SimpleCommand| {
            let last = command.words.iter().rposition(|word| may_name_protected_path(&word.text));
            last.map_or(0, |index| index + 1)
        };
        let protected_path_ends = collected
            .scripts()
            .iter()
            .map(|script| script.commands.iter().map(end_of_paths).collect())
            .collect();
        let (forbidden, programs) = (OnceCell::new(), OnceCell::new());
        let (tree_sitter, tree_sitter_without_ignorable) = (OnceCell::new(), OnceCell::new());
        let reads = vec![OnceCell::new(); collected.main().commands.len()];
        let facts = None;
        Self {
            text,
            parsed_text,
            folders,
            collected,
            cwds,
            protected_path_ends,
            forbidden,
            tree_sitter,
            tree_sitter_without_ignorable,
            programs,
            reads,
            facts,
        }
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
        for index in 0..self.collected.main().commands.len() {
            let choices = self.loop_choices(index).unwrap_or_default();
            for read in choices.iter().filter_map(|choice| self.command_reads(choice, index).ok()).flatten() {
                if all.len() < MAX_READS && !all.contains(&read) {
                    all.push(read);
                }
            }
        }
        all
    }

    /// The command, once for each value of its loop variables.
    fn loop_choices(&self, index: usize) -> Option<Cow<'_, [SimpleCommand]>> {
        let main = self.collected.main();
        let command = &main.commands[index];
        match command.is_looped {
            true => main.loop_choices(command).map(Cow::Owned),
            false => Some(Cow::Borrowed(std::slice::from_ref(command))),
        }
    }

    /// The words of the only command of the line, if its first two are spelled out.
    pub(crate) fn single_command(&self) -> Option<Vec<&str>> {
        let mut commands = self.collected.main().commands.iter().filter(|command| !command.yields_text);
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
        matches!(self.parsed_text, Cow::Owned(_))
    }

    /// Whether the line has so many words that no rule for a command may allow it.
    pub(crate) fn is_excessive(&self) -> bool {
        self.text.len() > MAX_LINE_BYTES || self.has_too_many_words()
    }

    /// A command without words counts as one: it may have redirections.
    fn has_too_many_words(&self) -> bool {
        let commands = &self.collected.main().commands;
        commands.iter().map(|command| command.words.len().max(1)).sum::<usize>() > MAX_WORDS
    }

    /// The positions of the commands that the second parser finds; `None` if it does not understand the line.
    fn tree_sitter_commands(&self) -> Option<&[usize]> {
        self.tree_sitter.get_or_init(|| tree_sitter_check::commands(self.text)).as_deref()
    }

    /// The commands that the second parser finds in the text without here-documents and prefixes. It
    /// does not support every here-document, `time (…)` and `! { …; }`, so it runs again without them
    /// if it disagrees with the lexer.
    fn tree_sitter_without_ignorable(&self) -> Option<&[usize]> {
        let parse = || tree_sitter_check::commands(&self.collected.main().without_ignorable(self.text)?);
        self.tree_sitter_without_ignorable.get_or_init(parse).as_deref()
    }

    /// Searches for the command of a rule.
    pub(crate) fn find_command(&self, pattern: &CommandPattern) -> PatternMatch {
        pattern.find_command(
            self.text,
            &self.collected,
            self.programs.get_or_init(|| CommandIndex::from_commands(&self.collected)),
        )
    }

    /// Whether the line was understood well enough to conclude that a command that was not found is
    /// absent.
    pub(crate) fn is_understood(&self) -> bool {
        !self.is_excessive()
            && self.collected.main().depth <= MAX_NESTING
            && !self.collected.may_run_more
            && self.collected.scripts().iter().all(|script| !script.has(UnsupportedSyntax::Syntax))
            && [Self::tree_sitter_commands, Self::tree_sitter_without_ignorable].iter().any(
                |find_positions| {
                    find_positions(self)
                        .is_some_and(|positions| tree_sitter_check::adds_nothing(positions, &self.collected))
                },
            )
    }

    /// Why only a rule for the whole text may allow the line, if so. With `read_only_passes`, read-only commands may
    /// run in loops.
    pub(crate) fn unsupported(&self, read_only_passes: bool) -> Option<&'static str> {
        if self.text.len() > MAX_LINE_BYTES {
            return Some("the line is longer than 64 KiB");
        }
        if self.collected.main().depth > MAX_NESTING {
            return Some("the line is nested deeper than 50");
        }
        if let Some(reason) = invisible_character(self.text) {
            return Some(reason);
        }
        let mut kinds = self.collected.main().unsupported.iter().map(|(what, _)| *what);
        kinds
            .find(|what| !(read_only_passes && *what == UnsupportedSyntax::ForLoop))
            .map(UnsupportedSyntax::reason)
    }

    /// Whether the text contains invisible characters or exceeds the limits.
    pub(crate) fn is_unreadable(&self) -> Option<&'static str> {
        if self.text.len() > MAX_LINE_BYTES || self.collected.main().depth > MAX_NESTING {
            return Some("the line is too long or too deeply nested to be judged");
        }
        invisible_character(self.text)
    }

    /// Whether the second parser finds the same commands as the lexer.
    pub(crate) fn is_confirmed(&self) -> bool {
        let script = self.collected.main();
        self.tree_sitter_commands().is_some_and(|found| agrees(found, script, TextForm::Whole))
            || self
                .tree_sitter_without_ignorable()
                .is_some_and(|found| agrees(found, script, TextForm::WithoutIgnorable))
    }

    /// Whether a command of the line changes the working directory.
    pub(crate) fn changes_folder(&self) -> bool {
        let mut commands = self.collected.scripts().iter().flat_map(|script| &script.commands);
        commands.any(|command| changes_folder(&command.words))
    }
}
