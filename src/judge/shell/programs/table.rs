//! The rows of the table of programs, in written and in parsed form.

use crate::shell::programs::call::CommandCall;

/// Effect of a program on its file arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileEffect {
    /// Reads them; no other argument than those in the table has another effect.
    Reads,
    /// Writes, changes or removes them.
    Writes,
    /// Reads all but the last, which it writes.
    Copies,
    /// Any effect: an argument that looks like an escape option needs a request even if the table does
    /// not list it.
    Tool,
}

/// A check beyond options; receives the words and the number of granted ones.
pub(crate) type ExtraCheck = fn(&CommandCall<'_>) -> Option<String>;

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// `name` or `name verb`, several separated by `|`.
    pub(crate) names: &'static str,
    /// Arguments that need a request, separated by blanks.
    ///
    /// - `-x`: a letter, also within a cluster.
    /// - `--word`: also abbreviated and with `=`.
    /// - `-word`: a long option with one dash.
    /// - `word`: an operand. `word=`: the beginning of an operand.
    /// - With a final `@`: only if its value is outside the workspace. `@` alone: any operand outside.
    /// - `*`: every argument. `**`: also a call without arguments.
    /// - `***`: as `**`, but the words after code that is part of the grant belong to the code.
    /// - `!`: without any argument the program executes its input.
    pub(crate) ask: &'static str,
    /// Options whose value is the next word.
    pub(crate) value: &'static str,
    /// Exceptions from `ask` and from the general rule for unknown options.
    pub(crate) fine: &'static str,
    /// First words with which all operands pass: `apt show NAME`.
    pub(crate) read_only_verbs: &'static str,
    pub(crate) kind: FileEffect,
    pub(crate) also: Option<ExtraCheck>,
}

/// Rows of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) rows: &'static [Program],
    /// The programs work on a project: a path outside the workspace is another project, or an output
    /// path.
    pub(crate) projects: bool,
    /// Long options are case-insensitive and may have dashes between their parts.
    pub(crate) loose: bool,
    /// Operands are local files, not names of objects on another machine.
    pub(crate) local: bool,
}

impl Program {
    pub(crate) const fn new(names: &'static str, ask: &'static str) -> Self {
        Self { names, ask, value: "", fine: "", read_only_verbs: "", kind: FileEffect::Tool, also: None }
    }

    pub(crate) const fn value(mut self, value: &'static str) -> Self {
        self.value = value;
        self
    }

    pub(crate) const fn fine(mut self, fine: &'static str) -> Self {
        self.fine = fine;
        self
    }

    pub(crate) const fn read_only_verbs(mut self, read_only_verbs: &'static str) -> Self {
        self.read_only_verbs = read_only_verbs;
        self
    }

    pub(crate) const fn kind(mut self, kind: FileEffect) -> Self {
        self.kind = kind;
        self
    }

    pub(crate) const fn extra_check(mut self, also: ExtraCheck) -> Self {
        self.also = Some(also);
        self
    }
}

/// A row split into its items, once for all judgements.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) names: &'static str,
    /// Every item of `ask`.
    pub(crate) asks: Vec<&'static str>,
    /// The options of `asks` with more than one letter, without a final `@`, and whether they need a
    /// request only outside the workspace.
    pub(crate) options: Vec<(&'static str, bool)>,
    /// Operands, and beginnings of operands (with their `=`).
    pub(crate) operands: Vec<&'static str>,
    pub(crate) beginnings: Vec<&'static str>,
    pub(crate) values: Vec<&'static str>,
    pub(crate) fine: Vec<&'static str>,
    pub(crate) read_only_verbs: Vec<&'static str>,
    /// Options of one letter: those that need a request, those that need one outside the workspace,
    /// those with a value.
    pub(crate) letters: Letters,
    pub(crate) outside_letters: Letters,
    pub(crate) value_letters: Letters,
    /// `@`: any operand outside the workspace needs a request.
    pub(crate) outside: bool,
    /// `*`, `**` or `***`: every argument needs a request.
    pub(crate) everything: bool,
    /// `**` or `***`: a call without arguments needs one as well.
    pub(crate) alone: bool,
    /// `***`: the words after code that is part of the grant belong to the code.
    pub(crate) code: bool,
    /// `!`: without arguments it executes its input.
    pub(crate) runs_input: bool,
    pub(crate) kind: FileEffect,
    pub(crate) also: Option<ExtraCheck>,
    /// Same as in its [`Table`].
    pub(crate) projects: bool,
    pub(crate) loose: bool,
    /// Operands are local files, not names of objects elsewhere.
    pub(crate) local: bool,
}

/// Set of ASCII letters, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Letters(u128);

impl Letters {
    fn from_chars<'i>(items: impl Iterator<Item = &'i str>) -> Self {
        Self(items.filter_map(letter).fold(0, |all, letter| all | 1 << letter))
    }

    pub(crate) fn has(self, letter: char) -> bool {
        letter.is_ascii() && self.0 & (1 << u32::from(letter)) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The letter of an item like `-x`.
fn letter(item: &str) -> Option<u32> {
    match item.as_bytes() {
        [b'-', letter] if letter.is_ascii() => Some(u32::from(*letter)),
        _ => None,
    }
}

impl Row {
    /// Whether the program passes the words after `--` to another program.
    pub(crate) fn passes_words_on(&self) -> bool {
        matches!(self.names.split('|').next(), Some("cargo" | "npm" | "dotnet"))
    }

    pub(super) fn from_program(program: &Program, table: &Table) -> Self {
        let cut = |items: &'static str| items.split_whitespace().collect::<Vec<_>>();
        let asks = cut(program.ask);
        let values = cut(program.value);
        let outside = || asks.iter().filter_map(|item| item.strip_suffix('@'));
        let options = asks.iter().map(|item| match item.strip_suffix('@') {
            Some(name) => (name, true),
            None => (*item, false),
        });
        let operands =
            asks.iter().copied().filter(|item| !item.starts_with('-') && !matches!(*item, "@" | "!"));
        Self {
            names: program.names,
            options: options.filter(|(name, _)| name.len() > 2 && name.starts_with('-')).collect(),
            beginnings: asks.iter().copied().filter(|item| item.ends_with('=')).collect(),
            operands: operands.filter(|item| !item.ends_with('=')).collect(),
            letters: Letters::from_chars(asks.iter().copied()),
            outside_letters: Letters::from_chars(outside()),
            value_letters: Letters::from_chars(values.iter().copied()),
            outside: asks.contains(&"@"),
            everything: asks.iter().any(|item| matches!(*item, "*" | "**" | "***")),
            alone: asks.iter().any(|item| matches!(*item, "**" | "***")),
            code: asks.contains(&"***"),
            runs_input: asks.contains(&"!"),
            fine: cut(program.fine),
            read_only_verbs: cut(program.read_only_verbs),
            kind: program.kind,
            also: program.also,
            // Linters load the settings of the inspected folder.
            projects: table.projects
                && (program.kind != FileEffect::Reads || program.names.starts_with("eslint|")),
            loose: table.loose,
            local: table.local && !program.names.starts_with("gh"),
            asks,
            values,
        }
    }
}
