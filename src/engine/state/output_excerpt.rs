//! What a running tool has said so far, as much of it as is worth keeping: when the daemon dies before
//! the tool's end, this is all that is known of it (S4).

/// Bytes of the beginning that are kept.
const HEAD: usize = 4 * 1024;
/// Bytes of the end that are kept, at least; up to twice as many are held.
const TAIL: usize = 12 * 1024;

/// The beginning and the end of a text that grows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::engine) struct OutputExcerpt {
    head: String,
    tail: String,
    /// Bytes between the two that are gone.
    lost: usize,
}

impl OutputExcerpt {
    /// Adds what was said next.
    pub fn push(&mut self, text: &str) {
        let room = if self.tail.is_empty() && self.lost == 0 { HEAD - self.head.len() } else { 0 };
        let (head, tail) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(head);
        self.tail.push_str(tail);
        if self.tail.len() > 2 * TAIL {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let cut = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(TAIL));
        self.tail.drain(..cut);
        self.lost += cut;
    }

    /// What is kept, with a note where something is missing; empty if nothing was said.
    pub fn text(&self) -> String {
        let mut said = self.clone();
        if said.tail.len() > TAIL {
            said.trim();
        }
        let note = match said.lost {
            0 => String::new(),
            lost => format!("\n[… {lost} bytes left out …]\n"),
        };
        [said.head, note, said.tail].concat()
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::state::output_excerpt::*;

    #[test]
    fn short_output_excerpt_keeps_full_text() {
        let text = "aé\n".repeat(3_000);
        let mut said = OutputExcerpt::default();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.ceil_char_boundary(7.min(rest.len())));
            said.push(piece);
            rest = more;
        }
        assert_eq!(said.text(), text);
        assert_eq!(OutputExcerpt::default().text(), "");
    }

    #[test]
    fn long_output_excerpt_keeps_head_and_tail() {
        let mut said = OutputExcerpt::default();
        for number in 0..50_000 {
            said.push(&format!("line {number} é\n"));
        }
        let text = said.text();
        assert!(text.len() < HEAD + TAIL + 100, "{}", text.len());
        assert!(text.starts_with("line 0 é\nline 1 é\n"), "{text:.100}");
        assert!(text.ends_with("line 49999 é\n") && text.contains(" bytes left out "));
    }
}
