//! Every command that a line would run, as far as the text shows: commands in its grammar, after
//! wrappers, and in literal texts for a shell.

use rustc_hash::FxHashSet;

use crate::shell::lex::syntax::{Script, SimpleCommand, UnsupportedSyntax};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::lex::{lex_within, max_reparsed_bytes};
use crate::shell::programs::call::program_name;
use crate::shell::programs::inner_commands::inner_commands;

/// Maximum total bytes of texts for shells that are parsed.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Maximum number of such texts.
const MAX_TEXTS: usize = 1_000;
/// Maximum total number of inspected words; a word counts once for each command that may begin before
/// it. Only a deliberately constructed line needs more.
const MAX_INSPECTED_WORDS: usize = 30_000;
/// Maximum total number of positions at which an unknown program may run another one.
const MAX_GUESSES: usize = 4_000;
/// Maximum nesting of texts within texts, and of wrappers within wrappers.
const MAX_TEXT_NESTING: usize = 40;

/// One command: index of the text, index of its command, and first word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandView {
    script: usize,
    command: usize,
    from: usize,
    /// More words come from elsewhere.
    pub(crate) gets_more_words: bool,
    /// Whether it runs another command; unknown if the line is too large.
    pub(crate) runs: bool,
}

impl CommandView {
    /// Index of the text in [`CollectedCommands::scripts`].
    pub(crate) fn script(self) -> usize {
        self.script
    }

    /// Index of the simple command in its text.
    pub(crate) fn command(self) -> usize {
        self.command
    }

    /// Index of the word of the simple command at which this command begins.
    pub(crate) fn from(self) -> usize {
        self.from
    }
}

/// All collected commands.
#[derive(Debug)]
pub(crate) struct CollectedCommands {
    scripts: Vec<Script>,
    pub(crate) views: Vec<CommandView>,
    /// Words that are commands if an unknown program runs its arguments.
    pub(crate) possible_commands: Vec<CommandView>,
    /// The line may run something that the text does not show.
    pub(crate) hidden: bool,
    /// The line is too large: later checks cannot inspect each command separately. No such line is ever
    /// allowed without a request (`hidden` is set as well).
    pub(crate) is_too_large: bool,
}

impl CollectedCommands {
    /// The line itself.
    pub(crate) fn main(&self) -> &Script {
        &self.scripts[0]
    }

    /// The words of a command.
    pub(crate) fn words(&self, view: CommandView) -> &[Word] {
        &self.scripts[view.script].commands[view.command].words[view.from..]
    }

    /// All parsed texts: the line, and texts for shells within it.
    pub(crate) fn scripts(&self) -> &[Script] {
        &self.scripts
    }
}

/// Parses a line and everything in it.
pub(crate) fn collect(text: &str) -> CollectedCommands {
    let mut reparse_budget = max_reparsed_bytes(text.len());
    let mut all = CollectedCommands {
        scripts: vec![lex_within(text, &mut reparse_budget)],
        views: Vec::new(),
        possible_commands: Vec::new(),
        hidden: false,
        is_too_large: false,
    };
    let mut remaining_text_bytes = MAX_TEXT_BYTES;
    let mut remaining_words = MAX_INSPECTED_WORDS;
    // Texts that still need to be searched, with their depth.
    let mut todo = vec![(0usize, 0usize)];
    match loop_choices(all.main()) {
        Some(choices) if choices.commands.is_empty() => {}
        Some(choices) => {
            all.scripts.push(choices);
            todo.push((1, 0));
        }
        None => all.hidden = true,
    }
    while let Some((script, depth)) = todo.pop() {
        all.hidden |= all.scripts[script].has(UnsupportedSyntax::Unsure);
        for command in 0..all.scripts[script].commands.len() {
            let mut pending_starts = vec![(0usize, false, 0usize)];
            let mut seen = FxHashSet::default();
            let mut guessed = FxHashSet::default();
            while let Some((from, gets_more_words, wrapped)) = pending_starts.pop() {
                let words = &all.scripts[script].commands[command].words;
                // Avoid cycles.
                if from >= words.len() || from > 0 && !seen.insert((from, gets_more_words)) {
                    continue;
                }
                let words_behind = words.len() - from;
                if wrapped > MAX_TEXT_NESTING || words_behind > remaining_words {
                    // Every further word may be a command.
                    all.hidden = true;
                    all.is_too_large = true;
                    all.views.push(CommandView { script, command, from, gets_more_words, runs: false });
                    let rest = from + 1..words.len();
                    all.views.extend(rest.map(|from| CommandView {
                        script,
                        command,
                        from,
                        gets_more_words: true,
                        runs: false,
                    }));
                    break;
                }
                remaining_words -= words_behind;
                let inner = inner_commands(&words[from..]);
                let (fills, cost) = fill_commands(&words[from..], &inner.starts, remaining_words);
                remaining_words -= cost;
                all.hidden |= fills.is_none();
                all.views.push(CommandView { script, command, from, gets_more_words, runs: inner.runs });
                all.hidden |= inner.hidden;
                pending_starts.extend(
                    inner
                        .starts
                        .iter()
                        .map(|start| (from + start, gets_more_words || inner.gets_more_words, wrapped + 1)),
                );
                let gets_more_words = gets_more_words || inner.gets_more_words;
                // In a larger line it is enough to know that something may run.
                let has_too_many_guesses =
                    all.possible_commands.len() + inner.possible_starts.len() > MAX_GUESSES;
                all.hidden |= has_too_many_guesses;
                // If the word may expand to nothing, the next word may be the command.
                let may_be_nothing = |word: &Word| word.marks.has_any(Marks::EXPANDS) || word.text == "$!";
                pending_starts.extend(may_be_nothing(&words[from]).then_some((
                    from + 1,
                    gets_more_words,
                    wrapped + 1,
                )));
                let guesses =
                    inner.possible_starts.iter().filter(|_| !has_too_many_guesses).map(|start| from + start);
                let new_guesses = guesses.filter(|from| words[*from].is_literal() && guessed.insert(*from));
                all.possible_commands.extend(new_guesses.map(|from| CommandView {
                    script,
                    command,
                    from,
                    gets_more_words,
                    runs: false,
                }));
                let fills = fills.unwrap_or_default();
                if !fills.is_empty() && all.scripts.len() <= MAX_TEXTS && depth <= MAX_TEXT_NESTING {
                    let scopes = all.scripts[script].scopes.clone();
                    all.scripts.push(Script { commands: fills, scopes, ..Script::default() });
                    todo.push((all.scripts.len() - 1, depth + 1));
                } else {
                    all.hidden |= !fills.is_empty();
                }
                for text in inner.texts {
                    if text.len() > remaining_text_bytes
                        || all.scripts.len() > MAX_TEXTS
                        || depth > MAX_TEXT_NESTING
                        || all.is_too_large
                    {
                        all.hidden = true;
                        continue;
                    }
                    remaining_text_bytes -= text.len();
                    all.scripts.push(lex_within(&text, &mut reparse_budget));
                    todo.push((all.scripts.len() - 1, depth + 1));
                    // In some shells `((` is arithmetic, in others (dash) a group within a group.
                    if text.contains("((") && text.len() <= remaining_text_bytes {
                        remaining_text_bytes -= text.len();
                        all.scripts.push(lex_within(&text.replace("((", "( ("), &mut reparse_budget));
                        todo.push((all.scripts.len() - 1, depth + 1));
                    }
                }
            }
        }
    }
    all
}

/// Maximum number of commands that loops yield.
const MAX_LOOP_COMMANDS: usize = 256;

/// The commands that use variables of loops, with each of their values; `None` if there are too many.
fn loop_choices(main: &Script) -> Option<Script> {
    let mut all = Script { scopes: main.scopes.clone(), ..Script::default() };
    let has_variable = |command: &SimpleCommand| {
        let targets = command.redirs.iter().map(|redir| &redir.target);
        command.words.iter().chain(targets).any(|word| !word.variables.is_empty())
    };
    for (index, command) in main.commands.iter().enumerate().filter(|(_, command)| has_variable(command)) {
        let choices = main.loop_choices(command)?;
        all.origins.resize(all.origins.len() + choices.len(), index);
        all.commands.extend(choices);
        if all.commands.len() > MAX_LOOP_COMMANDS {
            return None;
        }
    }
    Some(all)
}

/// Maximum number of inner commands that are judged again with the text inserted at their placeholder
/// mark (`{}`), for each command.
const MAX_FILLED_COMMANDS: usize = 8;

/// The commands at these positions with the inserted text, and their number of words; nothing if there
/// are too many.
fn fill_commands(
    words: &[Word],
    starts: &[usize],
    remaining_words: usize,
) -> (Option<Vec<SimpleCommand>>, usize) {
    let marks = marks_of(words);
    if marks.is_empty() || starts.is_empty() {
        return (Some(Vec::new()), 0);
    }
    let program = words.first().map_or("", |first| program_name(&first.text));
    // Options of parallel change its words and their positions in many ways.
    if marks.len() > MAX_FILLED_COMMANDS || program == "parallel" {
        return (None, 0);
    }
    // xargs runs one command. Other possible beginnings matter only if its options are misunderstood.
    let starts = if program == "xargs" { &starts[..1] } else { starts };
    let cost: usize = starts.iter().take(MAX_FILLED_COMMANDS + 1).map(|index| words.len() - index).sum();
    if starts.len() > MAX_FILLED_COMMANDS || cost > remaining_words {
        return (None, 0);
    }
    // These programs append the text to the command if it has no mark.
    let appends = matches!(program, "fd" | "fdfind");
    (Some(starts.iter().filter_map(|index| fill_command(&words[*index..], &marks, appends)).collect()), cost)
}

/// The marks that a program replaces in the command that it runs. If there are two, both are possible.
fn marks_of(words: &[Word]) -> Vec<String> {
    let Some(first) = words.first() else { return Vec::new() };
    match program_name(&first.text) {
        "find" => vec!["{}".to_owned()],
        // `{.}`, `{/}` and others are marks as well.
        "fd" | "fdfind" | "parallel" => vec!["{".to_owned()],
        "xargs" => {
            let marks = words.iter().enumerate().skip(1).filter_map(|(index, word)| {
                let text = word.text.as_str();
                let (option, value) = text.split_once('=').map_or((text, None), |(o, v)| (o, Some(v)));
                if option.len() > 2 && "--replace".starts_with(option) {
                    return Some(value.unwrap_or("{}").to_owned());
                }
                let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
                let offset = letters.find(['I', 'i'])?;
                match (&letters[offset + 1..], letters.as_bytes()[offset]) {
                    ("", b'I') => Some(words.get(index + 1)?.text.clone()),
                    ("", _) => Some("{}".to_owned()),
                    (mark, _) => Some(mark.to_owned()),
                }
            });
            marks.take(MAX_FILLED_COMMANDS + 1).collect()
        }
        _ => Vec::new(),
    }
}

/// A command with a text inserted at its mark, or appended if it has none.
fn fill_command(words: &[Word], marks: &[String], appends: bool) -> Option<SimpleCommand> {
    let has_mark =
        |word: &Word| marks.iter().any(|mark| !mark.is_empty() && word.text.contains(mark.as_str()));
    if !appends && !words.iter().any(has_mark) {
        return None;
    }
    let mut filled = words.to_vec();
    filled.iter_mut().filter(|word| has_mark(word)).for_each(|word| word.marks.add(Marks::EXPANDS));
    if appends {
        filled.push(Word { text: "{}".to_owned(), marks: Marks::EXPANDS, ..Word::default() });
    }
    Some(SimpleCommand { words: filled, ..SimpleCommand::default() })
}
