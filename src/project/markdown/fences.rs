//! Fenced code blocks (CommonMark 0.31, section 4.5).

/// Minimum characters of a fence.
const MIN_FENCE_CHARS: usize = 3;

/// Follows the fences of a text, line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    /// The character of the open fence, and how often it stands there.
    open: Option<(char, usize)>,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceLine<'l> {
    /// Text outside code.
    Text,
    /// The beginning of a block, with the text after the fence.
    Opens(&'l str),
    Code,
    /// The end of a block.
    Closes,
}

impl Fences {
    /// What the next line is. A block without an end lasts to the end of the text.
    pub fn next_line<'l>(&mut self, line: &'l str) -> FenceLine<'l> {
        let fence = fence_of(line);
        match (self.open, fence) {
            (None, None) => FenceLine::Text,
            (None, Some((c, count, info))) => {
                self.open = Some((c, count));
                FenceLine::Opens(info)
            }
            (Some((open, needed)), Some((c, count, ""))) if c == open && count >= needed => {
                self.open = None;
                FenceLine::Closes
            }
            (Some(_), _) => FenceLine::Code,
        }
    }
}

/// The fence of a line: its character, how often it stands there, and the text after it.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    // A fence may stand in a quotation or a list.
    let line = line.trim_start_matches([' ', '\t', '>']);
    let c = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = line.trim_start_matches(c);
    let count = line.len() - info.len();
    let info = info.trim();
    (count >= MIN_FENCE_CHARS && !(c == '`' && info.contains('`'))).then_some((c, count, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_ends_only_with_the_same_longer_fence() {
        use FenceLine::{Closes, Code, Opens, Text};
        let cases: [(&str, &[FenceLine<'_>]); 8] = [
            ("a\n```\nb\n```\nc", &[Text, Opens(""), Code, Closes, Text]),
            ("```rust\nb\n```", &[Opens("rust"), Code, Closes]),
            ("````\n```\nb\n```\n````\nc", &[Opens(""), Code, Code, Code, Closes, Text]),
            ("~~~\n```\n~~~\nc", &[Opens(""), Code, Closes, Text]),
            ("```\n~~~\n``` x\n`````\nc", &[Opens(""), Code, Code, Closes, Text]),
            ("  - x\n    ```sh\n    b\n    ```\nc", &[Text, Opens("sh"), Code, Closes, Text]),
            ("> ```\n> b\n> ```\nc", &[Opens(""), Code, Closes, Text]),
            ("``` a ```\n``\n~~\nc", &[Text, Text, Text, Text]),
        ];
        for (text, expected) in cases {
            let mut fences = Fences::default();
            let lines: Vec<_> = text.lines().map(|line| fences.next_line(line)).collect();
            assert_eq!(lines, expected, "{text}");
        }
    }
}
