//! Cleans the names and types that a model writes.

/// Characters of a name.
const MAX_NAME_CHARS: usize = 256;
const MAX_NAME_BYTES: usize = 512;
/// Pairs of quotes that may enclose a name.
const QUOTES: &[(char, char)] = &[
    ('"', '"'),
    ('\'', '\''),
    ('`', '`'),
    ('“', '”'),
    ('‘', '’'),
    ('「', '」'),
    ('『', '』'),
    ('《', '》'),
    ('〈', '〉'),
    ('«', '»'),
    ('‹', '›'),
];

/// A text without control characters, HTML breaks and outer white space; full-width letters, digits and signs become
/// ordinary ones.
pub(super) fn clean_text(text: &str) -> String {
    let mut text = text.to_owned();
    for tag in ["<p>", "</p>", "<br>", "<br/>", "<br />", "<P>", "</P>", "<BR>"] {
        if text.contains(tag) {
            text = text.replace(tag, " ");
        }
    }
    let cleaned: String = text
        .chars()
        .filter_map(|c| match c {
            '\u{3000}' | '\u{a0}' | '\u{202f}' | '\t' | '\n' | '\r' => Some(' '),
            // Full-width forms of ASCII.
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
            c if c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{feff}') =>
            {
                None
            }
            c => Some(c),
        })
        .collect();
    cleaned.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A name, or `None` if nothing useful is left.
pub(super) fn name(text: &str) -> Option<String> {
    let mut name = clean_text(text);
    // Quotes may be nested.
    while let Some(inner) = without_quotes(&name) {
        name = inner.trim().to_owned();
    }
    let name = join_cjk(&name);
    let name = shorten_name(&name);
    (!name.is_empty() && !is_number(&name)).then_some(name)
}

/// A type in lower case, or `None` if the text is no type.
pub(super) fn entity_type(text: &str) -> Option<String> {
    let text = clean_text(text);
    let first = text.split([',', '，', '、']).next().unwrap_or_default();
    let first: String = first.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    let is_bad = |c: char| "\"'`()[]{}<>|/\\".contains(c);
    (!first.is_empty() && !first.contains(is_bad)).then_some(first)
}

fn without_quotes(name: &str) -> Option<&str> {
    QUOTES.iter().find_map(|(open, close)| {
        let inner = name.strip_prefix(*open)?.strip_suffix(*close)?;
        // `"a" and "b"` has no outer quotes.
        (!inner.contains(*open) && !inner.contains(*close)).then_some(inner)
    })
}

/// Removes spaces between CJK characters: models put them there by mistake.
fn join_cjk(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let is_joined = |at: usize| {
        chars[at] == ' '
            && at.checked_sub(1).and_then(|before| chars.get(before)).is_some_and(|c| is_cjk(*c))
            && chars.get(at + 1).is_some_and(|c| is_cjk(*c))
    };
    (0..chars.len()).filter(|at| !is_joined(*at)).map(|at| chars[at]).collect()
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Whether a name is a short number or like a version, and so not useful.
fn is_number(name: &str) -> bool {
    let chars = name.chars().count();
    let digits = name.chars().all(|c| c.is_ascii_digit());
    let dotted = name.chars().all(|c| c.is_ascii_digit() || c == '.');
    (digits && chars < 3) || (dotted && !digits && chars < 6)
}

fn shorten_name(name: &str) -> String {
    let mut end =
        name.char_indices().nth(MAX_NAME_CHARS).map_or(name.len(), |(at, _)| at).min(MAX_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_quotes_breaks_and_wide_forms() {
        for (raw, clean) in [
            ("  Alice  ", "Alice"),
            ("\"Alice\"", "Alice"),
            ("“《Alice》”", "Alice"),
            ("『東 京 都』", "東京都"),
            ("Ｒｕｓｔ（１）", "Rust(1)"),
            ("a\u{a0}b\u{3000}c", "a b c"),
            ("<p>Alice<br>Bob</p>", "Alice Bob"),
            ("A\u{0}l\u{200b}ice\u{7}", "Alice"),
            ("\"a\" and \"b\"", "\"a\" and \"b\""),
            ("Alice 東 京", "Alice 東京"),
        ] {
            assert_eq!(name(raw).as_deref(), Some(clean), "{raw:?}");
        }
    }

    #[test]
    fn short_numbers_are_no_names_and_long_names_are_cut() {
        for raw in ["", "  ", "\"\"", "1", "12", "1.2", "1.2.3", "...", "\u{0}"] {
            assert_eq!(name(raw), None, "{raw:?}");
        }
        for raw in ["123", "2026", "1.2.3.4", "v1"] {
            assert_eq!(name(raw).as_deref(), Some(raw));
        }
        assert_eq!(name(&"a".repeat(400)).unwrap().len(), 256);
        let wide = name(&"東".repeat(400)).unwrap();
        assert!(wide.len() <= 512 && wide.chars().all(|c| c == '東'));
    }

    #[test]
    fn types_are_lower_case_words_without_signs() {
        assert_eq!(entity_type(" Natural Person , x").as_deref(), Some("naturalperson"));
        assert_eq!(entity_type("人物、场所").as_deref(), Some("人物"));
        for raw in ["", "a/b", "a|b", "(x)", "\"person\"", "[a]"] {
            assert_eq!(entity_type(raw), None, "{raw:?}");
        }
    }
}
