//! Splits a Rust file into code tokens and texts, and removes its tests.

/// The folder of the modules that a file declares: `engine/mod.rs` → `engine`, `engine/plan.rs` → `engine/plan`.
pub fn submodules_of(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    stem.strip_suffix("/mod").unwrap_or(if stem == "lib" { "" } else { stem }).into()
}

/// A token of code, or the inside of a text.
#[derive(Debug, PartialEq)]
pub enum SourceToken {
    Code(String),
    Text(String),
}

pub fn tokens(code: &str) -> Vec<String> {
    pieces(code)
        .into_iter()
        .filter_map(|piece| match piece {
            SourceToken::Code(token) => Some(token),
            SourceToken::Text(_) => None,
        })
        .collect()
}

/// Splits Rust source into tokens and texts, without comments.
pub fn pieces(text: &str) -> Vec<SourceToken> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let mut out = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        match (at(i), at(i + 1)) {
            ('/', '/') => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            ('/', '*') => {
                let mut inner = 0;
                loop {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (inner, i) = (inner + 1, i + 2),
                        ('*', '/') => (inner, i) = (inner - 1, i + 2),
                        _ => i += 1,
                    }
                    if inner == 0 || i >= chars.len() {
                        break;
                    }
                }
            }
            ('"', _) => i = quoted(&chars, i + 1, '"', &mut out),
            // 'a' and '\n' are characters, 'a is a lifetime.
            ('\'', next) if next == '\\' || at(i + 2) == '\'' => i = quoted(&chars, i + 1, '\'', &mut out),
            (c, _) if c.is_alphanumeric() || c == '_' => {
                let start = i;
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
                let word: String = chars[start..i].iter().collect();
                let hashes = (i..chars.len()).take_while(|index| at(*index) == '#').count();
                if matches!(word.as_str(), "r" | "br" | "cr") && at(i + hashes) == '"' {
                    i = raw(&chars, i + hashes + 1, hashes, &mut out);
                } else {
                    out.push(SourceToken::Code(word));
                }
            }
            (':', ':') => {
                out.push(SourceToken::Code("::".into()));
                i += 2;
            }
            (c, _) => {
                if !c.is_whitespace() {
                    out.push(SourceToken::Code(c.into()));
                }
                i += 1;
            }
        }
    }
    out
}

/// Reads a text up to its closing quote. Returns the index after the quote.
fn quoted(chars: &[char], start: usize, quote: char, out: &mut Vec<SourceToken>) -> usize {
    let mut i = start;
    let mut text = String::new();
    while i < chars.len() && chars[i] != quote {
        if chars[i] == '\\' {
            i += 1;
        }
        text.extend(chars.get(i));
        i += 1;
    }
    out.push(SourceToken::Text(text));
    i + 1
}

fn raw(chars: &[char], start: usize, hashes: usize, out: &mut Vec<SourceToken>) -> usize {
    let ends = |i: usize| chars[i] == '"' && (1..=hashes).all(|n| chars.get(i + n) == Some(&'#'));
    let end = (start..chars.len()).find(|i| ends(*i)).unwrap_or(chars.len());
    out.push(SourceToken::Text(chars[start..end].iter().collect()));
    end + 1 + hashes
}

/// Removes the items under `#[cfg(test)]`. Adds test modules in their own files to `tests`.
pub fn without_tests(pieces: Vec<SourceToken>, folder: &str, tests: &mut Vec<String>) -> Vec<SourceToken> {
    let is = |piece: Option<&SourceToken>, code: &str| matches!(piece, Some(SourceToken::Code(token)) if token == code);
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut out: Vec<SourceToken> = Vec::new();
    let mut rest = pieces.into_iter().peekable();
    while let Some(piece) = rest.next() {
        out.push(piece);
        let begins = out.len().checked_sub(mark.len());
        let Some(begins) =
            begins.filter(|begins| mark.iter().enumerate().all(|(n, word)| is(out.get(begins + n), word)))
        else {
            continue;
        };
        out.truncate(begins);
        // The item: up to its `;` or to the end of its braces.
        let mut item: Vec<SourceToken> = Vec::new();
        let mut inner = 0;
        for piece in rest.by_ref() {
            inner += i32::from(is(Some(&piece), "{")) - i32::from(is(Some(&piece), "}"));
            let ends = inner == 0 && (is(Some(&piece), ";") || is(Some(&piece), "}"));
            item.push(piece);
            if ends {
                break;
            }
        }
        let name = item.iter().position(|piece| is(Some(piece), "mod")).and_then(|at| item.get(at + 1));
        if let (Some(SourceToken::Code(name)), true) = (name, is(item.last(), ";")) {
            let parent = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
            let path = item.iter().find_map(|piece| match piece {
                SourceToken::Text(path) => path.strip_suffix(".rs").map(|stem| format!("{parent}/{stem}")),
                SourceToken::Code(_) => None,
            });
            tests.push(path.unwrap_or_else(|| format!("{folder}/{name}")));
        }
    }
    out
}
