//! The outline of a Markdown document: its headings are symbols, its links are mentions.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::lines::Lines;
use super::outline::{CutPoint, MAX_NAME_BYTES, Mention, Outline, Symbol, shorten};
use super::work_limit::WorkLimit;
use crate::store::ReferenceKind;

/// Maximum number of headings of one document.
const MAX_HEADINGS: usize = 500;
/// Maximum number of links of one document.
const MAX_LINKS: usize = 2000;
/// Characters of the text that describes a section.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// A heading that is being read.
struct Heading {
    level: HeadingLevel,
    start: usize,
    text: String,
}

/// The outline of a text, or `None` if the limit was reached. Every text is Markdown.
pub(super) fn outline(text: &str, limit: &WorkLimit) -> Option<Outline> {
    let mut outline = Outline::default();
    let lines = Lines::new(text);
    // Open sections: level and index of the symbol.
    let mut open: Vec<(HeadingLevel, usize)> = Vec::new();
    let mut heading: Option<Heading> = None;
    // Text of the current section's beginning.
    let mut description = String::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        if limit.is_reached() {
            return None;
        }
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                finish_description(&mut outline, open.last(), &mut description);
                heading = Some(Heading { level, start: range.start, text: String::new() });
            }
            Event::End(TagEnd::Heading(_)) => {
                let Some(Heading { level, start, text: name }) = heading.take() else { continue };
                while open.last().is_some_and(|(outer, _)| *outer >= level) {
                    close_headings(&mut outline, &mut open, start);
                }
                outline.cuts.push(CutPoint { at: lines.start_of(start), depth: level as u8 });
                let name = shorten(name.trim(), MAX_NAME_BYTES / 2);
                if name.is_empty() || outline.symbols.len() >= MAX_HEADINGS {
                    continue;
                }
                let scope = open.iter().map(|(_, symbol)| outline.symbols[*symbol].name.clone()).collect();
                let parent = open.last().map(|(_, symbol)| *symbol);
                open.push((level, outline.symbols.len()));
                let symbol = Symbol {
                    name,
                    scope,
                    entity_type: "section",
                    description: String::new(),
                    start,
                    end: text.len(),
                    parent,
                };
                outline.symbols.push(symbol);
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                if let Some((name, qualifier)) = link_target(&dest_url)
                    && outline.mentions.len() < MAX_LINKS
                {
                    let symbol = open.last().map(|(_, symbol)| *symbol);
                    let kind = ReferenceKind::Link;
                    outline.mentions.push(Mention { kind, name, qualifier, symbol, at: range.start });
                }
            }
            Event::Start(
                Tag::Paragraph | Tag::Item | Tag::CodeBlock(_) | Tag::Table(_) | Tag::BlockQuote(_),
            ) if range.start > 0 => {
                let at = lines.start_of(range.start);
                if outline.cuts.last().is_none_or(|last| last.at < at) {
                    outline.cuts.push(CutPoint { at, depth: 16 });
                }
            }
            Event::Text(part) | Event::Code(part) => match &mut heading {
                Some(heading) => heading.text.push_str(&part),
                None => push_limited(&mut description, &part),
            },
            Event::SoftBreak | Event::HardBreak if heading.is_none() => push_limited(&mut description, " "),
            _ => {}
        }
    }
    finish_description(&mut outline, open.last(), &mut description);
    outline.cuts.sort_by_key(|cut| (cut.at, cut.depth));
    outline.cuts.dedup_by_key(|cut| cut.at);
    if outline.description.is_empty()
        && let Some(first) = outline.symbols.first()
    {
        outline.description = format!("{}: {}", first.name, first.description);
    }
    Some(outline)
}

fn push_limited(text: &mut String, part: &str) {
    if text.len() < 4 * MAX_DESCRIPTION_CHARS {
        text.push_str(part);
    }
}

/// Gives the collected text to the innermost open section, or to the document.
fn finish_description(outline: &mut Outline, open: Option<&(HeadingLevel, usize)>, description: &mut String) {
    let text = std::mem::take(description);
    let text = shorten(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_DESCRIPTION_CHARS);
    match open {
        Some((_, symbol)) => {
            let symbol = &mut outline.symbols[*symbol];
            symbol.description = if text.is_empty() { symbol.name.clone() } else { text };
        }
        None => outline.description = text,
    }
}

fn close_headings(outline: &mut Outline, open: &mut Vec<(HeadingLevel, usize)>, at: usize) {
    if let Some((_, symbol)) = open.pop() {
        outline.symbols[symbol].end = at;
    }
}

/// File stem and folder of a link to a file; `None` for addresses and anchors.
fn link_target(url: &str) -> Option<(String, String)> {
    let path = url.split(['#', '?']).next()?;
    if path.is_empty() || path.contains(':') || path.starts_with("//") {
        return None;
    }
    let mut parts = path.rsplit('/').filter(|part| !matches!(*part, "" | "." | ".."));
    let file = parts.next()?;
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    (!stem.is_empty() && stem.len() <= MAX_NAME_BYTES)
        .then(|| (stem.to_owned(), parts.next().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn outline(text: &str) -> Outline {
        super::outline(text, &WorkLimit::start(&CancellationToken::new())).expect("in time")
    }

    #[test]
    fn headings_become_nested_sections_with_descriptions() {
        let text = "# Guide\n\nHow to use it.\n\n## Install `it`\n\nRun [this](docs/install.md#a).\n\n```\n# no heading\n```\n\
                    \n## Use\n";
        let outline = outline(text);
        let paths: Vec<String> = outline.symbols.iter().map(Symbol::path).collect();
        assert_eq!(paths, ["Guide", "Guide::Install it", "Guide::Use"]);
        assert_eq!(outline.symbols[0].description, "How to use it.");
        assert_eq!(outline.symbols[2].description, "Use");
        assert_eq!(outline.symbols[1].parent, Some(0));
        assert_eq!(
            &text[outline.symbols[1].start..outline.symbols[1].end].lines().next().unwrap(),
            &"## Install `it`"
        );
        assert_eq!(outline.symbols[1].end, outline.symbols[2].start);
        let link = &outline.mentions[0];
        assert_eq!((link.name.as_str(), link.qualifier.as_str(), link.symbol), ("install", "docs", Some(1)));
        assert_eq!(outline.cuts[0], CutPoint { at: 0, depth: 1 });
    }

    #[test]
    fn hostile_markdown_does_not_panic() {
        for text in
            ["", "#", "# \n#\n##", "[a](", "[x](:)", "\u{0}\n===\n", &"> ".repeat(5000), &"[".repeat(5000)]
        {
            outline(text);
        }
    }
}
