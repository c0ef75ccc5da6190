//! Texts of the nodes of the knowledge graph, from source code: names of types and the beginnings of comments.

use super::outline::shorten;

/// Characters of a description.
pub(super) const MAX_DESCRIPTION_CHARS: usize = 400;

/// At most this many bytes of a text, from its beginning.
pub(super) fn start_within(text: &str, max_bytes: usize) -> &str {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The name of a type without references, generic arguments and path.
pub(super) fn type_name(text: &str) -> String {
    let text = text.trim();
    // A bracket at the beginning belongs to the name itself: the slice `[Item]`, or `<Item as Trait>`.
    let brackets = text.char_indices().skip(1).find(|(_, c)| matches!(c, '<' | '['));
    let arguments_start = brackets.map_or(text.len(), |(index, _)| index);
    let mut words = text[..arguments_start].split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
    words.rfind(|word| !word.is_empty() && *word != "dyn").unwrap_or_default().to_owned()
}

/// The text after the last `::`, `.` or `->`.
pub(super) fn last_part(path: &str) -> &str {
    let path = path.rsplit("::").next().unwrap_or(path);
    let path = path.rsplit("->").next().unwrap_or(path);
    path.rsplit('.').next().unwrap_or(path).trim()
}

/// The first paragraph of a comment without its signs, shortened to [`MAX_DESCRIPTION_CHARS`].
pub(super) fn clean_comment(text: &str) -> String {
    let text = text.trim().trim_start_matches("/*").trim_end_matches("*/");
    let lines: Vec<&str> =
        text.lines().map(|line| line.trim().trim_start_matches(['/', '#', '*', '!']).trim()).collect();
    first_paragraph(&lines.join("\n"))
}

/// A string without its quotes and the letters before them.
pub(super) fn string_content(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_matches(['"', '\''])
}

/// The first paragraph on one line, shortened to [`MAX_DESCRIPTION_CHARS`].
pub(super) fn first_paragraph(text: &str) -> String {
    let lines = text.trim().lines().map(str::trim).take_while(|line| !line.is_empty());
    shorten(&lines.collect::<Vec<_>>().join(" "), MAX_DESCRIPTION_CHARS)
}
