//! The harmless options of a program, and the meaning of a call in which every option is one of them.
//!
//! An option that is not recorded is unknown, and so are all words after it.

use std::collections::HashMap;

use crate::shell::lex::word::Word;
use crate::shell::programs::record::words::Words;

/// Options as the manual documents them: a letter as `-x`, also used in a cluster, and `--word`, never abbreviated.
/// Each list is for another kind of value.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    /// Names of groups of the family whose options it has as well.
    pub(crate) groups: Words,
    /// Without a value.
    pub(crate) flags: Words,
    /// `-5` is a number.
    pub(crate) dash_number: bool,
    /// With a number, perhaps with a sign and a unit.
    pub(crate) numbers: Words,
    /// With a text that may be the name of a file.
    pub(crate) texts: Words,
    /// With a text that is never a file name, whatever it looks like.
    pub(crate) patterns: Words,
    /// With a text directly after the letter or after `=`, or nothing. It may be the name of a file.
    pub(crate) optional: Words,
    /// With a text only after `=`. It may be the name of a file.
    pub(crate) joined: Words,
    /// With the next word, and the letter ends its own. It may be the name of a file.
    pub(crate) next_word: Words,
    /// With the next two words, neither of which is a file name: `--arg NAME VALUE`.
    pub(crate) pairs: Words,
}

/// Kind of an option's value: see [`Options`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionValue {
    Nothing,
    Number,
    Text,
    Pattern,
    Optional,
    Joined,
    NextWord,
    Pair,
}

/// An option of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenOption<'w> {
    /// Index of its word.
    pub(crate) index: usize,
    /// As recorded: `-n` or `--lines`.
    pub(crate) name: &'static str,
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
    /// Whether the call has one of these options.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|option| names.contains(&option.name))
    }
}

impl Options {
    /// Adds the options of the groups that it names.
    pub(crate) fn add_groups(&mut self, groups: &HashMap<String, Self>) {
        for name in std::mem::take(&mut self.groups).iter() {
            let group = groups.get(*name).expect("a group of the family");
            self.dash_number |= group.dash_number;
            self.flags.extend(&group.flags);
            self.numbers.extend(&group.numbers);
            self.texts.extend(&group.texts);
            self.patterns.extend(&group.patterns);
            self.optional.extend(&group.optional);
            self.joined.extend(&group.joined);
            self.next_word.extend(&group.next_word);
            self.pairs.extend(&group.pairs);
        }
    }

    /// The meaning of the words after the first, if every option among them is known. Words that are
    /// not literal count as operands if they cannot begin with `-`. The caller must consider that they
    /// may expand to several words or none.
    pub(crate) fn parse<'w>(&self, words: &'w [Word]) -> Option<ParsedOptions<'w>> {
        let mut parsed = ParsedOptions::default();
        let mut ended = false;
        let mut index = 1;
        while let Some(word) = words.get(index) {
            let text = word.text.as_str();
            let is_option = text.starts_with('-') && text.len() > 1;
            match text {
                "--" if !ended => ended = true,
                _ if !is_option => parsed.operands.push(index),
                // Other implementations of the program still treat this word as an option.
                _ if ended || !word.is_literal() => return None,
                _ => index = self.parse_option(words, index, &mut parsed)?,
            }
            index += 1;
        }
        Some(parsed)
    }

    /// Adds the options of one word; returns the last word that belongs to them.
    fn parse_option<'w>(
        &self,
        words: &'w [Word],
        index: usize,
        parsed: &mut ParsedOptions<'w>,
    ) -> Option<usize> {
        let text = words[index].text.as_str();
        let mut add = |(name, value_kind): (&'static str, OptionValue), joined: Option<&'w str>| {
            let value_at = match (value_kind, joined) {
                (OptionValue::Nothing | OptionValue::Optional, None) => None,
                (OptionValue::Nothing | OptionValue::NextWord | OptionValue::Pair, Some(_))
                | (OptionValue::Joined, None) => {
                    return None;
                }
                (_, Some(_)) => Some(index),
                (_, None) => Some(index + 1),
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
            parsed.options.push(GivenOption { index, name, value_kind, value, value_at });
            if value_kind == OptionValue::Pair {
                return words.get(index + 2).filter(|word| word.is_literal()).map(|_| index + 2);
            }
            Some(value_at.unwrap_or(index))
        };
        if text.starts_with("--") {
            let (name, value) =
                text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            return add(self.find(|option| option == name)?, value);
        }
        let letters = &text[1..];
        if self.dash_number && letters.bytes().all(|c| c.is_ascii_digit()) {
            return Some(index);
        }
        for (offset, letter) in letters.char_indices() {
            let rest = &letters[offset + letter.len_utf8()..];
            let option = self.letter(letter)?;
            if option.1 != OptionValue::Nothing {
                return add(option, Some(rest).filter(|value| !value.is_empty()));
            }
            add(option, None)?;
        }
        Some(index)
    }

    /// The recorded option of one letter, with the kind of its value.
    fn letter(&self, letter: char) -> Option<(&'static str, OptionValue)> {
        let letter = u8::try_from(letter).ok().filter(u8::is_ascii_alphanumeric)?;
        self.find(|option| option.as_bytes() == [b'-', letter])
    }

    /// The first recorded option for which `is_wanted` holds, with the kind of its value.
    fn find(&self, is_wanted: impl Fn(&str) -> bool) -> Option<(&'static str, OptionValue)> {
        let lists = [
            (&self.flags, OptionValue::Nothing),
            (&self.numbers, OptionValue::Number),
            (&self.texts, OptionValue::Text),
            (&self.patterns, OptionValue::Pattern),
            (&self.optional, OptionValue::Optional),
            (&self.joined, OptionValue::Joined),
            (&self.next_word, OptionValue::NextWord),
            (&self.pairs, OptionValue::Pair),
        ];
        lists.into_iter().find_map(|(names, value_kind)| {
            names.iter().find(|name| is_wanted(name)).map(|name| (*name, value_kind))
        })
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
    use crate::shell::programs::record::options::*;

    const TEST_OPTIONS: &str = r#"
        flags = "-a -b -1 --all"
        dash_number = true
        numbers = "-n --lines"
        texts = "-t --to"
        patterns = "-e --expr"
        optional = "-C --color"
        joined = "--only"
        next_word = "-L"
        pairs = "--arg"
    "#;

    type NamedOption = (String, Option<usize>);

    /// Each option with the word of its value, and the operands.
    fn parts(line: &str) -> Option<(Vec<NamedOption>, Vec<usize>)> {
        let all = collect(line);
        let options: Options = toml::from_str(TEST_OPTIONS).expect("options");
        let parts = options.parse(&all.main().commands[0].words)?;
        let options = parts.options.iter().map(|it| (it.name.to_owned(), it.value_at)).collect();
        Some((options, parts.operands))
    }

    fn check(line: &str, options: &[(&str, Option<usize>)], operands: &[usize]) {
        let options = options.iter().map(|(name, index)| ((*name).to_owned(), *index)).collect();
        assert_eq!(parts(line), Some((options, operands.to_vec())), "{line}");
    }

    #[test]
    fn words_are_parsed_as_options_values_or_operands() {
        check("x f -ab g", &[("-a", None), ("-b", None)], &[1, 3]);
        check("x -n 5 f", &[("-n", Some(2))], &[3]);
        check("x -n5 f", &[("-n", Some(1))], &[2]);
        check("x -an -5K f", &[("-a", None), ("-n", Some(2))], &[3]);
        check("x -20 f -", &[], &[2, 3]);
        check("x -1 f", &[], &[2]);
        check("x -e -t -t -- -- f", &[("-e", Some(2)), ("-t", Some(4))], &[6]);
        check("x -C f", &[("-C", None)], &[2]);
        check("x -C5 f", &[("-C", Some(1))], &[2]);
        check("x -aL 2 f", &[("-a", None), ("-L", Some(2))], &[3]);
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
