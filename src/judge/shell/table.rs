//! The rows of the table of programs, as they are written and as they are looked up.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::hatch::Call;
use super::programs::PROGRAMS;

/// What a program does with the files it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileEffect {
    /// Reads them; its arguments do nothing else but what the table says.
    Reads,
    /// Writes, changes or removes them.
    Writes,
    /// Reads all but the last, which it writes.
    Copies,
    /// Anything: arguments that look like a hatch ask even if the table does not name them.
    Tool,
}

/// A check beyond options: gets the words and the number of granted ones.
pub(super) type ExtraCheck = fn(&Call<'_>) -> Option<String>;

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// `name` or `name verb`, several separated by `|`.
    pub(super) names: &'static str,
    /// Arguments that ask, separated by blanks. `-x`: a letter, also within a cluster. `--word`:
    /// also abbreviated and with `=`. `-word`: a long option with one dash. `word`: an operand.
    /// `word=`: the beginning of an operand. With a final `@`, only if its value lies outside the
    /// workspace; `@` alone: any operand outside. `*`: every argument; `**`: also none; `***`: the
    /// same, but what follows code that the grant spells is the code's. `!`: without any argument it does
    /// what its input says.
    pub(super) ask: &'static str,
    /// Options whose value is the next word.
    pub(super) value: &'static str,
    /// Exceptions from `ask` and from the general suspicion.
    pub(super) fine: &'static str,
    /// First words with which everything that is no option passes: `apt show NAME`.
    pub(super) looks: &'static str,
    pub(super) kind: FileEffect,
    pub(super) also: Option<ExtraCheck>,
}

/// Rows of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) rows: &'static [Program],
    /// They work on a project: a path outside the workspace is another project, or a place to write to.
    pub(super) projects: bool,
    /// Long options are the same in any case, and with dashes between their parts.
    pub(super) loose: bool,
    /// What they are given are files, not names of something on another machine.
    pub(super) local: bool,
}

impl Program {
    pub(super) const fn new(names: &'static str, ask: &'static str) -> Self {
        Self { names, ask, value: "", fine: "", looks: "", kind: FileEffect::Tool, also: None }
    }

    pub(super) const fn value(mut self, value: &'static str) -> Self {
        self.value = value;
        self
    }

    pub(super) const fn fine(mut self, fine: &'static str) -> Self {
        self.fine = fine;
        self
    }

    pub(super) const fn looks(mut self, looks: &'static str) -> Self {
        self.looks = looks;
        self
    }

    pub(super) const fn kind(mut self, kind: FileEffect) -> Self {
        self.kind = kind;
        self
    }

    pub(super) const fn extra_check(mut self, also: ExtraCheck) -> Self {
        self.also = Some(also);
        self
    }
}

/// A row cut into its items, once for all judgements.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) names: &'static str,
    /// Every item of `ask`.
    pub(super) asks: Vec<&'static str>,
    /// Of these the options of more than a letter, without a final `@`, and whether they ask only outside.
    pub(super) options: Vec<(&'static str, bool)>,
    /// Operands, and beginnings of operands (with their `=`).
    pub(super) operands: Vec<&'static str>,
    pub(super) beginnings: Vec<&'static str>,
    pub(super) values: Vec<&'static str>,
    pub(super) fine: Vec<&'static str>,
    pub(super) looks: Vec<&'static str>,
    /// Options of one letter: those that ask, those that ask outside, those that take a value.
    pub(super) letters: Letters,
    pub(super) outside_letters: Letters,
    pub(super) value_letters: Letters,
    /// `@`: any operand outside asks.
    pub(super) outside: bool,
    /// `*`, `**` or `***`: every argument asks.
    pub(super) everything: bool,
    /// `**` or `***`: it asks also without any.
    pub(super) alone: bool,
    /// `***`: what follows code that the grant spells is the code's.
    pub(super) code: bool,
    /// `!`: alone it obeys its input.
    pub(super) obeys: bool,
    pub(super) kind: FileEffect,
    pub(super) also: Option<ExtraCheck>,
    /// As of its [`Table`].
    pub(super) projects: bool,
    pub(super) loose: bool,
    /// What it is given are files here, not the names of something elsewhere.
    pub(super) local: bool,
}

/// Letters of ASCII, a bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Letters(u128);

impl Letters {
    fn of<'i>(items: impl Iterator<Item = &'i str>) -> Self {
        Self(items.filter_map(letter).fold(0, |all, letter| all | 1 << letter))
    }

    pub(super) fn has(self, letter: char) -> bool {
        letter.is_ascii() && self.0 & (1 << u32::from(letter)) != 0
    }

    pub(super) fn is_empty(self) -> bool {
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
    /// Whether the program gives what stands behind `--` to another.
    pub(super) fn hands_on(&self) -> bool {
        matches!(self.names.split('|').next(), Some("cargo" | "npm" | "dotnet"))
    }

    fn of(program: &Program, table: &Table) -> Self {
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
            letters: Letters::of(asks.iter().copied()),
            outside_letters: Letters::of(outside()),
            value_letters: Letters::of(values.iter().copied()),
            outside: asks.contains(&"@"),
            everything: asks.iter().any(|item| matches!(*item, "*" | "**" | "***")),
            alone: asks.iter().any(|item| matches!(*item, "**" | "***")),
            code: asks.contains(&"***"),
            obeys: asks.contains(&"!"),
            fine: cut(program.fine),
            looks: cut(program.looks),
            kind: program.kind,
            also: program.also,
            // Linters load the settings of the folder that they look at.
            projects: table.projects
                && (program.kind != FileEffect::Reads || program.names.starts_with("eslint|")),
            loose: table.loose,
            local: table.local && !program.names.starts_with("gh"),
            asks,
            values,
        }
    }
}

/// The row of a name, or of a name and a verb with a blank between.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    static INDEX: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let programs =
            PROGRAMS.iter().flat_map(|table| table.rows.iter().map(move |row| Row::of(row, table)));
        let rows = ROWS.get_or_init(|| programs.collect());
        let mut index = HashMap::new();
        for row in rows {
            for name in row.names.split('|') {
                index.entry(name).or_insert(row);
            }
        }
        index
    });
    index.get(name).copied()
}
