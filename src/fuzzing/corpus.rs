//! Reads a target's corpus from a text that users can read and compare: one input per line.
//!
//! Printable ASCII characters are literal; `\n`, `\r`, `\t` and `\\` have their usual meaning, and any other
//! byte is `\xNN`. Lines that begin with `#` are comments; empty lines are ignored.

/// Inputs with their line numbers, from 1.
pub type Corpus = Vec<(usize, Vec<u8>)>;

/// Reads a corpus.
///
/// # Errors
/// The line that cannot be parsed.
pub fn read(text: &str) -> Result<Corpus, String> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| Ok((number, bytes(line).ok_or(format!("line {number} cannot be read"))?)))
        .collect()
}

fn bytes(line: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line.as_bytes().iter();
    while let Some(byte) = rest.next() {
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        out.push(match rest.next()? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'\\' => b'\\',
            b'x' => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16);
                (digit(rest.next()?)? << 4 | digit(rest.next()?)?) as u8
            }
            _ => return None,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn corpus_line_is_one_escaped_input() {
        let corpus = read("# a comment\na\\n\\x00\\xffb\\\\\n\n\\x23\n").unwrap();
        assert_eq!(corpus, [(2, b"a\n\0\xffb\\".to_vec()), (4, b"#".to_vec())]);
        assert!(read("\\q").is_err());
        assert!(read("\\x4").is_err());
    }
}
