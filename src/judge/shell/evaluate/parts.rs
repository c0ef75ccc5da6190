//! The outcome of each command of a line, and whether a rule for the line may be suggested.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::shell::evaluate::ParsedLine;
use crate::shell::evaluate::grants::{Grant, Grants};
use crate::shell::evaluate::judge_command::{CommandOutcome, Permissions};
use crate::shell::lex::word::Word;
use crate::shell::paths::cwd_tracking::changes_folder;
use crate::shell::paths::files;
use crate::shell::programs::lookup::find_records;
use crate::shell::programs::record::FileEffect;

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

impl ParsedLine<'_> {
    /// Judges each simple command with the grants; with `read_only_passes`, read-only commands need none. Of
    /// many commands only some are reported, including those that need a request.
    pub(crate) fn parts<R: Copy>(
        &self,
        grants: &[Grant<'_, R>],
        read_only_passes: bool,
    ) -> Vec<PartOutcome<'_, R>> {
        let ordered = self.command_order();
        if self.has_too_many_words() {
            let too_many_words = || Err("the line has too many words to be judged".to_owned());
            return ordered
                .into_iter()
                .take(MAX_PARTS)
                .map(|index| self.outcome(index, too_many_words()))
                .collect();
        }
        let grants = Grants::new(grants);
        let permissions = Permissions { grants: &grants, read_only_passes };
        let mut has_left_top = self.folders.starts_outside_top();
        let mut judged = Vec::new();
        for index in ordered {
            judged.push((index, self.judge_part(index, has_left_top, permissions)));
            has_left_top |= changes_folder(&self.collected.main().commands[index].words);
        }
        if judged.len() > MAX_PARTS {
            judged.sort_by_key(|(_, judged)| judged.is_ok());
            judged.truncate(MAX_PARTS);
        }
        judged.into_iter().map(|(index, judged)| self.outcome(index, judged)).collect()
    }

    /// Whether the line itself has a command.
    pub(crate) fn has_commands(&self) -> bool {
        !self.collected.main().commands.is_empty()
    }

    /// The first command that needs a grant. As `parts` without grants, but stops there.
    pub(crate) fn first_that_needs_grant(&self) -> Option<Cow<'_, str>> {
        let no_grants = Grants::<()>::new(&[]);
        let permissions = Permissions { grants: &no_grants, read_only_passes: true };
        let has_too_many_words = self.has_too_many_words();
        let mut has_left_top = self.folders.starts_outside_top();
        let needs_grant = |index: &usize| {
            let passes = !has_too_many_words && self.judge_part(*index, has_left_top, permissions).is_ok();
            has_left_top |= changes_folder(&self.collected.main().commands[*index].words);
            !passes
        };
        let index = self.command_order().into_iter().find(needs_grant)?;
        Some(self.command_text(index))
    }

    /// The text of a command of the line itself, or its words if the text shows it in another form.
    fn command_text(&self, index: usize) -> Cow<'_, str> {
        let command = &self.collected.main().commands[index];
        let text = if command.derived { None } else { self.parsed_text.get(command.start..command.end) };
        let joined_words =
            || command.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        text.map_or_else(|| Cow::Owned(joined_words()), Cow::Borrowed)
    }

    /// The commands of the line in the order of the text.
    fn command_order(&self) -> Vec<usize> {
        let script = self.collected.main();
        let mut ordered: Vec<usize> = (0..script.commands.len()).collect();
        ordered.sort_by_key(|index| (script.commands[*index].derived, script.commands[*index].start));
        ordered
    }

    /// The outcome of a command of the line itself.
    fn outcome<R>(&self, index: usize, judged: CommandOutcome<R>) -> PartOutcome<'_, R> {
        let command = &self.collected.main().commands[index];
        let (allowed, rule, reason) = match judged {
            Ok((rule, reason)) => (true, rule, reason),
            Err(reason) => (false, None, reason),
        };
        let words = command.words.iter().map(|word| word.text.clone()).collect();
        PartOutcome { command: self.command_text(index), words, allowed, rule, reason }
    }

    /// Whether a rule may be suggested for this line, for a prefix or for this text only. Removing a
    /// folder with all content must not be granted with one key. If the request is about a secret, a
    /// suggested rule must not allow reading all other secrets.
    pub(crate) fn may_be_offered(&self, is_prefix: bool) -> bool {
        let scripts = self.collected.scripts().iter().zip(&self.cwds).take_while(|(script, _)| {
            std::ptr::eq(*script, self.collected.main()) || !script.origins.is_empty()
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
            files::check_removal(words, cwds, self.folders).is_err()
                || is_prefix
                    && find_records(words).effect() == FileEffect::Reads
                    && words[1..].iter().any(is_secret)
        })
    }
}
