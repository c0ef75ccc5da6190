//! The judgement of one simple command: the grant that allows it, or why it needs a request.

use crate::shell::evaluate::ParsedLine;
use crate::shell::evaluate::grants::Grants;
use crate::shell::evaluate::word_checks::{CHANGES_SHELL, assignment, check_redirection, check_words};
use crate::shell::lex::syntax::{RedirKind, SimpleCommand};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::cwd_tracking::{MAX_FOLDERS, PossibleFolders, changes_folder, folder};
use crate::shell::paths::files;
use crate::shell::paths::resolve;
use crate::shell::programs::call::{CommandCall, TOO_COMPLEX, program_name};
use crate::shell::programs::inner_commands::{inner_commands, marks_inner_commands};
use crate::shell::programs::lookup;
use crate::shell::programs::operands::{has_word, may_become_an_option};
use crate::shell::programs::record::FileEffect;
use crate::shell::programs::special;
use crate::shell::programs::transparent_wrappers::{WrapperMatch, match_wrapper};
use crate::shell::read_only;

/// The grant that allows a command and why, or why the command needs a request. A command that is free needs no grant.
pub(super) type CommandOutcome<R> = Result<(Option<R>, String), String>;

/// What may allow a command.
#[derive(Clone, Copy)]
pub(super) struct Permissions<'g, R> {
    pub(super) grants: &'g Grants<'g, R>,
    /// Read-only commands pass without a grant.
    pub(super) read_only_passes: bool,
}

/// A command after its transparent wrappers.
#[derive(Clone, Copy)]
pub(super) struct InnerWords<'w> {
    pub(super) words: &'w [Word],
    /// `xargs` appends words that the text does not show.
    pub(super) gets_more_words: bool,
}

impl ParsedLine<'_> {
    /// Judges a simple command of the line. No grant allows a command in a loop. `left_top`: the command may run in
    /// another folder than the top of the workspace.
    pub(super) fn judge_part<R: Copy>(
        &self,
        index: usize,
        left_top: bool,
        permissions: Permissions<'_, R>,
    ) -> CommandOutcome<R> {
        let command = &self.collected.main().commands[index];
        if command.yields_text {
            return Ok((None, "yields the text of its here-document".into()));
        }
        if !command.is_looped {
            return self.judge_command(command, index, left_top, permissions);
        }
        if changes_folder(&command.words) {
            return Err("the folder changes with each pass of the loop".into());
        }
        if command.words.first().is_some_and(|first| !first.variables.is_empty()) {
            return Err("the name of the command is not spelled out".into());
        }
        let choices = self.loop_choices(index).ok_or("the values of the loop are too many or not certain")?;
        let no_grants = Grants::new(&[]);
        let permissions = Permissions { grants: &no_grants, ..permissions };
        let mut passed = None;
        for choice in choices.iter() {
            passed = Some(self.judge_command(choice, index, left_top, permissions)?);
        }
        passed.ok_or_else(|| "the loop has no values".into())
    }

    /// Same as [`Self::judge_part`], for a command whose variables of loops have values.
    fn judge_command<R: Copy>(
        &self,
        command: &SimpleCommand,
        index: usize,
        left_top: bool,
        permissions: Permissions<'_, R>,
    ) -> CommandOutcome<R> {
        let cwds = &*self.cwds[0][index];
        for assign in &command.assigns {
            assignment(assign, command.words.is_empty())?;
        }
        for redir in &command.redirs {
            check_redirection(redir, cwds, self.folders)?;
        }
        let words = command.words.as_slice();
        let Some(first) = words.first() else {
            return self.judge_redirections(command, cwds, permissions.read_only_passes);
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
        let inner = without_wrappers(words)?;
        let from = words.len() - inner.words.len();
        if from > 0 {
            check_words(inner.words)?;
            if !inner.gets_more_words
                && let Some(reason) = self.builtin_allowed(inner.words, cwds)?
            {
                return Ok((None, reason));
            }
            if CHANGES_SHELL.contains(&inner.words[0].text.as_str()) {
                return Err(format!("{} changes the shell or runs what it is given", inner.words[0].text));
            }
        }
        if runs_other_command(inner.words) {
            return Err(format!("{} runs the command it is given", program_name(&inner.words[0].text)));
        }
        let name = &inner.words[0].text;
        let mut refused = None;
        for grant in permissions.grants.for_command(words, from) {
            if !self.folders.work_budget.spend(2) {
                return Err(TOO_COMPLEX.into());
            }
            let Some((granted_count, exact)) = grant.pattern.spells(words, from) else { continue };
            if left_top && name.contains('/') && !name.starts_with('/') {
                refused = Some("after cd the relative name is another file".to_owned());
                continue;
            }
            let judged = if exact {
                files::check_removal(inner.words, cwds, self.folders)
            } else {
                self.check_arguments(inner, granted_count, cwds)
            };
            match judged {
                Ok(()) => return Ok((Some(grant.rule), "granted".to_owned())),
                Err(reason) => refused = Some(reason),
            }
        }
        if let Some(reason) = refused {
            return Err(reason);
        }
        if !permissions.read_only_passes || !command.assigns.is_empty() {
            return Err(format!("no rule allows {name}"));
        }
        let reads_in_loop = command.is_looped.then(|| self.command_reads(command, index));
        let reads = match &reads_in_loop {
            Some(reads_in_loop) => reads_in_loop,
            None => self.reads[index].get_or_init(|| self.command_reads(command, index)),
        };
        self.check_reads(reads.as_ref().map_err(Clone::clone)?)?;
        Ok((None, "read-only, inside the workspace".to_owned()))
    }

    /// Judges a command that consists of redirections, such as those after `( … )` or `{ … }`.
    fn judge_redirections<R>(
        &self,
        command: &SimpleCommand,
        cwds: &[String],
        read_only_passes: bool,
    ) -> CommandOutcome<R> {
        if command.redirs.is_empty() {
            return Err("nothing runs here".into());
        }
        if read_only_passes {
            // The inner command may be read-only and print the content.
            let secret = command.redirs.iter().find(|redir| {
                redir.kind == RedirKind::Input && self.folders.may_name_secret(&redir.target.text, cwds)
            });
            if let Some(redir) = secret {
                return Err(format!("{} may hold a secret", redir.target.text));
            }
            self.check_reads(&read_only::redirected_reads(command, cwds, self.folders)?)?;
        }
        Ok((None, "redirections that need no permission".into()))
    }

    /// Builtins that are always allowed.
    fn builtin_allowed(&self, words: &[Word], cwds: &[String]) -> Result<Option<String>, String> {
        match words[0].text.as_str() {
            "pwd" | "true" | "false" | ":" => Ok(Some("has no effect".into())),
            "cd" => {
                let target = folder(words).ok_or("cd to a folder that is not spelled out")?;
                let inside = cwds
                    .iter()
                    .all(|cwd| self.folders.contains_path(&resolve::resolve_in(target, cwd, self.folders)));
                if inside && cwds.len() < MAX_FOLDERS {
                    Ok(Some("stays in the workspace".into()))
                } else {
                    Err("cd to a folder outside the workspace".into())
                }
            }
            _ => Ok(None),
        }
    }

    /// Checks the arguments that a prefix does not cover, and files that need a request.
    fn check_arguments(
        &self,
        inner: InnerWords<'_>,
        granted_count: usize,
        cwds: &PossibleFolders,
    ) -> Result<(), String> {
        let words = inner.words;
        files::check_removal(words, cwds, self.folders)?;
        let records = lookup::find_records(words);
        let work_budget = &self.folders.work_budget;
        let outside = |text: &str| read_only::is_outside(text, cwds, self.folders);
        let call = CommandCall { words, granted_count, outside: &outside, work_budget };
        if let Some(reason) = records.request_reason(&call) {
            return Err(reason);
        }
        // `python -m pytest`: the rules for pytest apply.
        if let Some(index) = special::python_module(words, granted_count) {
            let words = &words[index..];
            let call =
                CommandCall { words, granted_count: granted_count - index, outside: &outside, work_budget };
            if let Some(reason) = lookup::find_records(words).request_reason(&call) {
                return Err(reason);
            }
        }
        // `sed -i`: the words of the grant make it write.
        if granted_count > 1 && records.writes_as_granted(&words[..granted_count], work_budget) {
            files::check_written_inside(words, granted_count, cwds, self.folders)?;
        }
        let program = program_name(&words[0].text);
        // With `-t` it writes to another folder than the last operand.
        let has_target = records
            .program
            .is_some_and(|record| !record.target_options.is_empty() && record.names.has(program));
        let is_no_option = |word: &Word| (has_target || program == "rm") && has_ending(word);
        if (has_target || records.may_need_request())
            && let Some(word) = words
                .iter()
                .skip(granted_count.max(1))
                .find(|word| may_become_an_option(word) && !is_no_option(word))
        {
            return Err(format!("{} may become an option of {}", word.text, words[0].text));
        }
        if inner.gets_more_words && (records.may_need_request() || records.effect() != FileEffect::Reads) {
            return Err(format!("{} gets arguments that are not in the text", words[0].text));
        }
        files::check_ungranted_words(
            records,
            words,
            granted_count,
            cwds,
            cwds.has_special_folder,
            self.folders,
        )
    }
}

/// `*.o`: no option of `rm` contains a dot, and of the options of `cp` only a folder name with this
/// ending does.
fn has_ending(word: &Word) -> bool {
    !word.marks.has_any(Marks::BRACE)
        && word.text.rsplit(['*', '?', ']']).next().is_some_and(|ending| ending.starts_with('.'))
}

/// Whether a program runs another command, other than by marks that its record lists.
fn runs_other_command(words: &[Word]) -> bool {
    let inner = inner_commands(words);
    let program = program_name(&words[0].text);
    let is_known_shell = inner.may_run_more
        && inner.texts.is_empty()
        && inner.starts.is_empty()
        && lookup::find_records(words).is_known();
    // Without arguments most runners start a shell, or execute their input.
    let only_prints_alone = has_word("env nice command builtin trap jobs time uname26 arch", program);
    let only_prints = words.len() == 2 && matches!(words[1].text.as_str(), "--version" | "--help")
        || read_only::prints_version(words);
    inner.runs
        && !marks_inner_commands(program)
        && !is_known_shell
        && !only_prints
        && (words.len() > 1 || !only_prints_alone)
}

/// The command after transparent wrappers.
pub(super) fn without_wrappers(words: &[Word]) -> Result<InnerWords<'_>, String> {
    let mut inner = InnerWords { words, gets_more_words: false };
    loop {
        match match_wrapper(inner.words) {
            WrapperMatch::No => return Ok(inner),
            WrapperMatch::At(from) => inner.words = &inner.words[from..],
            WrapperMatch::AppendsArgs(from) => {
                inner = InnerWords { words: &inner.words[from..], gets_more_words: true };
            }
            WrapperMatch::Unparsed => {
                return Err(format!("the arguments of {} are not understood", inner.words[0].text));
            }
        }
    }
}
