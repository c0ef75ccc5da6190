//! Converts HTML to Markdown.

use std::io::Write;

use htmd::HtmlToMarkdown;

/// Elements without readable text.
const SKIPPED: &[&str] =
    &["script", "style", "noscript", "svg", "iframe", "template", "head", "object", "embed", "canvas"];

/// Writes the page (UTF-8) as Markdown, its title first.
pub(super) fn write(bytes: &[u8], out: &mut dyn Write) -> Result<(), String> {
    let html = String::from_utf8_lossy(bytes);
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    let text = converter.convert(&html).map_err(|error| error.to_string())?;
    out.write_all(text.as_bytes()).map_err(|error| error.to_string())
}
