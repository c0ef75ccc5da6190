//! An excerpt of the output of a running tool. If the daemon is killed before the tool ends, this excerpt is the only
//! record of its output.

/// Bytes kept from the beginning.
const HEAD_BYTES: usize = 4 * 1024;
/// Minimum bytes kept from the end. The buffer holds up to twice as many.
const MIN_TAIL_BYTES: usize = 12 * 1024;

/// The beginning and the end of a growing text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OutputExcerpt {
    head: String,
    tail: String,
    /// Number of bytes omitted between the beginning and the end.
    lost: usize,
}

impl OutputExcerpt {
    /// Appends output.
    pub fn push(&mut self, text: &str) {
        let room = if self.tail.is_empty() && self.lost == 0 { HEAD_BYTES - self.head.len() } else { 0 };
        let (head, tail) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(head);
        self.tail.push_str(tail);
        if self.tail.len() > 2 * MIN_TAIL_BYTES {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let cut = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(MIN_TAIL_BYTES));
        self.tail.drain(..cut);
        self.lost += cut;
    }

    /// The excerpt, with a note at the gap. Empty if there is no output.
    pub fn text(&self) -> String {
        let mut excerpt = self.clone();
        if excerpt.tail.len() > MIN_TAIL_BYTES {
            excerpt.trim();
        }
        let note = match excerpt.lost {
            0 => String::new(),
            lost => format!("\n[… {lost} bytes left out …]\n"),
        };
        [excerpt.head, note, excerpt.tail].concat()
    }
}

#[cfg(test)]
mod tests {
    use crate::state::output_excerpt::*;

    #[test]
    fn short_output_excerpt_keeps_full_text() {
        let text = "aé\n".repeat(3_000);
        let mut excerpt = OutputExcerpt::default();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.ceil_char_boundary(7.min(rest.len())));
            excerpt.push(piece);
            rest = more;
        }
        assert_eq!(excerpt.text(), text);
        assert_eq!(OutputExcerpt::default().text(), "");
    }

    #[test]
    fn long_output_excerpt_keeps_head_and_tail() {
        let mut excerpt = OutputExcerpt::default();
        for number in 0..50_000 {
            excerpt.push(&format!("line {number} é\n"));
        }
        let text = excerpt.text();
        assert!(text.len() < HEAD_BYTES + MIN_TAIL_BYTES + 100, "{}", text.len());
        assert!(text.starts_with("line 0 é\nline 1 é\n"), "{text:.100}");
        assert!(text.ends_with("line 49999 é\n") && text.contains(" bytes left out "));
    }
}
