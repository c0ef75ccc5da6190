//! A word of a command line: its text without quotes, and the expansions that bash still applies.

/// Set of the expansions that bash applies to a word beyond removing its quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u16);

impl Marks {
    /// A parameter, a substitution, arithmetic: the value is not in the text.
    pub(crate) const EXPANDS: Marks = Marks(1);
    /// `$?`, `$#`, `$!` or `$$`: a number. `$!` is empty if no background command was started.
    pub(crate) const NUMBER: Marks = Marks(2);
    /// `$'…'` or `$"…"`. The text is decoded.
    pub(crate) const DOLLAR_QUOTE: Marks = Marks(4);
    /// An unquoted `*`, `?` or `[`.
    pub(crate) const GLOB: Marks = Marks(8);
    /// The word may begin with the result of a glob.
    pub(crate) const GLOB_FIRST: Marks = Marks(16);
    /// Brace expansion.
    pub(crate) const BRACE: Marks = Marks(32);
    /// Brace expansion that may yield a word with a leading `-`.
    pub(crate) const BRACE_DASH: Marks = Marks(64);
    /// `~` or `~/…`.
    pub(crate) const HOME: Marks = Marks(128);
    /// Any other leading tilde.
    pub(crate) const TILDE: Marks = Marks(256);
    /// Part of the word is quoted or escaped.
    pub(crate) const QUOTED: Marks = Marks(512);
    /// Braces that expand, together with literal braces or commas: without the quotes they cannot be
    /// distinguished.
    pub(crate) const BRACE_QUOTED: Marks = Marks(1024);
    /// The text contains the pattern of a `for` loop in place of the variable. The shell does not expand
    /// the pattern here: the value is the name of one matching file.
    pub(crate) const LOOPED: Marks = Marks(2048);
    /// Same, but unquoted: the shell splits the name at blanks and expands wildcards in it.
    pub(crate) const SPLIT: Marks = Marks(4096);
    /// The word has an expansion that is not a loop variable, so its value is unknown.
    const UNKNOWN: Marks = Marks(8192);

    /// Whether at least one of the marks of `other` is in the set.
    pub(crate) fn has_any(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }

    /// Adds the marks of `other`.
    pub(crate) fn add(&mut self, other: Marks) {
        self.0 |= other.0;
    }

    /// Removes the marks of `other`.
    pub(crate) fn remove(&mut self, other: Marks) {
        self.0 &= !other.0;
    }
}

/// One word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// Without quotes. Parameters stay as written, substitutions are left out.
    pub(crate) text: String,
    /// Expansions that bash still applies.
    pub(crate) marks: Marks,
    /// Where it begins in the parsed text, in bytes.
    pub(crate) start: usize,
    /// Where it ends in the parsed text, in bytes.
    pub(crate) end: usize,
    /// For an assignment: the position of its `=`, if everything before it is unquoted.
    pub(crate) equals: Option<usize>,
    /// The variables of enclosing `for` loops in the text, in order.
    pub(crate) variables: Vec<LoopVariable>,
}

/// The variable of a `for` loop within a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopVariable {
    /// Its range in the word's text.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Index of the loop in [`super::syntax::Script::loops`].
    pub(crate) loop_index: usize,
    /// Whether it is between double quotes, so that the shell does not split its value.
    pub(crate) quoted: bool,
}

impl Word {
    /// Whether the text is exactly the program's argument.
    pub(crate) fn is_literal(&self) -> bool {
        const EXPANSIONS: [Marks; 6] =
            [Marks::EXPANDS, Marks::NUMBER, Marks::GLOB, Marks::BRACE, Marks::HOME, Marks::TILDE];
        !EXPANSIONS.iter().any(|mark| self.marks.has_any(*mark))
    }

    /// Whether the shell expands something in it that is not the variable of a loop.
    pub(super) fn has_other_expansions(&self) -> bool {
        self.marks.has_any(Marks::UNKNOWN)
    }

    /// Whether the text has no quotes and no expansions, as required for reserved words.
    pub(crate) fn is_bare(&self) -> bool {
        self.is_literal() && !self.marks.has_any(Marks::QUOTED) && !self.marks.has_any(Marks::DOLLAR_QUOTE)
    }

    /// Whether it has the form of an assignment (`NAME=`, `NAME+=`, `NAME[…]=`).
    pub(crate) fn is_assignment(&self) -> bool {
        self.equals.is_some_and(|equals| is_target(&self.text[..equals]))
    }

    /// Name and value of an assignment; the name includes `+` or the subscript.
    pub(crate) fn assignment(&self) -> (&str, &str) {
        let end = self.equals.unwrap_or(self.text.len());
        (&self.text[..end], self.text.get(end + 1..).unwrap_or_default())
    }
}

/// Whether the text may be the left side of an assignment.
fn is_target(text: &str) -> bool {
    let text = text.strip_suffix('+').unwrap_or(text);
    let name = match text.split_once('[') {
        Some((name, rest)) if rest.ends_with(']') => name,
        Some(_) => return false,
        None => text,
    };
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Whether a text is quoted or escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quoting {
    Bare,
    Quoted,
}

/// A word under construction: its bytes, and which of them were quoted.
#[derive(Debug, Default)]
pub(crate) struct WordBuilder {
    bytes: Vec<u8>,
    /// For each byte: whether it was neither quoted nor escaped.
    bare: Vec<bool>,
    marks: Marks,
    start: usize,
    variables: Vec<LoopVariable>,
}

impl WordBuilder {
    /// An empty word that begins at this byte of the text.
    pub(crate) fn new(start: usize) -> Self {
        Self { start, ..Self::default() }
    }

    /// Where it begins in the text.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Adds a mark. An expansion makes the value unknown.
    pub(crate) fn mark(&mut self, mark: Marks) {
        self.marks.add(mark);
        if mark.has_any(Marks::EXPANDS) {
            self.marks.add(Marks::UNKNOWN);
        }
    }

    /// Appends bytes without their quotes.
    pub(crate) fn push(&mut self, bytes: &[u8], quoting: Quoting) {
        self.bytes.extend_from_slice(bytes);
        self.bare.resize(self.bytes.len(), quoting == Quoting::Bare);
        if quoting == Quoting::Quoted {
            self.marks.add(Marks::QUOTED);
        }
    }

    /// Appends the variable of a loop, as written. The word then expands, but its value is still known, because the loop
    /// shows the values: so this does not use [`Self::mark`], which would mark the value as unknown.
    pub(crate) fn push_variable(&mut self, name: &[u8], loop_index: usize, quoting: Quoting) {
        let start = self.bytes.len();
        self.push(name, Quoting::Quoted);
        self.marks.add(Marks::EXPANDS);
        let quoted = quoting == Quoting::Quoted;
        self.variables.push(LoopVariable { start, end: self.bytes.len(), loop_index, quoted });
    }

    /// Whether it is an unquoted number: the descriptor before a redirection.
    pub(crate) fn is_number(&self) -> bool {
        !self.bytes.is_empty() && self.marks == Marks::default() && self.bytes.iter().all(u8::is_ascii_digit)
    }

    /// Whether it is `{name}`: the variable before a redirection.
    pub(crate) fn is_braced_name(&self) -> bool {
        self.bytes.len() > 2
            && self.bytes.starts_with(b"{")
            && self.bytes.ends_with(b"}")
            && self.bare.iter().all(|bare| *bare)
    }

    /// Whether an array may follow: `name=` so far, without quotes.
    pub(crate) fn awaits_array(&self) -> bool {
        self.bytes.ends_with(b"=")
            && self.bare.last() == Some(&true)
            && std::str::from_utf8(&self.bytes[..self.bytes.len() - 1]).is_ok_and(is_target)
    }

    /// The finished word, which ends before the byte `end` of the text. Adds the marks of the expansions that depend on
    /// the whole word: wildcards, braces and tildes.
    pub(crate) fn finish(mut self, end: usize) -> Word {
        let mut equals = self.mark_wildcards_and_braces();
        if self.marks.has_any(Marks::BRACE) {
            self.mark_brace_effects();
        }
        self.mark_tildes(equals);
        let Self { bytes, mut marks, start, mut variables, .. } = self;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            // Only `$'\xff'` gets here: the bytes are not valid text, so the value is unknown.
            Err(bad) => {
                marks.add(Marks::EXPANDS);
                equals = None;
                variables.clear();
                String::from_utf8_lossy(bad.as_bytes()).into_owned()
            }
        };
        Word { text, marks, start, end, equals, variables }
    }

    /// Whether the byte at `index` exists, equals `byte` and is not quoted.
    fn is_unquoted(&self, index: usize, byte: u8) -> bool {
        self.bare.get(index) == Some(&true) && self.bytes[index] == byte
    }

    /// Marks unquoted wildcards and brace expansions. Returns the position of the `=` of an assignment.
    fn mark_wildcards_and_braces(&mut self) -> Option<usize> {
        let last_closing = self.bytes.iter().rposition(|byte| *byte == b']');
        let (mut is_in_braces, mut has_choice) = (false, false);
        let mut equals = None;
        for index in (0..self.bytes.len()).filter(|index| self.bare[*index]) {
            match self.bytes[index] {
                // An unclosed `[` is literal.
                b'[' if last_closing.is_none_or(|closing| closing < index) => {}
                b'*' | b'?' | b'[' => {
                    self.marks.add(Marks::GLOB);
                    if index == 0 {
                        self.marks.add(Marks::GLOB_FIRST);
                    }
                }
                b'=' if equals.is_none() => equals = Some(index),
                b'{' => is_in_braces = true,
                b',' => has_choice |= is_in_braces,
                b'.' if self.is_unquoted(index + 1, b'.') => has_choice |= is_in_braces,
                b'}' if has_choice => self.marks.add(Marks::BRACE),
                _ => {}
            }
        }
        // The name before the `=` must be unquoted. A subscript may be quoted.
        let is_name_quoted = |equals: usize| {
            self.bare[..equals].iter().any(|bare| !bare) && !self.bytes[..equals].contains(&b'[')
        };
        equals.filter(|equals| !is_name_quoted(*equals))
    }

    /// Marks what the braces of the word may do besides choosing a text.
    fn mark_brace_effects(&mut self) {
        let is_sign = |byte: &u8| matches!(byte, b'{' | b'}' | b',' | b'.');
        if self.bytes.iter().zip(&self.bare).any(|(byte, bare)| is_sign(byte) && !bare) {
            self.marks.add(Marks::BRACE_QUOTED);
        }
        let begins_word = self.is_unquoted(0, b'{');
        if begins_word && self.marks.has_any(Marks::GLOB) {
            self.marks.add(Marks::GLOB_FIRST);
        }
        // If a choice of the braces is empty, the text after the braces begins the word.
        let has_empty_choice = self.bytes.windows(2).any(|pair| matches!(pair, b"{," | b",," | b",}"));
        let may_begin_with_dash = |pair: &[u8]| {
            pair[1] == b'-' && (matches!(pair[0], b'{' | b',' | b'.') || pair[0] == b'}' && has_empty_choice)
        };
        if self.bytes.starts_with(b"-") || (begins_word && self.bytes.windows(2).any(may_begin_with_dash)) {
            self.marks.add(Marks::BRACE_DASH);
        }
    }

    /// Marks a leading tilde, and tildes in the value of an assignment. `equals` is the position of the `=`.
    fn mark_tildes(&mut self, equals: Option<usize>) {
        if self.is_unquoted(0, b'~') {
            let is_home = self.bytes.len() == 1 || self.is_unquoted(1, b'/');
            self.marks.add(if is_home { Marks::HOME } else { Marks::TILDE });
        }
        // bash also expands a tilde after `=` and after each colon of an argument that has the form of
        // an assignment (bash(1), "Tilde Expansion").
        let is_name = |end: usize| std::str::from_utf8(&self.bytes[..end]).is_ok_and(is_target);
        let Some(equals) = equals.filter(|equals| is_name(*equals)) else { return };
        let begins_path =
            |index: usize| index == equals + 1 || index > equals && self.is_unquoted(index - 1, b':');
        let is_other_tilde = |index: usize| {
            self.is_unquoted(index, b'~')
                && begins_path(index)
                && self.bytes.get(index + 1).is_some_and(|next| !matches!(next, b'/' | b':'))
        };
        if (equals + 1..self.bytes.len()).any(is_other_tilde) {
            self.marks.add(Marks::TILDE);
        }
    }
}
