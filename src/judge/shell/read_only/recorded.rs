//! Read-only uses of recorded programs: [`ReadOnly`].

use crate::shell::lex::word::Word;
use crate::shell::programs::record::Record;
use crate::shell::programs::record::options::{OptionValue, Options, ParsedOptions};
use crate::shell::programs::record::read_only::{FileOutput, Operands, ReadOnly};
use crate::shell::read_only::ReadPaths;

/// The paths to check for a recorded program.
pub(super) fn read_paths(words: &[Word], record: &Record, piped: bool) -> Option<ReadPaths> {
    let asks_for_help =
        |word: &Word| word.is_literal() && matches!(word.text.as_str(), "--help" | "--version");
    if words.len() == 2 && asks_for_help(&words[1]) {
        return Some(ReadPaths::READS_NOTHING);
    }
    let read_only = record.read_only.as_ref()?;
    let dashed = read_only.with_dash(words);
    let words = dashed.as_deref().unwrap_or(words);
    let no_options = Options::default();
    let parsed = record.options.as_ref().unwrap_or(&no_options).parse(words)?;
    if read_only.refuses_text(words) || !(read_only.needs.is_empty() || parsed.has(&read_only.needs)) {
        return None;
    }
    let word = |index: &usize| &words[*index];
    let operands = parsed.operands.as_slice();
    let are_literal = operands.iter().map(word).all(Word::is_literal);
    // In old syntax `+5f` is an option of some programs.
    if read_only.operands != Operands::Format
        && operands.iter().any(|index| word(index).text.starts_with('+'))
    {
        return None;
    }
    let paths = match read_only.operands {
        Operands::Paths => operands,
        // A very large number takes practically for ever.
        Operands::Numbers => {
            let is_small = |word: &Word| {
                word.is_literal() && word.text.len() <= 7 && word.text.bytes().all(|c| c.is_ascii_digit())
            };
            operands.iter().map(word).all(is_small).then_some(&[][..])?
        }
        Operands::Texts => are_literal.then_some(&[][..])?,
        Operands::None => operands.is_empty().then_some(&[][..])?,
        Operands::Format => {
            let is_format = |word: &Word| word.is_literal() && word.text.starts_with('+');
            operands.iter().map(word).all(is_format).then_some(&[][..])?
        }
        // In other implementations a word after a file is not an option.
        Operands::OnePath => {
            let last = parsed.options.last().map_or(0, |option| option.index);
            let is_after = operands.first().is_none_or(|first| last < *first);
            (operands.len() <= 1 && are_literal && is_after).then_some(operands)?
        }
        Operands::PatternThenPaths if parsed.has(&["-e", "--expression", "--regexp", "--files"]) => operands,
        Operands::PatternThenPaths => match operands.split_first() {
            Some((pattern, paths)) => word(pattern).is_literal().then_some(paths)?,
            None => read_only.needs_no_pattern.then_some(&[][..])?,
        },
        // Only verbs have these operands.
        Operands::Shown | Operands::Searched | Operands::Listed => return None,
    };
    let search = record.search.as_ref().and_then(|search| search.search(&parsed));
    let shows = if parsed.has(&read_only.names_with) { FileOutput::Names } else { read_only.shows };
    Some(ReadPaths {
        shows,
        values: values_that_may_be_paths(&parsed),
        operands: paths.to_vec(),
        searches_here: search.is_some() && paths.is_empty() && !(piped && read_only.reads_pipe),
        search: search.filter(|_| shows == FileOutput::Content),
        ..ReadPaths::READS_NOTHING
    })
}

/// The values that may name files. If options end at the first operand, all later words are files.
pub(super) fn values_that_may_be_paths(parsed: &ParsedOptions<'_>) -> Vec<usize> {
    let first = parsed.operands.first().copied().unwrap_or(usize::MAX);
    let is_path =
        |value_kind| !matches!(value_kind, OptionValue::Nothing | OptionValue::Number | OptionValue::Pattern);
    let of_options =
        parsed.options.iter().filter(|option| is_path(option.value_kind) || option.index > first);
    of_options.filter_map(|option| option.value_at).collect()
}

impl ReadOnly {
    /// The words with the dash that the first one may lack. Without it, a letter with a value takes the
    /// next word wherever it stands, so that only a last one has the same meaning in both forms.
    fn with_dash(&self, words: &[Word]) -> Option<Vec<Word>> {
        let first = words.get(1).filter(|word| self.optional_dash && !word.text.starts_with('-'))?;
        let is_same = first.text.find('f').is_none_or(|index| index + 1 == first.text.len());
        let mut dashed = words.to_vec();
        dashed[1].text = format!("-{}", first.text);
        is_same.then_some(dashed)
    }

    /// Whether a word contains something that the program must not get.
    fn refuses_text(&self, words: &[Word]) -> bool {
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
        let contains = |text: &str, name: &str| {
            text.match_indices(name).any(|(index, _)| {
                let (before, after) = (&text[..index], &text[index + name.len()..]);
                let is_field = before.ends_with('.') && !before.ends_with("..");
                let is_whole = !name.chars().all(is_of_name)
                    || !before.ends_with(is_of_name) && !after.starts_with(is_of_name);
                is_whole && !(self.fields_pass && is_field)
            })
        };
        self.refused.iter().any(|name| words[1..].iter().any(|word| contains(&word.text, name)))
    }
}
