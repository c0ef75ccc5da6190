//! Globs whose brackets may be part of a name, such as `app/[slug]/{page,layout}.tsx`.

/// Maximum nesting of braces that are read literally as well.
const MAX_DEPTH: usize = 8;

/// A glob for `globset` that matches by either reading of its brackets: `[…]` as a class and literally, `{…}` as
/// a choice and literally. The wildcards `*` and `?` keep their meaning. Brackets without a partner stay as they
/// are.
#[must_use]
pub fn either_reading(glob: &str) -> String {
    if !glob.contains(['[', '{']) {
        return glob.to_owned();
    }
    let chars: Vec<char> = glob.chars().collect();
    let mut out = String::with_capacity(2 * glob.len());
    read(&chars, Some(MAX_DEPTH), &mut out);
    out
}

/// The glob with all its brackets read literally. The wildcards `*` and `?` keep their meaning.
#[must_use]
pub fn literal_brackets(glob: &str) -> String {
    let mut out = String::with_capacity(2 * glob.len());
    let mut chars = glob.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            out.push(c);
            out.extend(chars.next());
            continue;
        }
        if matches!(c, '[' | ']' | '{' | '}' | ',') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Writes the glob with both readings. `levels` is the number of nested braces that may get both; without it,
/// braces and commas are literal.
fn read(chars: &[char], levels: Option<usize>, out: &mut String) {
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        let rest = &chars[at..];
        match c {
            '\\' => {
                out.extend(rest.iter().take(2));
                at += 2;
                continue;
            }
            '[' => {
                if let Some(length) = class_length(rest) {
                    write_class(&rest[..length], out);
                    at += length;
                    continue;
                }
                out.push('[');
            }
            '{' | '}' | ',' if levels.is_none() => out.extend(['\\', *c]),
            '{' => {
                let deeper = levels.and_then(|levels| levels.checked_sub(1));
                if let (Some(_), Some(length)) = (deeper, braces_length(rest)) {
                    let inner = &rest[1..length - 1];
                    out.push('{');
                    read(inner, deeper, out);
                    out.push_str(",\\{");
                    read(inner, None, out);
                    out.push_str("\\}}");
                    at += length;
                    continue;
                }
                out.push('{');
            }
            c => out.push(*c),
        }
        at += 1;
    }
}

/// The length of the class that begins here, as `globset` reads it.
fn class_length(chars: &[char]) -> Option<usize> {
    let sign = usize::from(matches!(chars.get(1), Some('!' | '^')));
    // A `]` directly after the beginning is a member of the class.
    let first = sign + 2;
    let end = chars.get(first..)?.iter().position(|c| *c == ']')?;
    Some(first + end + 1)
}

/// The length of the braces that begin here, with all that is nested in them.
fn braces_length(chars: &[char]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 1,
            '[' => at += class_length(&chars[at..]).map_or(0, |length| length - 1),
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Writes a class and its text. A text that is no class, because a range in it runs backwards, is only text.
fn write_class(class: &[char], out: &mut String) {
    let text = |out: &mut String| {
        for c in class {
            if matches!(c, '[' | ']' | '{' | '}' | ',' | '*' | '?' | '\\') {
                out.push('\\');
            }
            out.push(*c);
        }
    };
    if has_backward_range(class) {
        text(out);
        return;
    }
    out.push('{');
    out.extend(class);
    out.push(',');
    text(out);
    out.push('}');
}

/// Whether `globset` refuses the class because the end of a range is before its beginning.
fn has_backward_range(class: &[char]) -> bool {
    let sign = usize::from(matches!(class.get(1), Some('!' | '^')));
    let mut begin = None;
    let mut in_range = false;
    for c in &class[sign + 1..class.len() - 1] {
        match begin {
            Some(begin) if in_range => {
                if *c < begin {
                    return true;
                }
                in_range = false;
            }
            Some(_) if *c == '-' => in_range = true,
            _ => begin = Some(*c),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_get_both_readings() {
        for (glob, expected) in [
            ("src/**/*.rs", "src/**/*.rs"),
            ("app/[slug]/**", "app/{[slug],\\[slug\\]}/**"),
            ("[...all].ts", "{[...all],\\[...all\\]}.ts"),
            ("[[...slug]]", "{[[...slug],\\[\\[...slug\\]}]"),
            ("[foo-bar]", "\\[foo-bar\\]"),
            ("*.{ts,tsx}", "*.{ts,tsx,\\{ts\\,tsx\\}}"),
            ("{a}", "{a,\\{a\\}}"),
            ("{[ab],c}", "{{[ab],\\[ab\\]},c,\\{{[ab],\\[ab\\]}\\,c\\}}"),
            ("\\[a]", "\\[a]"),
            ("[a", "[a"),
            ("{a", "{a"),
            ("(group)/a,b", "(group)/a,b"),
        ] {
            assert_eq!(either_reading(glob), expected, "{glob}");
        }
        let deep = format!("{}a{}", "{".repeat(50), "}".repeat(50));
        assert!(either_reading(&deep).len() < 20 * deep.len());
    }
}
