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
    /// It expands to more than variables of loops.
    const UNKNOWN: Marks = Marks(8192);

    pub(crate) fn has(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn add(&mut self, other: Marks) {
        self.0 |= other.0;
    }

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
    pub(crate) of: usize,
    pub(crate) quoted: bool,
}

impl Word {
    /// Whether the text is exactly the program's argument.
    pub(crate) fn is_literal(&self) -> bool {
        const MORE: [Marks; 6] =
            [Marks::EXPANDS, Marks::NUMBER, Marks::GLOB, Marks::BRACE, Marks::HOME, Marks::TILDE];
        !MORE.iter().any(|mark| self.marks.has(*mark))
    }

    /// Whether the shell expands something in it that is not the variable of a loop.
    pub(super) fn has_other_expansions(&self) -> bool {
        self.marks.has(Marks::UNKNOWN)
    }

    /// Whether the text has no quotes and no expansions, as required for reserved words.
    pub(crate) fn is_bare(&self) -> bool {
        self.is_literal() && !self.marks.has(Marks::QUOTED) && !self.marks.has(Marks::DOLLAR_QUOTE)
    }

    /// Whether it has the form of an assignment (`NAME=`, `NAME+=`, `NAME[…]=`).
    pub(crate) fn is_assignment(&self) -> bool {
        self.equals.is_some_and(|at| is_target(&self.text[..at]))
    }

    /// Name and value of an assignment; the name includes `+` or the subscript.
    pub(crate) fn assignment(&self) -> (&str, &str) {
        let at = self.equals.unwrap_or(self.text.len());
        (&self.text[..at], self.text.get(at + 1..).unwrap_or_default())
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
    bare: Vec<bool>,
    marks: Marks,
    start: usize,
    variables: Vec<LoopVariable>,
}

impl WordBuilder {
    pub(crate) fn new(start: usize) -> Self {
        Self { start, ..Self::default() }
    }

    /// Where it begins in the text.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    pub(crate) fn mark(&mut self, mark: Marks) {
        self.marks.add(mark);
        if mark.has(Marks::EXPANDS) {
            self.marks.add(Marks::UNKNOWN);
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], quoting: Quoting) {
        self.bytes.extend_from_slice(bytes);
        self.bare.resize(self.bytes.len(), quoting == Quoting::Bare);
        if quoting == Quoting::Quoted {
            self.marks.add(Marks::QUOTED);
        }
    }

    /// Appends the variable of a loop, as written.
    pub(crate) fn push_variable(&mut self, name: &[u8], of: usize, quoting: Quoting) {
        let start = self.bytes.len();
        self.push(name, Quoting::Quoted);
        self.marks.add(Marks::EXPANDS);
        let quoted = quoting == Quoting::Quoted;
        self.variables.push(LoopVariable { start, end: self.bytes.len(), of, quoted });
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

    pub(crate) fn finish(self, end: usize) -> Word {
        let Self { bytes, bare, mut marks, start, mut variables } = self;
        let at = |index: usize, wanted: u8| bare.get(index) == Some(&true) && bytes[index] == wanted;
        let last_closing = bytes.iter().rposition(|byte| *byte == b']');
        let mut open = None;
        let mut parts = false;
        let mut equals = None;
        for (index, byte) in bytes.iter().enumerate().filter(|(index, _)| bare[*index]) {
            match byte {
                // An unclosed `[` is literal.
                b'[' if last_closing.is_none_or(|at| at < index) => {}
                b'*' | b'?' | b'[' => {
                    marks.add(Marks::GLOB);
                    if index == 0 {
                        marks.add(Marks::GLOB_FIRST);
                    }
                }
                b'=' if equals.is_none() => equals = Some(index),
                b'{' if open.is_none() => open = Some(index),
                b',' => parts |= open.is_some(),
                b'.' if at(index + 1, b'.') => parts |= open.is_some(),
                b'}' if parts => marks.add(Marks::BRACE),
                _ => {}
            }
        }
        if let Some(at) = equals
            && bare[..at].iter().any(|bare| !bare)
            // A subscript may be quoted.
            && !bytes[..at].contains(&b'[')
        {
            equals = None;
        }
        let is_sign = |(index, byte): (usize, &u8)| matches!(byte, b'{' | b'}' | b',' | b'.') && !bare[index];
        if marks.has(Marks::BRACE) && bytes.iter().enumerate().any(is_sign) {
            marks.add(Marks::BRACE_QUOTED);
        }
        if marks.has(Marks::BRACE) {
            let first = open == Some(0);
            if first && marks.has(Marks::GLOB) {
                marks.add(Marks::GLOB_FIRST);
            }
            // If a choice of the braces is empty, the text after the braces begins the word.
            let empty = bytes.windows(2).any(|pair| matches!(pair, b"{," | b",," | b",}"));
            let dash = |pair: &[u8]| {
                pair[1] == b'-' && (matches!(pair[0], b'{' | b',' | b'.') || pair[0] == b'}' && empty)
            };
            if bytes.starts_with(b"-") || (first && bytes.windows(2).any(dash)) {
                marks.add(Marks::BRACE_DASH);
            }
        }
        if at(0, b'~') {
            marks.add(if bytes.len() == 1 || at(1, b'/') { Marks::HOME } else { Marks::TILDE });
        }
        // bash also expands a tilde after `=` and after each colon of an argument that has the form of
        // an assignment (bash(1), "Tilde Expansion").
        let is_name = |at: usize| std::str::from_utf8(&bytes[..at]).is_ok_and(is_target);
        if let Some(equals) = equals.filter(|at| is_name(*at)) {
            let begins = |index: usize| index == equals + 1 || index > equals && at(index - 1, b':');
            let others = |index: usize| {
                at(index, b'~')
                    && begins(index)
                    && bytes.get(index + 1).is_some_and(|c| !matches!(c, b'/' | b':'))
            };
            if (equals + 1..bytes.len()).any(others) {
                marks.add(Marks::TILDE);
            }
        }
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
}
