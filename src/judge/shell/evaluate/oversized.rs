//! Lines that are far too long to be read as a whole. Nothing allows them, but what is denied is looked for all the
//! same: in their pieces, each once.

use std::borrow::Cow;
use std::collections::HashSet;

/// Up to so many bytes a line is read as it is. No tool takes a longer one; people may still ask about it.
const WHOLE: usize = 128 * 1024;
/// So much of the beginning of a longer one is looked at, and so much of its end.
const BEGINNING: usize = 1024 * 1024;
const END: usize = 128 * 1024;
/// Of a long piece this much of its beginning and of its end is kept.
const PIECE: usize = 2 * 1024;
/// So much text is left at most.
const LEFT: usize = 64 * 1024;

/// The line itself, or the pieces of a line that is too long: what stands between the signs that end a command, in
/// the order of the text, each once. Quotes that hold such a sign stay around it.
pub(in crate::judge::shell) fn condense(text: &str) -> Cow<'_, str> {
    if text.len() <= WHOLE {
        return Cow::Borrowed(text);
    }
    let (begin, end) =
        (text.floor_char_boundary(BEGINNING), text.ceil_char_boundary(text.len().saturating_sub(END)));
    let looked = if begin >= end { [text, ""] } else { [&text[..begin], &text[end..]] };
    let mut seen = HashSet::new();
    let mut left = String::new();
    for (nth, part) in looked.into_iter().enumerate() {
        let most = LEFT * (nth + 1) / 2;
        for piece in part.split([';', '&', '|', '\n', '(', ')', '`']) {
            let piece = piece.trim_matches([' ', '\t']);
            if piece.is_empty() || !seen.insert(piece) {
                continue;
            }
            if left.len() + piece.len().min(2 * PIECE) > most {
                break;
            }
            if piece.len() > 2 * PIECE {
                left.push_str(&piece[..piece.floor_char_boundary(PIECE)]);
                left.push_str(&piece[piece.ceil_char_boundary(piece.len() - PIECE)..]);
            } else {
                left.push_str(piece);
            }
            left.push('\n');
        }
    }
    Cow::Owned(left)
}

#[cfg(test)]
mod tests {
    use crate::judge::shell::evaluate::oversized::*;

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
            let left = condense(&long);
            // Where the beginning ends, half a piece may be left.
            let (first, last) = expected.split_once('\n').expect("pieces");
            assert!(left.starts_with(first) && left.ends_with(last) && left.len() < 40, "{unit:?}: {left}");
        }
        let quoted = format!("echo \"{}\"; git push", "é".repeat(200_000));
        let left = condense(&quoted);
        assert!(left.ends_with("é\"\ngit push\n") && left.len() < 3 * PIECE, "{} bytes", left.len());
        let many: String = (0..400_000).map(|n| format!("a{n};")).collect();
        assert!(condense(&many).len() <= LEFT + 8);
    }
}
