//! The results of a search as text.

use crate::terminal::escape;
use types::knowledge::RawData;

/// Entities, relations, and the found parts of files with their paths and lines.
pub(super) fn text(data: &RawData) -> String {
    let mut text = String::new();
    let entities =
        data.entities.iter().map(|it| format!("{} ({}): {}", it.name, it.entity_type, it.description));
    section(&mut text, "Entities", entities);
    let relations =
        data.relations.iter().map(|it| format!("{} - {}: {}", it.source, it.target, it.description));
    section(&mut text, "Relations", relations);
    for chunk in &data.chunks {
        let symbol = chunk.symbol.as_deref().map(|symbol| format!("  {}", escape::line(symbol)));
        let path = if chunk.path.is_empty() { &chunk.chunk_id } else { &chunk.path };
        let (from, to, symbol) = (chunk.start_line, chunk.end_line, symbol.unwrap_or_default());
        text.push_str(&format!("{}:{from}-{to}{symbol}\n", escape::line(path)));
        for line in chunk.content.lines() {
            text.push_str(&format!("    {}\n", escape::line(line)));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.map(|line| format!("  {}\n", escape::line(&line))).collect();
    if !lines.is_empty() {
        text.push_str(&format!("{title}:\n{}\n", lines.concat()));
    }
}

#[cfg(test)]
mod tests {
    use types::knowledge::{FoundChunk, FoundEntity, FoundRelation};

    use super::*;

    #[test]
    fn results_are_shown_with_paths_and_lines() {
        let data = RawData {
            entities: vec![FoundEntity {
                name: "Parser".into(),
                entity_type: "type".into(),
                description: "Reads\nlines.".into(),
                rank: 1,
            }],
            relations: vec![FoundRelation {
                source: "Parser".into(),
                target: "Lexer".into(),
                keywords: "calls".into(),
                description: "calls".into(),
                weight: 1.0,
                rank: 2,
            }],
            chunks: vec![FoundChunk {
                chunk_id: "c".into(),
                reference_id: "1".into(),
                path: "src/a.rs".into(),
                start_line: 3,
                end_line: 4,
                symbol: Some("Parser".into()),
                content: "struct Parser;\n\u{1b}[31m".into(),
                rerank_score: None,
            }],
            ..RawData::default()
        };
        let shown = text(&data);
        assert!(shown.starts_with("Entities:\n  Parser (type): Reads"), "{shown}");
        assert!(
            shown.contains(
                "Relations:\n  Parser - Lexer: calls\n\nsrc/a.rs:3-4  Parser\n    struct Parser;\n"
            )
        );
        assert!(!shown.contains('\u{1b}'));
        assert_eq!(text(&RawData::default()), "");
    }
}
