//! Lines that are too long to parse as a whole. Nothing allows them, but denied commands are still
//! searched for in their pieces, each piece once.

use std::borrow::Cow;
use std::collections::HashSet;

/// Maximum bytes of a line that is parsed as a whole. No tool accepts a longer one, but users may still
/// ask for its verdict.
const MAX_WHOLE_BYTES: usize = 128 * 1024;
/// Bytes of a longer line's beginning and of its end that are searched.
const SEARCHED_BEGIN_BYTES: usize = 1024 * 1024;
const SEARCHED_END_BYTES: usize = 128 * 1024;
/// Bytes of a long piece's beginning and of its end that are kept.
const KEPT_PIECE_BYTES: usize = 2 * 1024;
/// Maximum bytes of the remaining text.
const MAX_REMAINING_BYTES: usize = 64 * 1024;

/// The line itself, or the pieces of a line that is too long. A piece is the text between signs that
/// end a command. The pieces keep their order, and each occurs once. Quotes are not parsed.
pub(crate) fn condense(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_WHOLE_BYTES {
        return Cow::Borrowed(text);
    }
    let (begin, end) = (
        text.floor_char_boundary(SEARCHED_BEGIN_BYTES),
        text.ceil_char_boundary(text.len().saturating_sub(SEARCHED_END_BYTES)),
    );
    let searched_parts = if begin >= end { [text, ""] } else { [&text[..begin], &text[end..]] };
    let mut seen = HashSet::new();
    let mut remaining = String::new();
    for (part_index, part) in searched_parts.into_iter().enumerate() {
        let max_bytes = MAX_REMAINING_BYTES * (part_index + 1) / 2;
        for piece in part.split([';', '&', '|', '\n', '(', ')', '`']) {
            let piece = piece.trim_matches([' ', '\t']);
            if piece.is_empty() || !seen.insert(piece) {
                continue;
            }
            if remaining.len() + piece.len().min(2 * KEPT_PIECE_BYTES) > max_bytes {
                break;
            }
            if piece.len() > 2 * KEPT_PIECE_BYTES {
                remaining.push_str(&piece[..piece.floor_char_boundary(KEPT_PIECE_BYTES)]);
                remaining.push_str(&piece[piece.ceil_char_boundary(piece.len() - KEPT_PIECE_BYTES)..]);
            } else {
                remaining.push_str(piece);
            }
            remaining.push('\n');
        }
    }
    Cow::Owned(remaining)
}

#[cfg(test)]
mod tests {
    use crate::shell::evaluate::oversized::*;

    #[test]
    fn oversized_line_keeps_each_distinct_part_once() {
        let short = "ls; ls".to_owned();
        assert_eq!(condense(&short), short);
        for (unit, expected) in [
            ("ls;", "ls\ngit push\n"),
            ("ls -l && ", "ls -l\ngit push\n"),
            ("(", "git push\n"),
            ("true\n", "true\ngit push\n"),
        ] {
            let long = format!("{}git push", unit.repeat(3_000_000 / unit.len()));
            let remaining = condense(&long);
            // The end of the first part may split a piece.
            let (first, last) = expected.split_once('\n').expect("pieces");
            assert!(
                remaining.starts_with(first) && remaining.ends_with(last) && remaining.len() < 40,
                "{unit:?}: {remaining}"
            );
        }
        let quoted = format!("echo \"{}\"; git push", "é".repeat(200_000));
        let remaining = condense(&quoted);
        assert!(
            remaining.ends_with("é\"\ngit push\n") && remaining.len() < 3 * KEPT_PIECE_BYTES,
            "{} bytes",
            remaining.len()
        );
        let many: String = (0..400_000).map(|n| format!("a{n};")).collect();
        assert!(condense(&many).len() <= MAX_REMAINING_BYTES + 8);
    }
}
