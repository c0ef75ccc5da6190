//! Options of programs as written: if a table knows every option of a call, the meaning of each word is
//! known.
//!
//! The table of [`crate::shell::programs::escape_options`] lists arguments that must not pass
//! under a rule, in any spelling. This table works the other way round: an unlisted option is unknown,
//! and so are all words after it.

use crate::shell::lex::word::Word;

/// Kind of an option's value, by the sign after it in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionValue {
    Nothing,
    /// `#`: a number, perhaps with a sign and a unit.
    Number,
    /// `:`: a text; it may be the name of a file.
    Text,
    /// `~`: a text that is never a file name, whatever it looks like.
    Pattern,
    /// `?`: a text directly after the letter or after `=`, or nothing. It may be the name of a file.
    Maybe,
    /// `=`: a text, only after `=`. It may be the name of a file.
    Joined,
    /// `.`: the next word, and the letter ends its own. It may be the name of a file.
    Next,
    /// `&`: the next two words, neither of which is a file name: `--arg NAME VALUE`.
    Pair,
}

impl OptionValue {
    fn from_sign(sign: &str) -> Option<Self> {
        match sign {
            "" => Some(Self::Nothing),
            "#" => Some(Self::Number),
            ":" => Some(Self::Text),
            "~" => Some(Self::Pattern),
            "?" => Some(Self::Maybe),
            "=" => Some(Self::Joined),
            "." => Some(Self::Next),
            "&" => Some(Self::Pair),
            _ => None,
        }
    }
}

/// Known options of a program; their meaning is documented in its manual.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionSpec {
    /// Letters, alone or in a cluster, each with its sign. A leading `#`: `-5` is a number.
    pub(crate) letters: &'static str,
    /// Options with more than one letter, with their dashes and signs, separated by blanks. They are
    /// not abbreviated.
    pub(crate) long: [&'static str; 2],
}

/// An option of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenOption<'w> {
    /// Index of its word.
    pub(crate) at: usize,
    /// `n` or `--lines`; empty for `-5`.
    pub(crate) name: &'w str,
    pub(crate) value_kind: OptionValue,
    /// Its value and the index of the value's word, if it has one.
    pub(crate) value: Option<&'w str>,
    pub(crate) value_at: Option<usize>,
}

/// Meaning of the words of a call, without the name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ParsedOptions<'w> {
    pub(crate) options: Vec<GivenOption<'w>>,
    /// Indexes of the words that are neither options nor their values.
    pub(crate) operands: Vec<usize>,
}

impl ParsedOptions<'_> {
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|option| names.contains(&option.name))
    }
}

impl OptionSpec {
    /// The meaning of the words after the first, if every option among them is known. Words that are
    /// not literal count as operands if they cannot begin with `-`. The caller must consider that they
    /// may expand to several words or none.
    pub(crate) fn parts<'w>(&self, words: &'w [Word]) -> Option<ParsedOptions<'w>> {
        let mut parts = ParsedOptions::default();
        let mut ended = false;
        let mut at = 1;
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            let is_option = text.starts_with('-') && text.len() > 1;
            match text {
                "--" if !ended => ended = true,
                _ if !is_option => parts.operands.push(at),
                // Other implementations of the program still treat this word as an option.
                _ if ended || !word.is_literal() => return None,
                _ => at = self.option(words, at, &mut parts)?,
            }
            at += 1;
        }
        Some(parts)
    }

    /// Adds the options of one word; returns the last word that belongs to them.
    fn option<'w>(&self, words: &'w [Word], at: usize, parts: &mut ParsedOptions<'w>) -> Option<usize> {
        let text = words[at].text.as_str();
        let mut give = |name: &'w str, value_kind: OptionValue, joined: Option<&'w str>| {
            let value_at = match (value_kind, joined) {
                (OptionValue::Nothing | OptionValue::Maybe, None) => None,
                (OptionValue::Nothing | OptionValue::Next | OptionValue::Pair, Some(_))
                | (OptionValue::Joined, None) => {
                    return None;
                }
                (_, Some(_)) => Some(at),
                (_, None) => Some(at + 1),
            };
            let mut value = None;
            if let Some(value_at) = value_at {
                let word = words.get(value_at)?;
                let text = joined.unwrap_or(&word.text);
                if !word.is_literal() || value_kind == OptionValue::Number && !is_number(text) {
                    return None;
                }
                value = Some(text);
            }
            parts.options.push(GivenOption { at, name, value_kind, value, value_at });
            if value_kind == OptionValue::Pair {
                return words.get(at + 2).filter(|word| word.is_literal()).map(|_| at + 2);
            }
            Some(value_at.unwrap_or(at))
        };
        if text.starts_with("--") {
            let (name, value) =
                text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            return give(name, self.long(name)?, value);
        }
        let letters = &text[1..];
        if self.letters.starts_with('#') && letters.bytes().all(|c| c.is_ascii_digit()) {
            return Some(at);
        }
        for (place, letter) in letters.char_indices() {
            let behind = &letters[place + letter.len_utf8()..];
            let value_kind = self.letter(letter)?;
            let name = &letters[place..place + letter.len_utf8()];
            if value_kind != OptionValue::Nothing {
                return give(name, value_kind, Some(behind).filter(|value| !value.is_empty()));
            }
            give(name, value_kind, None)?;
        }
        Some(at)
    }

    /// The value of a long option that matches a table entry exactly. `--colo` does not match
    /// `--color`, because a letter would remain, which is no sign.
    fn long(&self, name: &str) -> Option<OptionValue> {
        let items = self.long.iter().flat_map(|list| list.split_whitespace());
        items.filter_map(|item| item.strip_prefix(name)).find_map(OptionValue::from_sign)
    }

    fn letter(&self, letter: char) -> Option<OptionValue> {
        let place = self.letters.find(letter).filter(|_| letter.is_ascii_alphanumeric())?;
        let sign = self.letters.get(place + 1..place + 2).and_then(OptionValue::from_sign);
        Some(sign.unwrap_or(OptionValue::Nothing))
    }
}

/// `5`, `-5`, `+5`, `4K`, `10MiB`.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - unit.len();
    (1..=7).contains(&digits) && unit.len() <= 3 && unit.bytes().all(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use crate::shell::evaluate::collect::collect;
    use crate::shell::programs::option_spec::*;

    const TEST_SPEC: OptionSpec = OptionSpec {
        letters: "#abn#t:e~C?L.1",
        long: ["--all --color? --lines# --to:", "--only= --expr~ --arg&"],
    };

    type NamedOption = (String, Option<usize>);

    /// Each option with the word of its value, and the operands.
    fn parts(line: &str) -> Option<(Vec<NamedOption>, Vec<usize>)> {
        let all = collect(line);
        let parts = TEST_SPEC.parts(&all.main().commands[0].words)?;
        let options = parts.options.iter().map(|it| (it.name.to_owned(), it.value_at)).collect();
        Some((options, parts.operands))
    }

    fn check(line: &str, options: &[(&str, Option<usize>)], operands: &[usize]) {
        let options = options.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect();
        assert_eq!(parts(line), Some((options, operands.to_vec())), "{line}");
    }

    #[test]
    fn words_are_parsed_as_options_values_or_operands() {
        check("x f -ab g", &[("a", None), ("b", None)], &[1, 3]);
        check("x -n 5 f", &[("n", Some(2))], &[3]);
        check("x -n5 f", &[("n", Some(1))], &[2]);
        check("x -an -5K f", &[("a", None), ("n", Some(2))], &[3]);
        check("x -20 f -", &[], &[2, 3]);
        check("x -1 f", &[], &[2]);
        check("x -e -t -t -- -- f", &[("e", Some(2)), ("t", Some(4))], &[6]);
        check("x -C f", &[("C", None)], &[2]);
        check("x -C5 f", &[("C", Some(1))], &[2]);
        check("x -aL 2 f", &[("a", None), ("L", Some(2))], &[3]);
        check("x --color f --color=on", &[("--color", None), ("--color", Some(3))], &[2]);
        check(
            "x --lines 5 --to=a --to b",
            &[("--lines", Some(2)), ("--to", Some(3)), ("--to", Some(5))],
            &[],
        );
        check("x --only=a --expr -a", &[("--only", Some(1)), ("--expr", Some(3))], &[]);
        check("x -- a *.rs", &[], &[2, 3]);
        check("x --arg a -b c", &[("--arg", Some(2))], &[4]);
    }

    #[test]
    fn option_missing_in_spec_is_unknown() {
        for line in [
            "x -z",
            "x -az",
            "x -n",
            "x -n f",
            "x -nf",
            "x -5a",
            "x -L2 f",
            "x -La f",
            "x --al",
            "x --alls",
            "x --all=1",
            "x --only a",
            "x --to",
            "x --lines=f",
            "x --lines",
            "x -- -a",
            "x -*",
            "x -t *.rs",
            "x --arg a",
            "x --arg a *.rs",
            "x --arg=a b",
            "x -e $a",
            "x -é",
            "x ---all",
            "x -#",
            "x -:",
        ] {
            assert_eq!(parts(line), None, "{line}");
        }
    }
}
