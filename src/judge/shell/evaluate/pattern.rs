//! Bash rules: which commands they grant, and how they are found in a line.

use crate::shell::evaluate::collect::CollectedCommands;
use crate::shell::evaluate::command_index::{CommandIndex, CommandKey, MAX_GUESSES, is_at_home, is_option};
use crate::shell::lex::lex;
use crate::shell::lex::syntax::UnsupportedSyntax;
use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::call::program_name;
use crate::shell::programs::lookup::own_options;

/// The pattern of a Bash rule.
#[derive(Clone, Debug)]
pub(crate) enum CommandPattern {
    /// `npm run test`: exactly these words, or exactly this text.
    Exact {
        /// The text, without surrounding blanks.
        text: String,
        /// Its words, if it is one simple command.
        words: Option<Vec<Word>>,
        /// The words of its commands, if it is more than one simple command.
        commands: Vec<Vec<Word>>,
    },
    /// `npm run:*`: any command that begins with these words.
    Prefix(Vec<String>),
}

/// Result of searching a line for the command of a deny or ask rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PatternMatch {
    /// The command is absent.
    No,
    /// The command cannot be excluded: a word may become the command only when the shell runs.
    Perhaps,
    /// The command is present.
    Yes,
}

/// The words of a text that is one simple command and nothing else.
fn simple_command_words(text: &str) -> Option<Vec<Word>> {
    let mut script = lex(text);
    if !script.unsupported.is_empty() || script.commands.len() != 1 || script.scopes.len() > 1 {
        return None;
    }
    let command = script.commands.pop()?;
    let plain = command.assigns.is_empty() && command.redirs.is_empty() && command.timed.is_none();
    // `! x`, `{ x; }` and comments contain more than their words.
    let whole = command.start == 0 && command.end == text.len();
    (plain && whole && !command.words.is_empty()).then_some(command.words)
}

/// The words of the commands of a text that is not one simple command. None if the text has a command without
/// words, because the others do not tell what it does.
fn commands(text: &str) -> Vec<Vec<Word>> {
    let commands: Vec<Vec<Word>> = lex(text).commands.into_iter().map(|command| command.words).collect();
    if commands.iter().any(Vec::is_empty) { Vec::new() } else { commands }
}

/// Whether a text can be a whole command line.
pub(crate) fn is_complete(text: &str) -> bool {
    !lex(text).has(UnsupportedSyntax::Syntax)
}

impl CommandPattern {
    /// Parses the text between the parentheses, which is not empty. The error is a fragment.
    pub(crate) fn parse(inner: &str) -> Result<Self, &'static str> {
        if inner.contains('\0') {
            return Err("a command cannot hold a NUL");
        }
        match inner.strip_suffix(":*") {
            Some(prefix) if prefix.trim().is_empty() => Err("write Bash alone for every command"),
            Some(prefix) => match simple_command_words(prefix.trim()) {
                Some(words)
                    if words.iter().all(|w| w.is_literal() && !w.marks.has_any(Marks::DOLLAR_QUOTE)) =>
                {
                    Ok(Self::Prefix(words.into_iter().map(|word| word.text).collect()))
                }
                // A reserved word is literal here: no rule grants the construct that it begins.
                None if prefix
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.')) =>
                {
                    Ok(Self::Prefix(prefix.split_whitespace().map(str::to_owned).collect()))
                }
                _ => {
                    Err("the prefix before `:*` must be plain words, without operators, expansions and globs")
                }
            },
            None if inner.trim() == "*" => Err("write Bash alone for every command"),
            None if inner.trim().is_empty() => Err("the pattern is blank; write Bash for every command"),
            None => {
                let text = inner.trim().to_owned();
                let words = simple_command_words(&text);
                let commands = if words.is_some() { Vec::new() } else { commands(&text) };
                Ok(Self::Exact { words, commands, text })
            }
        }
    }

    /// Whether this is an exact rule for the whole text.
    pub(crate) fn is_text(&self, command: &str) -> bool {
        matches!(self, Self::Exact { text, .. } if text == command.trim())
    }

    /// Whether a grant covers a simple command by its words, and how many of them it contains. An exact
    /// rule contains all.
    pub(crate) fn covers(&self, words: &[Word]) -> Option<usize> {
        match self {
            Self::Exact { words: Some(rule_words), .. } => {
                let same = rule_words.len() == words.len()
                    && rule_words.iter().zip(words).all(|(a, b)| {
                        a.text == b.text
                            && (a.is_literal() && b.is_literal()
                                || a.marks == b.marks && a.end - a.start == b.end - b.start)
                    });
                same.then_some(words.len())
            }
            Self::Exact { .. } => None,
            Self::Prefix(rule_words) => {
                let same = rule_words.len() <= words.len()
                    && rule_words.iter().zip(words).all(|(a, b)| b.is_literal() && *a == b.text);
                same.then_some(rule_words.len())
            }
        }
    }

    /// The first two words of the commands that a grant covers; `None` if it covers none by its words.
    pub(crate) fn key(&self) -> Option<(&str, Option<&str>)> {
        let mut words: Box<dyn Iterator<Item = &str>> = match self {
            Self::Exact { words, .. } => Box::new(words.as_ref()?.iter().map(|word| word.text.as_str())),
            Self::Prefix(words) => Box::new(words.iter().map(String::as_str)),
        };
        Some((words.next()?, words.next()))
    }

    /// Searches all commands of a line for the command of a deny or ask rule.
    pub(crate) fn find_command(
        &self,
        text: &str,
        all: &CollectedCommands,
        programs: &CommandIndex,
    ) -> PatternMatch {
        if self.is_text(text) {
            return PatternMatch::Yes;
        }
        match self {
            // The same commands in another form: with other blanks, in another order, among others.
            Self::Exact { words: None, commands, .. } => {
                let is_present = |words: &Vec<Word>| {
                    find_words(&texts(words), PatternEnd::Exact, all, programs) > PatternMatch::No
                };
                match all.may_run_more || !commands.is_empty() && commands.iter().all(is_present) {
                    true => PatternMatch::Perhaps,
                    false => PatternMatch::No,
                }
            }
            Self::Exact { words: Some(words), .. } => {
                find_words(&texts(words), PatternEnd::Exact, all, programs)
            }
            Self::Prefix(words) => {
                let rule_words: Vec<&str> = words.iter().map(String::as_str).collect();
                find_words(&rule_words, PatternEnd::Open, all, programs)
            }
        }
    }
}

/// The texts of words.
fn texts(words: &[Word]) -> Vec<&str> {
    words.iter().map(|word| word.text.as_str()).collect()
}

/// Whether more words may follow those of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternEnd {
    Exact,
    Open,
}

/// Searches all commands of a line for one that consists of these words, or begins with them.
fn find_words(
    rule_words: &[&str],
    end: PatternEnd,
    all: &CollectedCommands,
    programs: &CommandIndex,
) -> PatternMatch {
    // If the line is too large, only the first words are compared.
    let end = if all.is_too_large { PatternEnd::Open } else { end };
    let is_uncertain = all.may_run_more || programs.has_collision;
    let mut best_match = if is_uncertain { PatternMatch::Perhaps } else { PatternMatch::No };
    let Some((wanted, rest)) = rule_words.split_first() else { return best_match };
    let program = program_name(wanted);
    let plain = rest.first().filter(|argument| !is_option(argument));
    let whole = (rest.is_empty() && end == PatternEnd::Open).then_some(CommandKey::Program(program));
    let keys = [
        plain.map(|argument| CommandKey::Argument(program, argument)),
        Some(CommandKey::Alone(program)),
        Some(CommandKey::Odd(program)),
        whole,
    ];
    for view in keys.into_iter().flatten().flat_map(|key| programs.commands_with(key)) {
        let (command_match, inspected_words) =
            match_command(all.words(*view), rule_words, end, view.gets_more_words);
        best_match = best_match.max(command_match);
        if best_match == PatternMatch::Yes {
            return best_match;
        }
        if !programs.step_budget.spend(inspected_words) {
            return PatternMatch::Perhaps;
        }
    }
    // Names that are known only at run time, and commands that an unknown program may run.
    let maybe = programs.commands_with(CommandKey::Maybe(program));
    if maybe.len() > MAX_GUESSES || programs.unknown.len() > MAX_GUESSES {
        return PatternMatch::Perhaps;
    }
    for view in programs.unknown.iter().chain(maybe) {
        let (command_match, inspected_words) =
            match_command(all.words(*view), rule_words, PatternEnd::Open, view.gets_more_words);
        if command_match > PatternMatch::No || !programs.step_budget.spend(inspected_words) {
            return PatternMatch::Perhaps;
        }
    }
    best_match
}

/// Maximum number of inspected options before a subcommand.
const MAX_OPTIONS: usize = 2_000;

/// Whether the command at the start of `words` is the one of the pattern, and how many words were
/// inspected.
fn match_command(
    words: &[Word],
    pattern: &[&str],
    end: PatternEnd,
    gets_more_words: bool,
) -> (PatternMatch, usize) {
    let (Some((program, arguments)), Some((wanted, rest))) = (words.split_first(), pattern.split_first())
    else {
        return (PatternMatch::No, 1);
    };
    if !can_be_program(program, wanted) {
        return (PatternMatch::No, 1);
    }
    let mut inspected_words = if end == PatternEnd::Exact { 1 + arguments.len() / 4 } else { 1 };
    let mut best_match = compare_words(arguments, rest, end, gets_more_words);
    if best_match < PatternMatch::Yes && rest.first().is_some_and(|word| !word.starts_with('-')) {
        // Options before the subcommand, with their values where that is known or possible.
        let global_options = own_options(program_name(wanted));
        let mut index = 0;
        while let Some(word) = arguments.get(index) {
            if !word.text.starts_with('-') && !word.text.starts_with('+') {
                break;
            }
            let takes_value =
                global_options.is_some_and(|global_options| global_options.texts.has(&word.text));
            if let Some(global_options) = global_options {
                let value = arguments.get(index + 1).filter(|_| takes_value);
                // An option that sets `alias.…` may give the wanted command another name.
                let names_alias = |word: &Word| word.text.to_ascii_lowercase().contains("alias.");
                // A value that is not literal may expand to several words, or none.
                if names_alias(word) || value.is_some_and(|value| names_alias(value) || !value.is_literal()) {
                    best_match = best_match.max(PatternMatch::Perhaps);
                }
                // An unknown option may take the next word.
                if !takes_value && !global_options.flags.has(&word.text) && !word.text.contains('=') {
                    let rest_behind = arguments.get(index + 2..).unwrap_or(&[]);
                    best_match = best_match.max(
                        compare_words(rest_behind, rest, end, gets_more_words).min(PatternMatch::Perhaps),
                    );
                }
            } else if index + 2 <= arguments.len() {
                best_match =
                    best_match.max(compare_words(&arguments[index + 2..], rest, end, gets_more_words));
            }
            index += if takes_value { 2 } else { 1 };
            inspected_words += 1;
            best_match = best_match.max(compare_words(
                arguments.get(index..).unwrap_or(&[]),
                rest,
                end,
                gets_more_words,
            ));
            if index > MAX_OPTIONS && global_options.is_none() {
                best_match = best_match.max(PatternMatch::Perhaps);
                break;
            }
        }
    }
    (
        if program.is_literal() || is_at_home(program) {
            best_match
        } else {
            best_match.min(PatternMatch::Perhaps)
        },
        inspected_words,
    )
}

/// Whether `words` are the words of the pattern. With `gets_more_words`, more words follow that the text does not show.
fn compare_words(words: &[Word], pattern: &[&str], end: PatternEnd, gets_more_words: bool) -> PatternMatch {
    let exact = end == PatternEnd::Exact;
    // Compare the first word first, because most commands differ in it and the other words need no
    // check.
    if let (Some(word), Some(wanted)) = (words.first(), pattern.first())
        && !can_equal(word, wanted)
    {
        return PatternMatch::No;
    }
    if exact && words.len() > pattern.len() && !words.iter().any(|word| !word.is_literal()) {
        return PatternMatch::No;
    }
    let mut result = PatternMatch::Yes;
    for (index, wanted) in pattern.iter().enumerate() {
        match words.get(index) {
            // A word that is not literal may expand to any number of words.
            Some(word) if !word.is_literal() => {
                return if can_equal(word, wanted) { PatternMatch::Perhaps } else { PatternMatch::No };
            }
            Some(word) if word.text == *wanted => {}
            Some(_) => return PatternMatch::No,
            None if gets_more_words => return PatternMatch::Perhaps,
            None => return PatternMatch::No,
        }
    }
    if exact && words.len() > pattern.len() {
        result = PatternMatch::Perhaps;
    }
    if exact && gets_more_words {
        result = PatternMatch::Perhaps;
    }
    result
}

/// A longer word with shell signs may expand to any word.
const MAX_NAME_BYTES: usize = 255;

/// Whether the shell may expand a word to the name or a path of the program `wanted`.
fn can_be_program(word: &Word, wanted: &str) -> bool {
    let (text, name) = (program_name(&word.text), program_name(wanted));
    if word.is_literal() {
        return text == name;
    }
    can_expand_to(word, text, name)
        .or_else(|| can_number_be(word, wanted))
        .unwrap_or(word.marks.has_any(Marks::HOME) && text == name)
}

/// Whether the shell may expand a word to `wanted`.
fn can_equal(word: &Word, wanted: &str) -> bool {
    if word.is_literal() {
        return word.text == wanted;
    }
    can_expand_to(word, &word.text, wanted).or_else(|| can_number_be(word, wanted)).unwrap_or(false)
}

/// Whether wildcards and expansions in a word that is not literal let its part `text` become `wanted`; `None` if it has no such mark.
fn can_expand_to(word: &Word, text: &str, wanted: &str) -> Option<bool> {
    // This runs for every rule: a pattern longer than any name is not compared.
    if word.text.len() > MAX_NAME_BYTES
        || word.marks.has_any(Marks::EXPANDS)
        || word.marks.has_any(Marks::BRACE)
        || word.marks.has_any(Marks::TILDE)
    {
        return Some(true);
    }
    if word.marks.has_any(Marks::GLOB) {
        let is_wildcard = |c: char| matches!(c, '*' | '?' | '[');
        let (Some(first), Some(last)) = (text.find(is_wildcard), text.rfind([']', '*', '?', '['])) else {
            return Some(true);
        };
        return Some(wanted.starts_with(&text[..first]) && wanted.ends_with(&text[last + 1..]));
    }
    None
}

/// Whether a word with a number that only the shell knows can be `wanted`; `None` if it has no such number.
fn can_number_be(word: &Word, wanted: &str) -> Option<bool> {
    // `$!` may be empty, and then the next word takes its position.
    let can_be = || word.text == "$!" || wanted.bytes().any(|c| c.is_ascii_digit());
    word.marks.has_any(Marks::NUMBER).then(can_be)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::evaluate::collect::collect;

    #[test]
    fn words_with_equal_hashes_hide_no_command() {
        // The key of `echo` with this word has the hash of the key of `rm`.
        let word = "y60QdOwqD1_wppmcwHjiUh_mlMHwSueODtsfalEuqlmEL.dh";
        let rule = CommandPattern::parse("rm:*").expect("a pattern");
        for (word, has_collision, expected) in
            [(word, true, PatternMatch::Perhaps), ("other", false, PatternMatch::Yes)]
        {
            let line = format!("echo {word}; rm file");
            let all = collect(&line);
            let index = CommandIndex::from_commands(&all);
            assert_eq!(
                index.has_collision, has_collision,
                "{word}: compute it again if the hash has changed"
            );
            assert_eq!(rule.find_command(&line, &all, &index), expected, "{word}");
        }
    }
}
