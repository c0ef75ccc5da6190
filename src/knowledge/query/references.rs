//! References: one per file, so that an answer can cite it.

use std::collections::HashMap;

use crate::types::Chunk;
use types::knowledge::Reference;

/// The files of these chunks: by number of chunks, then by first appearance. Chunks without a path get no id.
pub fn references<'c>(chunks: impl IntoIterator<Item = &'c Chunk>) -> Vec<Reference> {
    let mut by_path: HashMap<&str, usize> = HashMap::new();
    let mut files: Vec<(&str, Vec<&Chunk>)> = Vec::new();
    for chunk in chunks {
        let path = chunk.path.as_deref().unwrap_or_default();
        let index = *by_path.entry(path).or_insert_with(|| {
            files.push((path, Vec::new()));
            files.len() - 1
        });
        files[index].1.push(chunk);
    }
    // Stable: equal numbers keep the order of first appearance.
    files.sort_by_key(|(path, chunks)| (path.is_empty(), std::cmp::Reverse(chunks.len())));
    let reference = |(index, (path, chunks)): (usize, (&str, Vec<&Chunk>))| Reference {
        reference_id: if path.is_empty() { String::new() } else { (index + 1).to_string() },
        path: path.to_owned(),
        lines: line_ranges(&chunks),
        chunk_ids: chunks.iter().map(|chunk| chunk.id.as_str().to_owned()).collect(),
    };
    files.into_iter().enumerate().map(reference).collect()
}

/// Sorted ranges of lines, joined where they touch or overlap.
fn line_ranges(chunks: &[&Chunk]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> =
        chunks.iter().map(|chunk| (chunk.start_line, chunk.end_line.max(chunk.start_line))).collect();
    ranges.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match joined.last_mut() {
            Some(last) if start <= last.1.saturating_add(1) => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::testing::chunk;

    #[test]
    fn references_are_ordered_by_number_of_chunks() {
        let chunks = [
            chunk("c1", Some("b.rs"), 10, 20, "x"),
            chunk("c2", Some("a.rs"), 30, 40, "x"),
            chunk("c3", None, 1, 1, "x"),
            chunk("c4", Some("a.rs"), 1, 29, "x"),
            chunk("c5", Some("a.rs"), 90, 95, "x"),
            chunk("c6", Some("c.rs"), 1, 1, "x"),
        ];
        let got = references(&chunks);
        let order: Vec<(&str, &str)> =
            got.iter().map(|it| (it.reference_id.as_str(), it.path.as_str())).collect();
        assert_eq!(order, [("1", "a.rs"), ("2", "b.rs"), ("3", "c.rs"), ("", "")]);
        assert_eq!(got[0].lines, [(1, 40), (90, 95)]);
        assert_eq!(got[0].chunk_ids, ["c2", "c4", "c5"]);
    }
}
