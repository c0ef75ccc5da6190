//! Splits a text into chunks: at symbol borders for code, at headings for Markdown, in token windows otherwise.

use std::ops::Range;

use crate::graph::{CutPoint, Outline, Symbol};
use crate::tokens;
use crate::types::{Chunk, ChunkId, DocId, ErrorKind, KnowledgeError, hash128};

/// Tokens of a window, and of the unit that a model reads.
pub const WINDOW_TOKENS: usize = 1200;
/// Tokens that two windows share.
pub const WINDOW_OVERLAP_TOKENS: usize = 100;
/// Tokens of a chunk of code or of a section: small enough to be found, large enough to be understood.
const SYMBOL_TOKENS: usize = 600;
/// Chunks with fewer tokens join their neighbour if that fits.
const MIN_CHUNK_TOKENS: usize = 80;
/// Characters of the symbol column.
const MAX_SYMBOL_CHARS: usize = 200;

/// How to split plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkSettings {
    pub tokens: usize,
    /// Tokens that two chunks share, fewer than `tokens`.
    pub overlap: usize,
    /// Separator at which the text is split first; longer pieces are split by tokens.
    pub split_by: Option<String>,
    /// With `split_by`: whether a piece of more than `tokens` is an error. Otherwise it is split by tokens.
    pub refuse_long_pieces: bool,
}

impl Default for ChunkSettings {
    fn default() -> Self {
        Self {
            tokens: WINDOW_TOKENS,
            overlap: WINDOW_OVERLAP_TOKENS,
            split_by: None,
            refuse_long_pieces: false,
        }
    }
}

/// The document that a text belongs to.
pub(super) struct TextOrigin<'a> {
    pub doc: &'a DocId,
    pub path: Option<&'a str>,
    pub language: Option<&'a str>,
}

/// The chunks of a text. Without an outline it is split by the settings.
///
/// # Errors
/// The settings are wrong, or a piece is over the limit with `refuse_long_pieces`.
pub(super) fn chunks(
    origin: &TextOrigin<'_>,
    text: &str,
    outline: Option<&Outline>,
    settings: &ChunkSettings,
) -> Result<Vec<Chunk>, KnowledgeError> {
    if settings.overlap >= settings.tokens {
        return Err(KnowledgeError::new(
            ErrorKind::Invalid,
            "could not split the text: the overlap must be smaller than the chunk size; lower it",
        ));
    }
    let ends = tokens::token_ends(text);
    let text = TokenizedText { text, ends: &ends };
    let ranges = match outline {
        Some(outline) if settings.split_by.is_none() => {
            text.ranges_between_cuts(&outline.cuts, SYMBOL_TOKENS.min(settings.tokens))
        }
        _ => text.plain_ranges(settings)?,
    };
    let lines = LineStarts::new(text.text);
    let mut chunks = Vec::with_capacity(ranges.len());
    for range in ranges {
        let range = text.trim_range(range, outline.is_some());
        if range.is_empty() {
            continue;
        }
        let part = &text.text[range.clone()];
        let ordinal = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
        chunks.push(Chunk {
            id: ChunkId::of_chunk(origin.doc, ordinal, part),
            doc_id: origin.doc.clone(),
            path: origin.path.map(str::to_owned),
            ordinal,
            text: part.to_owned(),
            tokens: u32::try_from(tokens::count(part)).unwrap_or(u32::MAX),
            start_byte: range.start as u64,
            end_byte: range.end as u64,
            start_line: lines.line(range.start),
            end_line: lines.line(range.end - 1),
            language: origin.language.map(str::to_owned),
            symbol: outline.and_then(|outline| symbols_in(&outline.symbols, &range)),
            content_hash: hash128(&[part.as_bytes()]),
        });
    }
    Ok(chunks)
}

/// The symbols that begin in this range, or the innermost one around it.
fn symbols_in(symbols: &[Symbol], range: &Range<usize>) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let mut chars = 0;
    for symbol in symbols.iter().filter(|symbol| range.contains(&symbol.start)) {
        let path = symbol.path();
        chars += path.chars().count() + 2;
        if chars > MAX_SYMBOL_CHARS && !names.is_empty() {
            break;
        }
        if names.last() != Some(&path) {
            names.push(path);
        }
    }
    if names.is_empty() {
        let around =
            symbols.iter().rev().find(|symbol| symbol.start <= range.start && range.start < symbol.end);
        names.extend(around.map(Symbol::path));
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// A text with the ends of its tokens.
struct TokenizedText<'a> {
    text: &'a str,
    ends: &'a [usize],
}

impl TokenizedText<'_> {
    /// Number of tokens in a range. The result may differ by one at each border.
    fn count(&self, range: &Range<usize>) -> usize {
        let tokens_before = |offset: usize| self.ends.partition_point(|end| *end <= offset);
        tokens_before(range.end) - tokens_before(range.start)
    }

    fn full_range(&self) -> Range<usize> {
        0..self.text.len()
    }

    /// Token windows, or pieces between separators.
    fn plain_ranges(&self, settings: &ChunkSettings) -> Result<Vec<Range<usize>>, KnowledgeError> {
        let Some(separator) = settings.split_by.as_deref().filter(|separator| !separator.is_empty()) else {
            return Ok(self.windows(self.full_range(), settings.tokens, settings.overlap));
        };
        let mut ranges = Vec::new();
        let mut start = 0;
        for piece in self.text.split(separator) {
            let range = start..start + piece.len();
            start = range.end + separator.len();
            if self.count(&range) <= settings.tokens {
                ranges.push(range);
            } else if settings.refuse_long_pieces {
                return Err(KnowledgeError::new(
                    ErrorKind::Invalid,
                    format!(
                        "could not split the text: a piece of {} tokens is over the limit of {}; raise the limit or allow \
                         splitting by tokens",
                        self.count(&range),
                        settings.tokens
                    ),
                ));
            } else {
                ranges.extend(self.windows(range, settings.tokens, settings.overlap));
            }
        }
        Ok(ranges)
    }

    /// Windows of `size` tokens, each `size - overlap` tokens after the one before.
    fn windows(&self, range: Range<usize>, size: usize, overlap: usize) -> Vec<Range<usize>> {
        let first = self.ends.partition_point(|end| *end <= range.start);
        let last = self.ends.partition_point(|end| *end < range.end) + 1;
        // The byte at which token `index` begins, moved to the beginning of a character.
        let offset = |index: usize| {
            let byte = if index == 0 { 0 } else { self.ends.get(index - 1).copied().unwrap_or(range.end) };
            char_start(self.text, byte.clamp(range.start, range.end))
        };
        let mut windows = Vec::new();
        let mut start = first;
        loop {
            let end = start + size;
            let is_last = end >= last;
            windows.push(offset(start)..if is_last { range.end } else { offset(end) });
            if is_last {
                return windows;
            }
            start += size - overlap;
        }
    }

    /// Ranges of at most `size` tokens between cut points; the whole text if it fits.
    fn ranges_between_cuts(&self, cuts: &[CutPoint], size: usize) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        self.split(self.full_range(), cuts, size, &mut ranges);
        self.join_small(ranges, size)
    }

    /// Splits at the cut points of the lowest depth, and goes deeper for parts that are still too large. The depth of
    /// recursion is at most the number of depths, 256.
    fn split(&self, range: Range<usize>, cuts: &[CutPoint], size: usize, ranges: &mut Vec<Range<usize>>) {
        if self.count(&range) <= size {
            ranges.push(range);
            return;
        }
        let first = cuts.partition_point(|cut| cut.at <= range.start);
        let last = cuts.partition_point(|cut| cut.at < range.end);
        let inside = &cuts[first..last];
        let Some(depth) = inside.iter().map(|cut| cut.depth).min() else {
            ranges.extend(self.windows(range, size, 0));
            return;
        };
        let mut start = range.start;
        let mut open: Option<Range<usize>> = None;
        let borders = inside.iter().filter(|cut| cut.depth == depth).map(|cut| cut.at).chain([range.end]);
        for border in borders {
            let part = start..border;
            start = border;
            match &mut open {
                Some(joined) if self.count(&(joined.start..part.end)) <= size => joined.end = part.end,
                _ => {
                    ranges.extend(open.take());
                    if self.count(&part) <= size {
                        open = Some(part);
                    } else {
                        self.split(part, inside, size, ranges);
                    }
                }
            }
        }
        ranges.extend(open);
    }

    /// Joins small neighbours, such as a closing bracket or the head of a type.
    fn join_small(&self, ranges: Vec<Range<usize>>, size: usize) -> Vec<Range<usize>> {
        let mut joined: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            if let Some(last) = joined.last_mut() {
                let is_small = self.count(last) < MIN_CHUNK_TOKENS || self.count(&range) < MIN_CHUNK_TOKENS;
                if is_small && self.count(&(last.start..range.end)) <= size + MIN_CHUNK_TOKENS {
                    last.end = range.end;
                    continue;
                }
            }
            joined.push(range);
        }
        joined
    }

    /// The range without white space at its ends. Code keeps the indentation of its first line.
    fn trim_range(&self, range: Range<usize>, keeps_indentation: bool) -> Range<usize> {
        let part = &self.text[range.clone()];
        let end = range.start + part.trim_end().len();
        let mut start = range.start + (part.len() - part.trim_start().len());
        if keeps_indentation && start < end {
            start = self.text[range.start..start]
                .rfind('\n')
                .map_or(range.start, |newline| range.start + newline + 1);
        }
        start.min(end)..end
    }
}

/// The position of the character that the byte at `index` belongs to.
fn char_start(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// Beginnings of lines, for line numbers.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn new(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The line of a byte, from 1.
    fn line(&self, at: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::graph::{WorkLimit, outline};

    fn split(language: Option<&str>, text: &str, settings: &ChunkSettings) -> Vec<Chunk> {
        let doc = DocId("doc-1".into());
        let origin = TextOrigin { doc: &doc, path: Some("a"), language };
        let limit = WorkLimit::start(&CancellationToken::new());
        let outline = language.and_then(|language| outline(language, text, &limit));
        chunks(&origin, text, outline.as_ref(), settings).expect("valid settings")
    }

    #[test]
    fn plain_text_is_split_in_overlapping_token_windows() {
        let text: String = (0..500).map(|n| format!("word{n} ")).collect();
        let settings = ChunkSettings { tokens: 100, overlap: 10, ..ChunkSettings::default() };
        let chunks = split(None, &text, &settings);
        assert!(chunks.len() > 5);
        for chunk in &chunks {
            assert!(chunk.tokens <= 101, "{}", chunk.tokens);
            assert_eq!(chunk.text, text[chunk.start_byte as usize..chunk.end_byte as usize]);
        }
        for pair in chunks.windows(2) {
            let shared = &text[pair[1].start_byte as usize..pair[0].end_byte as usize];
            assert!((8..=11).contains(&tokens::count(shared)), "{shared:?}");
        }
        assert_eq!(split(None, "  \n ", &settings).len(), 0);
    }

    #[test]
    fn separator_splits_first_and_overlong_pieces_are_refused_on_request() {
        let text = format!("one\n\n{}\n\ntwo", "long ".repeat(50));
        let mut settings = ChunkSettings {
            tokens: 20,
            overlap: 0,
            split_by: Some("\n\n".into()),
            refuse_long_pieces: false,
        };
        let pieces = split(None, &text, &settings);
        assert_eq!(pieces[0].text, "one");
        assert_eq!(pieces.last().unwrap().text, "two");
        assert!(pieces.len() > 4);
        settings.refuse_long_pieces = true;
        let doc = DocId("d".into());
        let origin = TextOrigin { doc: &doc, path: None, language: None };
        assert_eq!(chunks(&origin, &text, None, &settings).unwrap_err().kind, ErrorKind::Invalid);
        settings.overlap = 20;
        assert_eq!(chunks(&origin, &text, None, &settings).unwrap_err().kind, ErrorKind::Invalid);
    }

    #[test]
    fn code_is_split_at_symbol_borders_with_their_comments() {
        let body = "    let x = compute_the_value(1, 2, 3);\n".repeat(30);
        let text: String = (0..6)
            .map(|n| format!("/// Number {n}.\n#[inline]\nfn function_{n}() {{\n{body}}}\n\n"))
            .collect();
        let chunks = split(Some("rust"), &text, &ChunkSettings::default());
        assert!(chunks.len() >= 3);
        for chunk in &chunks {
            assert!(chunk.text.starts_with("/// Number"), "{}", &chunk.text[..40]);
            assert!(chunk.tokens <= 600 + 80);
            assert!(chunk.symbol.as_deref().unwrap().starts_with("function_"));
        }
    }

    #[test]
    fn long_function_is_split_between_statements() {
        let body = "    let x = compute_the_value(1, 2, 3);\n".repeat(200);
        let text = format!("impl A {{\n    fn long() {{\n{body}    }}\n}}\n");
        let chunks = split(Some("rust"), &text, &ChunkSettings::default());
        assert!(chunks.len() >= 3);
        for chunk in &chunks {
            assert!(chunk.tokens <= 700, "{}", chunk.tokens);
            assert_eq!(chunk.symbol.as_deref(), Some("A::long"));
        }
        assert!(chunks[1].text.trim_start().starts_with("let x"), "{}", &chunks[1].text[..30]);
        assert!(chunks[1].text.starts_with("    "), "indentation stays");
    }

    #[test]
    fn markdown_is_split_at_headings() {
        let section = "Some words about this topic in a sentence. ".repeat(40);
        let text = format!("# A\n\n{section}\n\n## B\n\n{section}\n\n## C\n\n{section}\n");
        let chunks = split(Some("markdown"), &text, &ChunkSettings::default());
        let starts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.lines().next().unwrap()).collect();
        assert_eq!(starts, ["# A", "## B", "## C"]);
        assert_eq!(chunks[1].symbol.as_deref(), Some("A::B"));
        assert_eq!(chunks[1].start_line, 5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn chunks_cover_all_text_in_order_without_overlap(text in "[a-z{}();\\n \\u{e9}\\u{1F980}]{0,3000}") {
            let chunks = split(Some("rust"), &text, &ChunkSettings::default());
            let mut at = 0;
            for chunk in &chunks {
                let (start, end) = (chunk.start_byte as usize, chunk.end_byte as usize);
                prop_assert!(start >= at && text[at..start].trim().is_empty());
                prop_assert_eq!(&chunk.text, &text[start..end]);
                let lines = text[..start].matches('\n').count() + 1;
                prop_assert_eq!(chunk.start_line as usize, lines);
                at = end;
            }
            prop_assert!(text[at..].trim().is_empty());
        }
    }
}
