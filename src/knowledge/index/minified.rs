//! Recognises minified and bundled code. Its names say nothing, so it is indexed as plain text.

use crate::graph::Outline;

/// Bytes of a line that is longer than those of written code.
const LONG_LINE_BYTES: usize = 400;
/// Smallest text that is judged by its lines.
const MIN_TEXT_BYTES: usize = 4 * 1024;
/// Smallest number of symbols that are judged by their names.
const MIN_SYMBOLS: usize = 40;
/// Bytes of a name that a program made.
const SHORT_NAME_BYTES: usize = 2;

/// Whether a text is minified, by the name of its file or by its lines: at least four fifths of it are in long lines.
pub(super) fn is_minified(path: Option<&str>, text: &str) -> bool {
    let name = path.and_then(|path| path.rsplit('/').next()).unwrap_or_default().to_ascii_lowercase();
    if [".min.", "-min.", ".bundle.", ".chunk."].iter().any(|mark| name.contains(mark)) {
        return true;
    }
    let long: usize = text.lines().map(str::len).filter(|length| *length > LONG_LINE_BYTES).sum();
    text.len() >= MIN_TEXT_BYTES && long >= text.len() / 5 * 4
}

/// Whether most of the names are too short to be written by hand.
pub(super) fn has_minified_names(outline: &Outline) -> bool {
    let short = outline.symbols.iter().filter(|symbol| symbol.name.len() <= SHORT_NAME_BYTES).count();
    outline.symbols.len() >= MIN_SYMBOLS && short * 2 > outline.symbols.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minified_code_is_recognised_by_name_and_lines() {
        let line = "function a(){return 1}".repeat(40);
        let written = "function submit_order(order) {\n    return order;\n}\n".repeat(200);
        for (path, text, expected) in [
            ("a.js", line.repeat(20), true),
            ("a.js", format!("/* licence */\n{line}\n{line}\n{line}\n{line}\n{line}\n"), true),
            ("jquery.min.js", "x".to_owned(), true),
            ("app.bundle.js", "x".to_owned(), true),
            ("a.js", written.clone(), false),
            ("a.js", format!("{written}{line}"), false),
            ("a.js", line[..500].to_owned(), false),
        ] {
            assert_eq!(is_minified(Some(path), &text), expected, "{path} {}", &text[..1]);
        }
    }
}
