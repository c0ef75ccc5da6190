//! Reasoning that a server leaves in the text of an answer, between tags such as `<think>` and `</think>`.
//!
//! A tag opens reasoning only at the beginning of the answer, or directly after other reasoning. Some templates write
//! the opening tag into the prompt, so that the answer has the closing tag alone: the text before it was reasoning. A
//! closing tag inside code, or after an opening tag in the middle of the answer, is text.

use std::borrow::Cow;

/// The tags around reasoning.
struct Tag {
    open: &'static str,
    close: &'static str,
    /// Whether templates write the opening tag into the prompt.
    may_close_alone: bool,
}

const TAGS: [Tag; 6] = [
    // DeepSeek, Qwen, GLM, MiniMax, Kimi and many others
    Tag { open: "<think>", close: "</think>", may_close_alone: true },
    // Seed-OSS
    Tag { open: "<seed:think>", close: "</seed:think>", may_close_alone: true },
    // Magistral
    Tag { open: "[THINK]", close: "[/THINK]", may_close_alone: true },
    Tag { open: "<thinking>", close: "</thinking>", may_close_alone: false },
    Tag { open: "<thought>", close: "</thought>", may_close_alone: false },
    Tag { open: "<reasoning>", close: "</reasoning>", may_close_alone: false },
];

/// Maximum bytes of blank text that wait for a tag.
const MAX_BLANK_BYTES: usize = 1_024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContentPart<'t> {
    Thinking(Cow<'t, str>),
    Answer(Cow<'t, str>),
    /// All text so far was reasoning.
    WasThinking,
}

#[derive(Clone, Copy, Debug, Default)]
enum Position {
    /// Before any text; `true` after reasoning.
    #[default]
    Start,
    AfterThinking,
    /// Inside the reasoning of this tag; `is_blank` until its first visible character.
    Thinking {
        tag: usize,
        is_blank: bool,
    },
    /// In the answer, where a closing tag may still come.
    Answer,
    /// In the answer, where no tag has a meaning.
    Plain,
}

/// Separates the reasoning from the text of one answer.
#[derive(Debug, Default)]
pub(super) struct ThinkTags {
    position: Position,
    /// Text that may be the beginning of a tag.
    held: String,
    code: CodeTracker,
}

impl ThinkTags {
    /// The parts of the next text.
    pub(super) fn split<'t>(&mut self, text: &'t str) -> Vec<ContentPart<'t>> {
        let is_plain = match self.position {
            Position::Plain => true,
            Position::Answer => !text.contains(['<', '[']),
            _ => false,
        };
        if self.held.is_empty() && is_plain {
            self.code.scan(text);
            return vec![ContentPart::Answer(text.into())];
        }
        self.held.push_str(text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// The text that still waits, at the end of the answer or before a tool call.
    pub(super) fn finish(&mut self) -> Option<ContentPart<'static>> {
        let held = std::mem::take(&mut self.held);
        match self.position {
            _ if held.is_empty() => None,
            Position::AfterThinking if held.trim().is_empty() => None,
            Position::Thinking { is_blank: true, .. } if held.trim().is_empty() => None,
            Position::Thinking { .. } => Some(ContentPart::Thinking(held.into())),
            _ => Some(ContentPart::Answer(held.into())),
        }
    }

    /// Moves one part out of the held text. Returns `false` if more text is needed.
    fn step(&mut self, parts: &mut Vec<ContentPart<'_>>) -> bool {
        match self.position {
            Position::Start | Position::AfterThinking => self.open(),
            Position::Thinking { tag, is_blank } => self.think(tag, is_blank, parts),
            Position::Answer => self.answer(parts),
            Position::Plain => {
                let held = std::mem::take(&mut self.held);
                parts.extend(
                    Some(held).filter(|held| !held.is_empty()).map(|held| ContentPart::Answer(held.into())),
                );
                false
            }
        }
    }

    fn open(&mut self) -> bool {
        let text = self.held.trim_start();
        if text.is_empty() && self.held.len() < MAX_BLANK_BYTES {
            return false;
        }
        if let Some(tag) = TAGS.iter().position(|tag| starts_with(text, tag.open)) {
            self.held = text[TAGS[tag].open.len()..].to_owned();
            self.position = Position::Thinking { tag, is_blank: true };
            return true;
        }
        if TAGS.iter().any(|tag| starts_with(tag.open, text)) && !text.is_empty() {
            return false;
        }
        self.position = match self.position {
            Position::AfterThinking => {
                self.held = text.to_owned();
                Position::Plain
            }
            _ => Position::Answer,
        };
        true
    }

    fn think(&mut self, tag: usize, is_blank: bool, parts: &mut Vec<ContentPart<'_>>) -> bool {
        let close = TAGS[tag].close;
        let (end, rest) = match find(&self.held, close) {
            Some(at) => (at, Some(at + close.len())),
            None => (self.held.len() - partial_len(&self.held, &[close]), None),
        };
        let text = &self.held[..end];
        let text = if is_blank { text.trim_start() } else { text };
        if !text.is_empty() {
            parts.push(ContentPart::Thinking(text.to_owned().into()));
            self.position = Position::Thinking { tag, is_blank: false };
        }
        match rest {
            Some(rest) => {
                self.held.drain(..rest);
                self.position = Position::AfterThinking;
                true
            }
            None => {
                self.held.drain(..end);
                false
            }
        }
    }

    fn answer(&mut self, parts: &mut Vec<ContentPart<'_>>) -> bool {
        let words = || TAGS.iter().filter(|tag| tag.may_close_alone).flat_map(|tag| [tag.open, tag.close]);
        let first = words().filter_map(|word| Some((find(&self.held, word)?, word))).min();
        let Some((at, word)) = first else {
            let words: Vec<&str> = words().collect();
            let end = self.held.len() - partial_len(&self.held, &words);
            let text: String = self.held.drain(..end).collect();
            self.code.scan(&text);
            parts.extend((!text.is_empty()).then(|| ContentPart::Answer(text.into())));
            return false;
        };
        let text: String = self.held.drain(..at).collect();
        self.code.scan(&text);
        parts.extend((!text.is_empty()).then(|| ContentPart::Answer(text.into())));
        let is_close = TAGS.iter().any(|tag| tag.close == word);
        if self.code.is_inside() {
            let word: String = self.held.drain(..word.len()).collect();
            self.code.scan(&word);
            parts.push(ContentPart::Answer(word.into()));
        } else if is_close {
            self.held.drain(..word.len());
            parts.push(ContentPart::WasThinking);
            self.position = Position::AfterThinking;
        } else {
            self.position = Position::Plain;
        }
        true
    }
}

/// Whether a text starts with a tag, in capital or small letters.
fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

/// The place of a tag in a text, in capital or small letters.
fn find(text: &str, tag: &str) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).find(|at| starts_with(&text[*at..], tag))
}

/// Bytes at the end of a text that may be the beginning of one of these tags.
fn partial_len(text: &str, tags: &[&str]) -> usize {
    let begins = |at: usize| {
        let end = &text[at..];
        tags.iter().any(|tag| end.len() < tag.len() && starts_with(tag, end))
    };
    let start = text.floor_char_boundary(text.len().saturating_sub(16));
    let found = text[start..].char_indices().map(|(at, _)| start + at).find(|at| begins(*at));
    found.map_or(0, |at| text.len() - at)
}

/// Tracks whether a text is inside Markdown code.
#[derive(Debug, Default)]
struct CodeTracker {
    is_fenced: bool,
    is_inline: bool,
    /// Whether the line has visible characters before the current backticks.
    has_text: bool,
    /// Number of backticks just before.
    backticks: usize,
}

impl CodeTracker {
    fn scan(&mut self, text: &str) {
        for byte in text.bytes() {
            if byte == b'`' {
                self.backticks += 1;
                continue;
            }
            self.end_backticks();
            match byte {
                b'\n' => (self.is_inline, self.has_text) = (false, false),
                b' ' | b'\t' | b'\r' => {}
                _ => self.has_text = true,
            }
        }
    }

    fn end_backticks(&mut self) {
        let count = std::mem::take(&mut self.backticks);
        if count >= 3 && !self.has_text {
            self.is_fenced = !self.is_fenced;
        } else if count > 0 && !self.is_fenced {
            self.is_inline = !self.is_inline;
        }
        self.has_text |= count > 0;
    }

    fn is_inside(&mut self) -> bool {
        self.end_backticks();
        self.is_fenced || self.is_inline
    }
}

#[cfg(test)]
mod tests {
    use crate::openai_chat::think_tags::*;

    /// The reasoning and the answer of a content that arrives in these pieces.
    fn parts(pieces: &[&str]) -> (String, String) {
        let mut tags = ThinkTags::default();
        let (mut thinking, mut answer) = (String::new(), String::new());
        let mut add = |part: ContentPart<'_>| match part {
            ContentPart::Thinking(text) => thinking.push_str(&text),
            ContentPart::Answer(text) => answer.push_str(&text),
            ContentPart::WasThinking => thinking.push_str(&std::mem::take(&mut answer)),
        };
        for piece in pieces {
            tags.split(piece).into_iter().for_each(&mut add);
        }
        tags.finish().into_iter().for_each(&mut add);
        (thinking, answer)
    }

    #[test]
    fn tags_are_separated_in_every_cut() {
        let cases = [
            ("<think>hm</think>{\"n\":1}", "hm", "{\"n\":1}"),
            ("\n<think>\nhm\n</think>\n\nyes", "hm\n", "yes"),
            ("<think>\n\n</think>\n\nyes", "", "yes"),
            ("<Think>hm</THINK>yes", "hm", "yes"),
            ("[THINK]hm[/THINK]yes", "hm", "yes"),
            ("<seed:think>hm</seed:think>yes", "hm", "yes"),
            ("<thinking>hm</thinking>yes", "hm", "yes"),
            ("<think>a</think><think>b</think>yes", "ab", "yes"),
            ("<think>a < b </th> c</think>yes", "a < b </th> c", "yes"),
            ("<think>never closed", "never closed", ""),
            // The closing tag alone.
            ("hm\n</think>\n\nyes", "hm\n", "yes"),
            ("hm</think>{\"n\":1}", "hm", "{\"n\":1}"),
            ("use `x` here\n</think>yes", "use `x` here\n", "yes"),
            ("</think>yes", "", "yes"),
            // No tags, or tags that are text.
            ("yes", "", "yes"),
            ("  yes", "", "  yes"),
            ("a < b, <thi, [x]", "", "a < b, <thi, [x]"),
            ("Models write `</think>` at the end.", "", "Models write `</think>` at the end."),
            ("Look:\n```\nhm</think>yes\n```\n", "", "Look:\n```\nhm</think>yes\n```\n"),
            ("Tags are <think> and </think>.", "", "Tags are <think> and </think>."),
            ("An answer with <think>a tag</think> inside", "", "An answer with <think>a tag</think> inside"),
            (
                "<think>hm</think>The tag `</think>` or </think> ends it",
                "hm",
                "The tag `</think>` or </think> ends it",
            ),
            ("<thinker>", "", "<thinker>"),
            ("<a></reasoning>", "", "<a></reasoning>"),
            ("é</think>ü", "é", "ü"),
        ];
        for (text, thinking, answer) in cases {
            let expected = (thinking.to_owned(), answer.to_owned());
            assert_eq!(parts(&[text]), expected, "{text}");
            for (cut, _) in text.char_indices() {
                let (first, second) = text.split_at(cut);
                assert_eq!(parts(&[first, second]), expected, "{first:?} {second:?}");
            }
            let chars: Vec<&str> = text.split_inclusive(|_| true).collect();
            assert_eq!(parts(&chars), expected, "{text}: one by one");
        }
    }
}
