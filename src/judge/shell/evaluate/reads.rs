//! What the read-only commands of a line read, checked against the disk.

use crate::file_facts::{FileFacts, FileRead, Obstacle};
use crate::shell::evaluate::judge_command::without_wrappers;
use crate::shell::evaluate::{CommandReads, ParsedLine};
use crate::shell::lex::syntax::{RedirKind, Redirection, SimpleCommand};
use crate::shell::lex::word::Word;
use crate::shell::read_only;

impl ParsedLine<'_> {
    /// What a command reads if it only reads, otherwise why it needs a grant.
    pub(super) fn command_reads(&self, command: &SimpleCommand, index: usize) -> CommandReads {
        let cwds = &*self.cwds[0][index];
        let inner = without_wrappers(&command.words)?;
        let Some(first) = inner.words.first() else {
            return read_only::redirected_reads(command, cwds, self.folders);
        };
        let mut reads = if inner.gets_more_words {
            let wrapper = &command.words[..command.words.len() - inner.words.len()];
            let listed = self.listed_files(command, wrapper, cwds);
            let listed =
                listed.ok_or_else(|| format!("{} gets arguments that are not in the text", first.text))?;
            read_only::reads_with_listed_files(inner.words, listed, cwds, self.folders)?
        } else {
            read_only::file_reads(inner.words, command.piped_from.is_some(), cwds, self.folders)?
        };
        reads.extend(read_only::redirected_reads(command, cwds, self.folders)?);
        Ok(reads)
    }

    /// The files that `xargs` gets, if it is behind a command that only lists files.
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
        let mut source = command.piped_from?;
        loop {
            let before = &self.collected.main().commands[source];
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
                return read_only::listed_files(
                    &before.words,
                    before.piped_from.is_some(),
                    cwds,
                    self.folders,
                );
            }
            source = before.piped_from?;
        }
    }

    /// Why a file must not be read without a request, by what the disk says.
    pub(super) fn obstacle(&self, read: &FileRead) -> Option<Obstacle> {
        match self.facts {
            Some(facts) => facts.obstacle(read),
            None => FileFacts::default().obstacle(read),
        }
    }

    /// Whether nothing is in the way of these reads. The error is the first obstacle.
    pub(super) fn check_reads(&self, reads: &[FileRead]) -> Result<(), String> {
        match reads.iter().find_map(|read| self.obstacle(read)) {
            Some(obstacle) => Err(obstacle.to_string()),
            None => Ok(()),
        }
    }
}
