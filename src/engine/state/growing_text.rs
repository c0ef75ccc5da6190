//! A text that grows at its end and is cheap to copy, whatever its length. Copies share its full parts,
//! and only the last part is copied.

use std::sync::Arc;

/// Size in bytes at which a part is full.
const PART_BYTES: usize = 4 * 1024;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GrowingText {
    full: Arc<Vec<Arc<str>>>,
    last: String,
}

impl GrowingText {
    pub fn push(&mut self, text: &str) {
        self.last.push_str(text);
        if self.last.len() >= PART_BYTES {
            Arc::make_mut(&mut self.full).push(Arc::from(std::mem::take(&mut self.last)));
        }
    }

    pub fn text(&self) -> String {
        self.full.iter().map(|part| &**part).chain([self.last.as_str()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::state::growing_text::*;

    #[test]
    fn growing_text_joins_parts_and_keeps_copies() {
        let (mut text, mut plain, mut copies) = (GrowingText::default(), String::new(), Vec::new());
        for length in (0..400).map(|at| at * 7 % 90) {
            copies.push((text.clone(), plain.clone()));
            let part = "é".repeat(length);
            text.push(&part);
            plain.push_str(&part);
        }
        assert!(plain.len() > 4 * PART_BYTES);
        copies.push((text, plain));
        for (text, plain) in copies {
            assert_eq!(text.text(), plain);
        }
    }
}
