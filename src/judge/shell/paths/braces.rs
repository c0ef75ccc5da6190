//! The brace expansions of a word, for checking each as a path. They never allow anything: braces in a
//! command's name or in a possible option always need a request.

/// Maximum number of expansions of a word; a word with more is not expanded.
const MAX_WORDS: usize = 64;

/// The brace expansions of `text` (bash(1), "Brace Expansion"). A sequence becomes `*` instead of being
/// expanded. `None` if there are too many.
pub(crate) fn choices(text: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![(text.to_owned(), 0)];
    while let Some((text, from)) = open.pop() {
        if done.len() + open.len() >= MAX_WORDS {
            return None;
        }
        let Some(group) = group(&text, from) else {
            done.push(text);
            continue;
        };
        let (before, after) = (&text[..group.start], &text[group.end..]);
        match group.pieces {
            Some(pieces) => {
                let expand = |piece: &String| ([before, piece, after].concat(), group.start);
                open.extend(pieces.iter().map(expand));
            }
            None => open.push((format!("{before}*{after}"), group.start + 1)),
        }
    }
    done.reverse();
    Some(done)
}

/// A pair of braces with alternatives.
struct Group {
    start: usize,
    end: usize,
    /// `None` for a sequence.
    pieces: Option<Vec<String>>,
}

/// The first pair that begins at `from` or later.
fn group(text: &str, from: usize) -> Option<Group> {
    let starts = text[from..].match_indices('{').map(|(index, _)| from + index);
    for start in starts.take(MAX_WORDS) {
        let mut depth = 0_usize;
        let mut cuts = vec![start];
        for (index, byte) in text.bytes().enumerate().skip(start) {
            match byte {
                b'{' => depth += 1,
                b',' if depth == 1 => cuts.push(index),
                b'}' => depth -= 1,
                _ => continue,
            }
            if depth > 0 {
                continue;
            }
            let inner = &text[start + 1..index];
            cuts.push(index);
            let pieces = || cuts.windows(2).map(|cut| text[cut[0] + 1..cut[1]].to_owned()).collect();
            if cuts.len() > 2 {
                return Some(Group { start, end: index + 1, pieces: Some(pieces()) });
            }
            if inner.contains("..") {
                return Some(Group { start, end: index + 1, pieces: sequence(inner) });
            }
            break;
        }
    }
    None
}

/// `a..e`, of letters of one case or digits. Other sequences are not expanded.
fn sequence(inner: &str) -> Option<Vec<String>> {
    let (first, last) = inner.split_once("..")?;
    let (&[first], &[last]) = (first.as_bytes(), last.as_bytes()) else { return None };
    let kinds = [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit];
    let is_one_kind = kinds.iter().any(|kind| kind(&first) && kind(&last));
    let all = || (first.min(last)..=first.max(last)).map(|c| char::from(c).to_string()).collect();
    is_one_kind.then(all)
}

#[cfg(test)]
mod tests {
    use crate::shell::paths::braces::*;

    #[test]
    fn brace_expansion_equals_bash_expansion() {
        for (text, expected) in [
            ("a{b,c}d", &["abd", "acd"][..]),
            ("{,x}/y", &["/y", "x/y"]),
            ("{a,{b,c}}{1,2}", &["a1", "a2", "b1", "b2", "c1", "c2"]),
            ("x{a}y{b", &["x{a}y{b"]),
            (".gi{t..u}/x", &[".git/x", ".giu/x"]),
            ("{3..1}{a..B}", &["1*", "2*", "3*"]),
            ("x{10..12}", &["x*"]),
            ("{a}{b,c}", &["{a}b", "{a}c"]),
            ("}{,", &["}{,"]),
        ] {
            let mut found = choices(text).unwrap();
            found.sort();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(choices(&"{a,b}".repeat(7)), None);
        assert!(choices(&"{".repeat(10_000)).is_some());
    }
}
