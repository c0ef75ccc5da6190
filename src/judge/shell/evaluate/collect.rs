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
    pub(crate) may_run_more: bool,
    /// The line is too large: later checks cannot inspect each command separately. No such line is ever
    /// allowed without a request (`may_run_more` is set as well).
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
    let mut collector = Collector {
        all: CollectedCommands {
            scripts: vec![lex_within(text, &mut reparse_budget)],
            views: Vec::new(),
            possible_commands: Vec::new(),
            may_run_more: false,
            is_too_large: false,
        },
        pending_texts: vec![PendingText { script: 0, depth: 0 }],
        reparse_budget,
        remaining_text_bytes: MAX_TEXT_BYTES,
        remaining_words: MAX_INSPECTED_WORDS,
    };
    match loop_choices(collector.all.main()) {
        Some(choices) if choices.commands.is_empty() => {}
        Some(choices) => collector.add_script(choices, 0),
        None => collector.all.may_run_more = true,
    }
    while let Some(pending) = collector.pending_texts.pop() {
        collector.collect_text(pending);
    }
    collector.all
}

/// A text whose commands are not collected yet.
struct PendingText {
    /// Index of the text in [`CollectedCommands::scripts`].
    script: usize,
    /// Number of texts around it.
    depth: usize,
}

/// A word at which a command may begin, if it was not inspected before.
struct PendingStart {
    from: usize,
    gets_more_words: bool,
    /// Number of programs before the word that run the command.
    wrappers: usize,
}

/// The collected commands, the texts that are left, and the limits of the work.
struct Collector {
    all: CollectedCommands,
    pending_texts: Vec<PendingText>,
    reparse_budget: usize,
    remaining_text_bytes: usize,
    remaining_words: usize,
}

impl Collector {
    /// Collects the commands of one text.
    fn collect_text(&mut self, text: PendingText) {
        let script = &self.all.scripts[text.script];
        self.all.may_run_more |= script.has(UnsupportedSyntax::Unsure);
        for command in 0..script.commands.len() {
            self.collect_command(&text, command);
        }
    }

    /// Collects a simple command and the commands that its words contain.
    fn collect_command(&mut self, text: &PendingText, command: usize) {
        let script = text.script;
        let view = |from, gets_more_words, runs| CommandView { script, command, from, gets_more_words, runs };
        let mut starts = vec![PendingStart { from: 0, gets_more_words: false, wrappers: 0 }];
        let mut seen = FxHashSet::default();
        let mut guessed = FxHashSet::default();
        while let Some(PendingStart { from, gets_more_words, wrappers }) = starts.pop() {
            let words = &self.all.scripts[script].commands[command].words;
            // Avoid cycles.
            if from >= words.len() || from > 0 && !seen.insert((from, gets_more_words)) {
                continue;
            }
            let words_behind = words.len() - from;
            if wrappers > MAX_TEXT_NESTING || words_behind > self.remaining_words {
                // Every further word may be a command.
                self.all.may_run_more = true;
                self.all.is_too_large = true;
                self.all.views.push(view(from, gets_more_words, false));
                self.all.views.extend((from + 1..words.len()).map(|from| view(from, true, false)));
                break;
            }
            self.remaining_words -= words_behind;
            let inner = inner_commands(&words[from..]);
            let (filled, cost) = fill_commands(&words[from..], &inner.starts, self.remaining_words);
            self.remaining_words -= cost;
            self.all.views.push(view(from, gets_more_words, inner.runs));
            self.all.may_run_more |= filled.is_none() || inner.may_run_more;
            let gets_more_words = gets_more_words || inner.gets_more_words;
            let next = |from| PendingStart { from, gets_more_words, wrappers: wrappers + 1 };
            starts.extend(inner.starts.iter().map(|start| next(from + start)));
            // If the word may expand to nothing, the next word may be the command.
            if words[from].marks.has_any(Marks::EXPANDS) || words[from].text == "$!" {
                starts.push(next(from + 1));
            }
            // In a larger line it is enough to know that something may run.
            if self.all.possible_commands.len() + inner.possible_starts.len() > MAX_GUESSES {
                self.all.may_run_more = true;
            } else {
                let guesses = inner.possible_starts.iter().map(|start| from + start);
                let new_guesses = guesses.filter(|from| words[*from].is_literal() && guessed.insert(*from));
                self.all.possible_commands.extend(new_guesses.map(|from| view(from, gets_more_words, false)));
            }
            self.add_filled_commands(filled.unwrap_or_default(), text);
            for inner_text in inner.texts {
                self.add_text(&inner_text, text.depth);
            }
        }
    }

    /// Adds commands that were derived from those of a text.
    fn add_filled_commands(&mut self, commands: Vec<SimpleCommand>, text: &PendingText) {
        if commands.is_empty() {
            return;
        }
        if self.all.scripts.len() <= MAX_TEXTS && text.depth <= MAX_TEXT_NESTING {
            let scopes = self.all.scripts[text.script].scopes.clone();
            self.add_script(Script { commands, scopes, ..Script::default() }, text.depth + 1);
        } else {
            self.all.may_run_more = true;
        }
    }

    /// Parses a text for a shell within a text of this depth.
    fn add_text(&mut self, text: &str, depth: usize) {
        if text.len() > self.remaining_text_bytes
            || self.all.scripts.len() > MAX_TEXTS
            || depth > MAX_TEXT_NESTING
            || self.all.is_too_large
        {
            self.all.may_run_more = true;
            return;
        }
        self.remaining_text_bytes -= text.len();
        let script = lex_within(text, &mut self.reparse_budget);
        self.add_script(script, depth + 1);
        // In some shells `((` is arithmetic, in others (dash) a group within a group.
        if text.contains("((") && text.len() <= self.remaining_text_bytes {
            self.remaining_text_bytes -= text.len();
            let script = lex_within(&text.replace("((", "( ("), &mut self.reparse_budget);
            self.add_script(script, depth + 1);
        }
    }

    /// Adds a parsed text, whose commands are collected later.
    fn add_script(&mut self, script: Script, depth: usize) {
        self.all.scripts.push(script);
        self.pending_texts.push(PendingText { script: self.all.scripts.len() - 1, depth });
    }
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
