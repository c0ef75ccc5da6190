//! Code in a line (CommonMark 0.31, section 6.1).

/// Where code in a line ends that began with so many backticks before `text`.
pub(crate) fn end_of_span(text: &str, ticks: usize) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find('`') {
        let at = from + at;
        let count = text[at..].len() - text[at..].trim_start_matches('`').len();
        if count == ticks {
            return Some(at);
        }
        from = at + count;
    }
    None
}

pub(crate) fn without_code(line: &str) -> String {
    let (mut kept, mut rest) = (String::new(), line);
    while let Some(at) = rest.find('`') {
        let (text, marked) = rest.split_at(at);
        let inner = marked.trim_start_matches('`');
        let ticks = marked.len() - inner.len();
        kept += text;
        match end_of_span(inner, ticks) {
            Some(end) => rest = &inner[end + ticks..],
            None => {
                kept += &marked[..ticks];
                rest = inner;
            }
        }
        // What stood on both sides of the code stays apart.
        kept.push('`');
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::without_code;

    #[test]
    fn code_in_a_line_is_left_out() {
        for (line, expected) in [
            ("a `b` c", "a ` c"),
            ("a ``b ` c`` d", "a ` d"),
            ("a `b c", "a ``b c"),
            ("plain", "plain"),
            ("`a``b`", "`"),
        ] {
            assert_eq!(without_code(line), expected, "{line}");
        }
    }
}
