//! Extracts the text of a PDF, page by page.

use std::io::Write;
use std::ops::RangeInclusive;

use lopdf::{Document, LoadOptions};
use serde_json::json;

/// Bytes of one stream after decompression.
const MAX_STREAM_BYTES: usize = 64 << 20;
/// Bytes of text of one page.
const MAX_PAGE_BYTES: usize = 200_000;

/// Writes a line `{"pages": COUNT}` and then one `{"page": NUMBER, "text": …}` for each requested page (numbers
/// from 1). A page that cannot be read has an `error` instead.
pub(super) fn write(bytes: &[u8], wanted: RangeInclusive<u32>, out: &mut dyn Write) -> Result<(), String> {
    let options = LoadOptions { max_decompressed_size: Some(MAX_STREAM_BYTES), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(bytes, options)
        .map_err(|error| format!("it cannot be read as a PDF: {error}"))?;
    if document.is_encrypted() {
        return Err("it is encrypted".into());
    }
    let pages = document.get_pages();
    let mut line = |value: serde_json::Value| writeln!(out, "{value}").map_err(|error| error.to_string());
    line(json!({ "pages": pages.len() }))?;
    for number in pages.keys().copied().filter(|number| wanted.contains(number)) {
        line(match document.extract_text_with_limit(&[number], MAX_STREAM_BYTES) {
            Ok(mut text) => {
                if text.len() > MAX_PAGE_BYTES {
                    text.truncate(text.floor_char_boundary(MAX_PAGE_BYTES));
                    text.push_str("\n[the page is cut here]");
                }
                json!({ "page": number, "text": text })
            }
            Err(error) => json!({ "page": number, "error": error.to_string() }),
        })?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use lopdf::content::{Content, Operation};
    use lopdf::{Document, Object, Stream, dictionary};

    use super::*;

    /// A PDF with these texts on its pages.
    pub(crate) fn sample(pages: &[&str]) -> Vec<u8> {
        let mut document = Document::with_version("1.5");
        let tree = document.new_object_id();
        let font = document
            .add_object(dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier" });
        let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
        let mut kids = Vec::new();
        for text in pages {
            let operations = vec![
                Operation::new("BT", vec![]),
                Operation::new("Tf", vec!["F1".into(), 12.into()]),
                Operation::new("Td", vec![50.into(), 700.into()]),
                Operation::new("Tj", vec![Object::string_literal(*text)]),
                Operation::new("ET", vec![]),
            ];
            let content = Content { operations }.encode().unwrap();
            let content = document.add_object(Stream::new(dictionary! {}, content));
            let page = dictionary! { "Type" => "Page", "Parent" => tree, "Contents" => content, "Resources" => resources };
            kids.push(document.add_object(page).into());
        }
        let count = i64::try_from(pages.len()).unwrap();
        let media: Vec<Object> = vec![0.into(), 0.into(), 595.into(), 842.into()];
        let root = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count, "MediaBox" => media };
        document.objects.insert(tree, Object::Dictionary(root));
        let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
        document.trailer.set("Root", catalog);
        document.compress();
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        bytes
    }

    fn lines(bytes: &[u8], wanted: RangeInclusive<u32>) -> Result<Vec<serde_json::Value>, String> {
        let mut out = Vec::new();
        write(bytes, wanted, &mut out)?;
        Ok(out
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect())
    }

    #[test]
    fn pdf_text_is_returned_per_page() {
        let bytes = sample(&["Hello World", "Second", "Third"]);
        let page_lines = lines(&bytes, 2..=9).unwrap();
        assert_eq!(page_lines[0], json!({ "pages": 3 }));
        assert_eq!(
            (page_lines.len(), page_lines[1]["page"].as_u64(), page_lines[2]["page"].as_u64()),
            (3, Some(2), Some(3))
        );
        assert!(page_lines[1]["text"].as_str().unwrap().contains("Second"), "{page_lines:?}");
    }

    #[test]
    fn broken_pdf_is_reported_as_error() {
        for bytes in [&b"%PDF-1.4\n"[..], b"", b"%PDF-1.4\ntrailer<</Root 1 0 R>>\n%%EOF", b"hello"] {
            assert!(
                lines(bytes, 1..=9).is_err_and(|why| !why.is_empty())
                    || lines(bytes, 1..=9).is_ok_and(|page_lines| page_lines.len() == 1)
            );
        }
        let whole = sample(&["Hello"]);
        for cut in (0..whole.len()).step_by(17) {
            // A truncated PDF never makes the parser hang or panic.
            let _ = lines(&whole[..cut], 1..=9);
        }
    }
}
