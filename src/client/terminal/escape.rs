//! Escapes text from models, tools, file names and titles before a terminal receives it.
//!
//! Nothing is dropped: a character that could move the cursor, change the title, reorder or hide text
//! becomes a visible `⟦NAME⟧`. The brackets themselves are escaped too, so that text cannot imitate an
//! escape. Joiners between letters and emoji, and soft hyphens, are text.

use std::borrow::Cow;

use types::invisible_chars::{is_invisible, is_joiner, is_joiner_at};

/// A run of at least this many blanks is replaced by its length.
const BLANK_RUN: &str = "                                        ";
const OPEN: char = '⟦';
const CLOSE: char = '⟧';

/// Escapes free text: line ends and tabs stay. The text may be a part of a stream, so that a joiner may stand at its
/// beginning or end.
pub fn text(raw: &str) -> Cow<'_, str> {
    let is_split_joiner = |index: usize, c: char| {
        let is_at_end = index == 0 || index + c.len_utf8() == raw.len();
        is_at_end && is_joiner(c)
    };
    escape(raw, |index, c| {
        !matches!(c, '\n' | '\t')
            && is_treacherous(c)
            && !is_joiner_at(raw, index)
            && !is_split_joiner(index, c)
    })
}

/// Escapes text that must stay on one line: titles, paths, names.
pub fn line(raw: &str) -> Cow<'_, str> {
    escape(raw, |index, c| is_treacherous(c) && !is_joiner_at(raw, index))
}

/// Escapes text that was escaped before and decoded since, as Markdown does with `&#27;`. The names of the
/// first escapes stay unchanged.
pub fn escape_decoded(shown: &str) -> Cow<'_, str> {
    escape(shown, |index, c| !matches!(c, '\t') && is_invisible(c) && !is_joiner_at(shown, index))
}

/// The exact text of a command or a diff, line by line, for a user who must approve it: tabs, carriage
/// returns, unusual blanks and trailing blanks are visible.
pub fn exact_lines(raw: &str) -> Vec<String> {
    raw.split('\n').map(exact_line).collect()
}

/// One line of [`exact_lines`].
pub fn exact_line(raw: &str) -> String {
    let solid = raw.trim_end_matches(' ');
    let mut shown = escape(solid, |_, c| is_treacherous(c) || is_odd_blank(c)).into_owned();
    count_blanks(&mut shown);
    for _ in solid.len()..raw.len() {
        push_name(&mut shown, ' ');
    }
    shown
}

/// Replaces long runs of blanks, which would push the following text out of view or to the beginning of a
/// row.
pub(crate) fn count_blanks(shown: &mut String) {
    while let Some(start) = shown.find(BLANK_RUN) {
        let blanks = shown[start..].chars().take_while(|c| *c == ' ').count();
        shown.replace_range(start..start + blanks, &format!("{OPEN}SP×{blanks}{CLOSE}"));
    }
}

fn escape(raw: &str, is_named: impl Fn(usize, char) -> bool) -> Cow<'_, str> {
    let Some((first, _)) = raw.char_indices().find(|(index, c)| is_named(*index, *c)) else {
        return Cow::Borrowed(raw);
    };
    let mut shown = String::with_capacity(raw.len() + 16);
    shown.push_str(&raw[..first]);
    for (index, c) in raw[first..].char_indices() {
        if is_named(first + index, c) {
            push_name(&mut shown, c);
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn push_name(shown: &mut String, c: char) {
    shown.push(OPEN);
    match c {
        '\u{1b}' => shown.push_str("ESC"),
        '\t' => shown.push_str("TAB"),
        '\n' => shown.push_str("LF"),
        '\r' => shown.push_str("CR"),
        ' ' => shown.push_str("SP"),
        '\u{0}' => shown.push_str("NUL"),
        '\u{7}' => shown.push_str("BEL"),
        '\u{8}' => shown.push_str("BS"),
        '\u{7f}' => shown.push_str("DEL"),
        other => shown.push_str(&format!("U+{:04X}", u32::from(other))),
    }
    shown.push(CLOSE);
}

/// Invisible characters, and the escape's own brackets.
fn is_treacherous(c: char) -> bool {
    is_invisible(c) || matches!(c, OPEN | CLOSE)
}

/// Blanks that look like a space.
fn is_odd_blank(c: char) -> bool {
    matches!(u32::from(c), 0xA0 | 0x1680 | 0x2000..=0x200A | 0x202F | 0x205F | 0x3000)
}

#[cfg(test)]
mod tests {
    use crate::terminal::escape::*;
    use proptest::prelude::*;

    #[test]
    fn terminal_control_characters_are_made_visible() {
        let check = |raw: &str, expected: &str| assert_eq!(text(raw), expected, "{raw:?}");
        check("plain\ttext\n", "plain\ttext\n");
        check("\u{1b}[31mred", "⟦ESC⟧[31mred");
        check("\u{1b}]0;title\u{7}", "⟦ESC⟧]0;title⟦BEL⟧");
        check("\u{9b}2J", "⟦U+009B⟧2J");
        check("safe\rrm -rf", "safe⟦CR⟧rm -rf");
        check("a\u{202e}b\u{2066}c", "a⟦U+202E⟧b⟦U+2066⟧c");
        check("pass\u{200b}word", "pass⟦U+200B⟧word");
        check("tag\u{e0041}", "tag⟦U+E0041⟧");
        check("\u{feff}x", "⟦U+FEFF⟧x");
        check("⟦ESC⟧", "⟦U+27E6⟧ESC⟦U+27E7⟧");
        check("Grüße, 世界, שלום, ❤\u{fe0f}", "Grüße, 世界, שלום, ❤\u{fe0f}");
    }

    #[test]
    fn joiners_of_words_and_emoji_are_shown_as_they_are() {
        for raw in ["👨\u{200d}👩\u{200d}👧", "می\u{200c}خواهم", "Donau\u{ad}dampf", "©\u{fe0e}"]
        {
            assert_eq!(text(raw), raw);
            assert_eq!(line(raw), raw);
            assert_eq!(escape_decoded(raw), raw);
            // A stream may be cut at any character.
            for (index, _) in raw.char_indices() {
                let (before, after) = raw.split_at(index);
                assert_eq!(format!("{}{}", text(before), text(after)), raw, "{index}");
            }
        }
        assert_eq!(line("a \u{200d} b"), "a ⟦U+200D⟧ b");
        assert_eq!(exact_line("rm a\u{200d}b"), "rm a⟦U+200D⟧b", "a request shows the exact text");
    }

    #[test]
    fn escaped_line_contains_no_newline_or_tab() {
        assert_eq!(line("a\nb\tc"), "a⟦LF⟧b⟦TAB⟧c");
    }

    #[test]
    fn exact_text_shows_easily_missed_blanks() {
        assert_eq!(exact_lines("ls \t \r\n  x\u{a0}y  "), ["ls ⟦TAB⟧ ⟦CR⟧", "  x⟦U+00A0⟧y⟦SP⟧⟦SP⟧"]);
        assert_eq!(exact_lines("a b"), ["a b"]);
        let many = format!("ls{}; rm x", " ".repeat(4_000));
        assert_eq!(exact_lines(&many), ["ls⟦SP×4000⟧; rm x"]);
        let indented = format!("{}x", " ".repeat(32));
        assert_eq!(exact_lines(&indented), [indented.as_str()]);
    }

    #[test]
    fn escape_agrees_with_table_of_invisible_characters() {
        for c in char::MIN..=char::MAX {
            let is_shown = line(&c.to_string()) == c.to_string();
            assert_eq!(is_shown, !is_invisible(c) && !matches!(c, OPEN | CLOSE), "{c:?}");
        }
    }

    proptest! {
        #[test]
        fn escaped_text_contains_no_control_or_format_character(raw in any::<String>()) {
            let shown = text(&raw);
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert!(!line(&raw).chars().any(|c| c.is_control()));
            for shown in exact_lines(&raw) {
                prop_assert!(!shown.chars().any(|c| c.is_control()));
                prop_assert!(!shown.ends_with(' '));
            }
        }

        #[test]
        fn different_texts_have_different_exact_forms(a in ".{0,8}", b in ".{0,8}") {
            prop_assert_eq!(a == b, exact_lines(&a) == exact_lines(&b));
        }

        #[test]
        fn escaped_mix_of_special_characters_is_harmless(raw in "[\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2061}-\u{206f}a]{0,40}") {
            let ok = |c: char| c == '\n' || c == '\t' || c == 'a' || c == OPEN || c == CLOSE || matches!(c, '+' | '×') || c.is_ascii_uppercase() || c.is_ascii_digit();
            prop_assert!(text(&raw).chars().all(ok));
        }
    }
}
