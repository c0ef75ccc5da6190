//! Characters that a server splits over two events.
//!
//! Some servers cut an answer between the two surrogates of a character (`\\ud83d` in one event, `\\ude00` in the
//! next), or between the bytes of its UTF-8. JSON text cannot hold such halves, so they travel as marks until
//! [`CharJoiner`] sees the text of both events. A half that stays alone becomes U+FFFD.
//!
//! A mark is one byte: a tag and two digits. All three are noncharacters, which Unicode reserves for use inside a
//! program, so a text never contains a mark by accident.

use std::borrow::Cow;

/// Begins a mark.
const TAG: char = '\u{1FFFE}';
/// The first of the sixteen digits.
const FIRST_DIGIT: u32 = 0xFDD0;
/// Maximum bytes of a character, where each surrogate has three.
const MAX_CHAR_BYTES: usize = 6;

/// Appends the mark of a byte.
fn push_mark(text: &mut String, byte: u8) {
    text.push(TAG);
    for digit in [byte >> 4, byte & 15] {
        text.extend(char::from_u32(FIRST_DIGIT + u32::from(digit)));
    }
}

/// The marks of a lone surrogate: its three bytes in the generalised form of UTF-8.
pub(crate) fn surrogate_marks(surrogate: u16) -> String {
    let mut marks = String::new();
    for byte in [0xE0 | (surrogate >> 12), 0x80 | ((surrogate >> 6) & 0x3F), 0x80 | (surrogate & 0x3F)] {
        push_mark(&mut marks, (byte & 0xFF) as u8);
    }
    marks
}

/// Decodes UTF-8; each byte that is no part of a character becomes a mark. Such bytes are rare, and one check of all
/// bytes is several times as fast as searching for them.
pub(crate) fn decode_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            let mut text = String::with_capacity(bytes.len());
            for chunk in bytes.utf8_chunks() {
                text.push_str(chunk.valid());
                chunk.invalid().iter().for_each(|byte| push_mark(&mut text, *byte));
            }
            text.into()
        }
    }
}

/// Whether a text has marks.
pub(crate) fn has_marks(text: &str) -> bool {
    let mut tag = [0; 4];
    memchr::memmem::find(text.as_bytes(), TAG.encode_utf8(&mut tag).as_bytes()).is_some()
}

/// The text with its marks joined; lone halves become U+FFFD.
pub(crate) fn join_marks(text: &str) -> Cow<'_, str> {
    if !has_marks(text) {
        return text.into();
    }
    let mut joiner = CharJoiner::default();
    let mut joined = joiner.join(text).into_owned();
    joined.push_str(&joiner.finish());
    joined.into()
}

/// The text with its marks joined, except those at its end that may begin a character.
pub(crate) fn join_complete_marks(text: &str) -> String {
    let mut joiner = CharJoiner::default();
    let mut joined = joiner.join(text).into_owned();
    joiner.begun.iter().for_each(|byte| push_mark(&mut joined, *byte));
    joined
}

/// Joins the halves in consecutive texts of one block.
#[derive(Debug, Default)]
pub(crate) struct CharJoiner {
    /// Bytes at the end of the text so far that may begin a character.
    begun: Vec<u8>,
}

impl CharJoiner {
    /// The text with all halves joined. A half at its end waits for the next text.
    pub(crate) fn join<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if text.is_empty() || self.begun.is_empty() && !has_marks(text) {
            return text.into();
        }
        let mut joined = String::with_capacity(text.len());
        let mut bytes = std::mem::take(&mut self.begun);
        let mut rest = text;
        while !rest.is_empty() {
            match mark(rest) {
                Some((byte, after)) => {
                    bytes.push(byte);
                    rest = after;
                }
                None => {
                    let tags = rest.match_indices(TAG).map(|(index, _)| index);
                    let next = tags.filter(|index| *index > 0).find(|index| mark(&rest[*index..]).is_some());
                    let next = next.unwrap_or(rest.len());
                    decode_bytes(&mut bytes, true, &mut joined);
                    joined.push_str(&rest[..next]);
                    rest = &rest[next..];
                }
            }
        }
        decode_bytes(&mut bytes, false, &mut joined);
        self.begun = bytes;
        joined.into()
    }

    /// The end of the block: U+FFFD for a half that waits.
    pub(crate) fn finish(&mut self) -> String {
        let mut rest = String::new();
        decode_bytes(&mut std::mem::take(&mut self.begun), true, &mut rest);
        rest
    }
}

/// The byte of the mark at the start of a text, and the text after it.
fn mark(text: &str) -> Option<(u8, &str)> {
    let mut chars = text.chars();
    let is_tag = chars.next() == Some(TAG);
    let mut digit = || {
        let digit = u32::from(chars.next()?).checked_sub(FIRST_DIGIT)?;
        u8::try_from(digit).ok().filter(|digit| *digit < 16)
    };
    let byte = is_tag.then(|| Some(digit()? << 4 | digit()?))??;
    Some((byte, chars.as_str()))
}

/// Moves characters from `bytes` to the text. Unless `is_end`, an incomplete character at the end stays.
fn decode_bytes(bytes: &mut Vec<u8>, is_end: bool, text: &mut String) {
    let mut rest = std::mem::take(bytes);
    while !rest.is_empty() {
        let len = match (surrogate(&rest), surrogate(rest.get(3..).unwrap_or_default())) {
            (Some(high @ 0xD800..0xDC00), Some(low @ 0xDC00..0xE000)) => {
                text.extend(
                    char::decode_utf16([high, low]).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)),
                );
                6
            }
            (Some(0xD800..0xDC00), None) if !is_end && rest.len() < MAX_CHAR_BYTES => break,
            (Some(_), _) => {
                text.push(char::REPLACEMENT_CHARACTER);
                3
            }
            (None, _) if !is_end && is_begun_surrogate(&rest) => break,
            (None, _) => match std::str::from_utf8(&rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest.len()
                }
                Err(error) if error.valid_up_to() > 0 => {
                    text.push_str(&String::from_utf8_lossy(&rest[..error.valid_up_to()]));
                    error.valid_up_to()
                }
                Err(error) if error.error_len().is_none() && !is_end => break,
                Err(error) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    error.error_len().unwrap_or(rest.len())
                }
            },
        };
        rest.drain(..len);
    }
    *bytes = rest;
}

/// The surrogate at the start of these bytes, in the generalised form of UTF-8.
fn surrogate(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, ..] => {
            Some(0xD000 | (u16::from(*second & 0x3F) << 6) | u16::from(*third & 0x3F))
        }
        _ => None,
    }
}

/// Whether these bytes are the beginning of a surrogate.
fn is_begun_surrogate(bytes: &[u8]) -> bool {
    matches!(bytes, [0xED, 0xA0..=0xBF])
}

#[cfg(test)]
mod tests {
    use crate::stream::split_chars::*;

    fn joined(texts: &[&str]) -> String {
        let mut joiner = CharJoiner::default();
        let mut all: String = texts.iter().map(|text| joiner.join(text).into_owned()).collect();
        all.push_str(&joiner.finish());
        all
    }

    #[test]
    fn halves_of_two_texts_are_joined() {
        let (high, low) = (surrogate_marks(0xD83D), surrogate_marks(0xDE00));
        assert_eq!(joined(&[&format!("a{high}"), &format!("{low}b")]), "a😀b");
        assert_eq!(joined(&[&format!("{high}{low}")]), "😀");
        assert_eq!(joined(&[&high, "", &low]), "😀");
        assert_eq!(joined(&[&high, "x", &low]), "\u{FFFD}x\u{FFFD}");
        assert_eq!(joined(&[&low, &high]), "\u{FFFD}\u{FFFD}");
        assert_eq!(joined(&[&format!("{high}{high}"), &low]), "\u{FFFD}😀");
        // The bytes of one character in any cut, also in the form with surrogates (CESU-8).
        for bytes in ["😀".as_bytes(), &[0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80]] {
            for cut in 0..=bytes.len() {
                let (start, end) = bytes.split_at(cut);
                assert_eq!(joined(&[&decode_text(start), &decode_text(end)]), "😀", "{cut}");
            }
        }
        assert_eq!(joined(&[&decode_text(b"a\xFFb"), &decode_text(b"\xE2\x82")]), "a\u{FFFD}b\u{FFFD}");
        // Noncharacters without their digits are no marks.
        assert_eq!(joined(&["\u{1FFFE}", "\u{FDD0}\u{1FFFE}x"]), "\u{1FFFE}\u{FDD0}\u{1FFFE}x");
        assert_eq!(join_marks(&format!("a{high}")), "a\u{FFFD}");
        assert_eq!(join_marks("plain"), "plain");
    }
}
