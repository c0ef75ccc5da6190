//! Puts arguments into the text of a command's file, and finds the parts that are filled in later: `` !`command` `` and
//! `@file`.
//!
//! These parts are found in the file before the arguments are put in, so that an argument is never run as a command.
//! Fenced code is text: only `$ARGUMENTS` is replaced there, because `$1` is often a variable of a program.

use std::collections::BTreeMap;
use std::ops::Range;

use super::commands::CustomCommand;
use crate::markdown::{FenceLine, Fences, end_of_span};
use types::slash_command::CommandPart;

/// Maximum bytes of a prompt after the arguments are put in.
const MAX_PROMPT_BYTES: usize = 1 << 20;
/// Maximum number of commands and files of one prompt.
const MAX_CALLS: usize = 50;
/// The info text of a fence whose code is run.
const RUN_FENCE: &str = "!";

/// The text of a command's file with arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The parts in order. Two texts never follow each other.
    pub parts: Vec<CommandPart>,
}

impl Expansion {
    /// The text as the file has it.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.iter().map(CommandPart::source).collect()
    }

    /// Whether a part must be filled in.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, CommandPart::Text { .. }))
    }
}

impl CustomCommand {
    /// The prompt with these arguments. If the file names no place for them, they follow it. `is_file` says whether a path
    /// of the text is a file, and may block on the disk. A skill has text only.
    ///
    /// # Errors
    /// The prompt is too long, or has too many parts.
    pub fn expand(&self, arguments: &str, is_file: &dyn Fn(&str) -> bool) -> Result<Expansion, String> {
        let mut builder = Builder {
            command: self,
            arguments: Arguments::read(arguments, &self.argument_names),
            is_file,
            parts: Vec::new(),
            has_place: false,
        };
        builder.add_body()?;
        if !builder.has_place && !arguments.is_empty() {
            builder.add_text("\n\nArguments: ");
            builder.add_text(arguments);
        }
        builder.check_size()?;
        Ok(Expansion { parts: builder.parts })
    }
}

/// Where a text stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Prose,
    /// A command that is run, or code in a line.
    Command,
    /// Fenced code.
    Fence,
}

struct Builder<'c> {
    command: &'c CustomCommand,
    arguments: Arguments<'c>,
    is_file: &'c dyn Fn(&str) -> bool,
    parts: Vec<CommandPart>,
    /// Whether the file has a place for arguments.
    has_place: bool,
}

impl Builder<'_> {
    fn add_body(&mut self) -> Result<(), String> {
        let mut fences = Fences::default();
        // The code of an open fence that is run, and the line that opened it.
        let mut script: Option<(String, &str)> = None;
        let body = self.command.body.as_str();
        for line in body.split_inclusive('\n') {
            match (fences.next_line(line.trim_end_matches('\n')), &mut script) {
                (FenceLine::Opens(RUN_FENCE), _) if !self.command.is_skill => {
                    script = Some((String::new(), line));
                }
                (FenceLine::Code, Some((code, _))) => code.push_str(line),
                (FenceLine::Closes, Some(_)) => {
                    let code = script.take().map(|(code, _)| code).unwrap_or_default();
                    self.add_output(code.trim())?;
                    self.add_text("\n");
                }
                (FenceLine::Text, _) if !self.command.is_skill => self.add_line(line)?,
                (FenceLine::Text, _) => self.put_in(line, Place::Prose),
                _ => self.put_in(line, Place::Fence),
            }
            self.check_size()?;
        }
        if let Some((code, line)) = script {
            self.put_in(&format!("{line}{code}"), Place::Fence);
        }
        Ok(())
    }

    /// Adds a line outside fences.
    fn add_line(&mut self, line: &str) -> Result<(), String> {
        let (mut rest, mut before) = (line, None::<char>);
        while let Some(at) = rest.find(['`', '@']) {
            let (text, marked) = rest.split_at(at);
            let before_mark = text.chars().last().or(before);
            if let Some(name) = marked.strip_prefix('@') {
                let begins = before_mark.is_none_or(|c| c.is_whitespace() || "([{\"'<,;:".contains(c));
                let token = if begins { mention(name) } else { "" };
                self.put_in(text, Place::Prose);
                self.add_mention(token)?;
                (rest, before) = (&name[token.len()..], token.chars().last().or(Some('@')));
                continue;
            }
            let ticks = marked.len() - marked.trim_start_matches('`').len();
            let (fence, inner) = marked.split_at(ticks);
            let Some(end) = end_of_span(inner, ticks) else {
                self.put_in(text, Place::Prose);
                self.add_text(fence);
                (rest, before) = (inner, Some('`'));
                continue;
            };
            let code = &inner[..end];
            let bang = text.strip_suffix('!').filter(|_| ticks == 1 && !code.trim().is_empty());
            let is_run = |text: &&str| {
                let above = text.chars().last().or(before);
                above.is_none_or(|c| c.is_whitespace() || "([{\"'<,;:>*-".contains(c))
            };
            match bang.filter(is_run) {
                Some(text) => {
                    self.put_in(text, Place::Prose);
                    self.add_output(code)?;
                }
                None => {
                    self.put_in(text, Place::Prose);
                    self.add_text(fence);
                    self.put_in(code, Place::Command);
                    self.add_text(fence);
                }
            }
            (rest, before) = (&inner[end + ticks..], Some('`'));
        }
        self.put_in(rest, Place::Prose);
        Ok(())
    }

    /// Adds the file that follows `@`, or the text if there is no such file.
    fn add_mention(&mut self, token: &str) -> Result<(), String> {
        let (path, has_place) = self.arguments.put_into(token.trim_matches('"'), Place::Prose);
        self.has_place |= has_place;
        if !path.is_empty() && (self.is_file)(&path) {
            self.parts.push(CommandPart::File { path });
            return self.check_calls();
        }
        self.add_text("@");
        let (text, _) = self.arguments.put_into(token, Place::Prose);
        self.add_text(&text);
        Ok(())
    }

    fn add_output(&mut self, command: &str) -> Result<(), String> {
        let (command, has_place) = self.arguments.put_into(command, Place::Command);
        self.has_place |= has_place;
        self.parts.push(CommandPart::Output { command });
        self.check_calls()
    }

    /// Adds a text with the arguments in it.
    fn put_in(&mut self, text: &str, place: Place) {
        let (text, has_place) = self.arguments.put_into(text, place);
        self.has_place |= has_place;
        self.add_text(&text);
    }

    fn add_text(&mut self, more: &str) {
        match self.parts.last_mut() {
            _ if more.is_empty() => {}
            Some(CommandPart::Text { text }) => text.push_str(more),
            _ => self.parts.push(CommandPart::Text { text: more.to_owned() }),
        }
    }

    fn check_calls(&self) -> Result<(), String> {
        let calls = self.parts.iter().filter(|part| !matches!(part, CommandPart::Text { .. })).count();
        if calls > MAX_CALLS {
            return Err(format!("/{}: more than {MAX_CALLS} commands and files", self.command.name));
        }
        Ok(())
    }

    fn check_size(&self) -> Result<(), String> {
        let bytes = |part: &CommandPart| match part {
            CommandPart::Text { text } => text.len(),
            CommandPart::Output { command } => command.len(),
            CommandPart::File { path } => path.len(),
        };
        if self.parts.iter().map(bytes).sum::<usize>() > MAX_PROMPT_BYTES {
            return Err(format!("/{}: the prompt has more than {MAX_PROMPT_BYTES} bytes", self.command.name));
        }
        Ok(())
    }
}

/// The path after an `@`: up to a blank, or in quotes. Punctuation at its end is text.
fn mention(text: &str) -> &str {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.find('"').map_or("", |end| &text[..end + 2]);
    }
    let end =
        text.find(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '<' | '>')).unwrap_or(text.len());
    text[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '*'])
}

/// The arguments of one use of a command.
struct Arguments<'a> {
    all: &'a str,
    words: Vec<String>,
    /// Values by name: of the front matter's `arguments`, and `NAME=value`.
    named: BTreeMap<String, String>,
}

impl<'a> Arguments<'a> {
    fn read(all: &'a str, names: &[String]) -> Self {
        let words = split_words(all);
        let pairs = words.iter().filter_map(|word| {
            let (name, value) = word.split_once('=')?;
            is_name(name).then(|| (name.to_owned(), value.to_owned()))
        });
        let mut named: BTreeMap<String, String> = pairs.collect();
        let mut by_place =
            words.iter().filter(|word| !word.split_once('=').is_some_and(|(it, _)| is_name(it)));
        for name in names.iter().filter(|name| is_name(name)) {
            if !named.contains_key(name) {
                named.insert(name.clone(), by_place.next().cloned().unwrap_or_default());
            }
        }
        Self { all, words, named }
    }

    /// The text with the arguments in it, and whether it has a place for them.
    fn put_into(&self, text: &str, place: Place) -> (String, bool) {
        let (mut filled, mut rest, mut has_place) = (String::new(), text, false);
        let programs = if place == Place::Command { programs(text) } else { Vec::new() };
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            let is_program = || is_in_program(&programs, text.len() - from.len());
            let Some((value, length)) = self.value_of(&from[1..], place).filter(|_| !is_program()) else {
                filled.push('$');
                rest = &from[1..];
                continue;
            };
            has_place = true;
            rest = &from[1 + length..];
            if before.ends_with('\\') {
                // Escaped: the shell removes the backslash itself.
                if place == Place::Prose {
                    filled.pop();
                }
                filled.push_str(&from[..=length]);
            } else {
                filled.push_str(value);
            }
        }
        filled.push_str(rest);
        (filled, has_place)
    }

    /// The value of the place that begins after a `$`, and the length of its name.
    fn value_of(&self, text: &str, place: Place) -> Option<(&str, usize)> {
        if let Some(inner) = text.strip_prefix('{') {
            let end = inner.find('}')?;
            let (value, length) = self.value_of(&inner[..end], place)?;
            return (length == end).then_some((value, length + 2));
        }
        let word = |number: usize| self.words.get(number).map_or("", String::as_str);
        if let Some(after) = text.strip_prefix("ARGUMENTS")
            && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        {
            let length = "ARGUMENTS".len();
            let number = after.strip_prefix('[').and_then(|it| it.split_once(']'));
            return Some(match number.and_then(|(it, _)| Some((it.parse().ok()?, it.len()))) {
                Some((number, digits)) => (word(number), length + digits + 2),
                None => (self.all, length),
            });
        }
        if place == Place::Fence {
            return None;
        }
        if let Some(digit) = text.chars().next().and_then(|c| c.to_digit(10)) {
            let mut after = text[1..].chars();
            let is_number = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
            // An amount of money is text: `$10`, `$1.50`, `$2,000`.
            let is_amount = match after.next() {
                Some('.' | ',') => is_number(after.next()),
                next => is_number(next),
            };
            return (!is_amount).then(|| (word((digit as usize).saturating_sub(1)), 1));
        }
        let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(text.len());
        // `$branch-name` may be the argument `branch` with text after it.
        let ends = (1..=end).rev().filter(|end| text.is_char_boundary(*end));
        let is_border = |end: usize| !text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        ends.filter(|end| is_border(*end)).find_map(|end| Some((self.named.get(&text[..end])?.as_str(), end)))
    }
}

/// Whether a text may be the name of an argument.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// The parts of a command in single quotes that are programs of another language, such as `awk '{print $1}'`.
fn programs(command: &str) -> Vec<Range<usize>> {
    let mut quotes = command.match_indices('\'').map(|(at, _)| at);
    let mut programs = Vec::new();
    while let Some(begin) = quotes.next() {
        let end = quotes.next().unwrap_or(command.len());
        if command[begin..end].contains('{') {
            programs.push(begin..end);
        }
    }
    programs
}

fn is_in_program(programs: &[Range<usize>], at: usize) -> bool {
    let next = programs.partition_point(|program| program.end <= at);
    programs.get(next).is_some_and(|program| program.contains(&at))
}

/// The words of a text. Quotes around a word or a value keep blanks together; an apostrophe does not.
fn split_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for (at, c) in text.char_indices() {
        let may_open =
            word.as_ref().is_none_or(|word| word.ends_with('=')) && text[at + c.len_utf8()..].contains(c);
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) if may_open => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests;
