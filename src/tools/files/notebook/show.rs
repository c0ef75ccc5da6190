//! The answer of Read for a notebook: its cells with sources and outputs, bounded.

use crate::terminal_text::shown_text;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::files::notebook::shape;
use crate::files::notebook::shape::{NotebookCell, NotebookText};

/// Characters of one source and of one output that are shown.
const MAX_SOURCE_CHARS: usize = 40_000;
const MAX_OUTPUT_CHARS: usize = 8_000;
/// Outputs of one cell that are shown.
const MAX_OUTPUTS: usize = 50;

/// The requested cells, and the size of the answer.
pub(crate) struct CellWindow {
    /// The first cell, from 1.
    pub(crate) first: u64,
    pub(crate) limit: u64,
    /// Approximate size of the answer in bytes.
    pub(crate) largest: usize,
}

/// The shown part of a notebook.
#[derive(Debug)]
pub(crate) struct NotebookExcerpt {
    pub(crate) text: String,
    pub(crate) total: u64,
    /// The last cell that is shown, from 1; 0 if none is.
    pub(crate) last: u64,
    /// Whether a part of these cells was left out.
    pub(crate) cut: bool,
}

/// Shows a notebook. The error describes the problem as a sentence fragment.
pub(crate) fn read(text: &str, window: &CellWindow) -> Result<NotebookExcerpt, String> {
    let notebook = shape::read(text)?;
    let total = notebook.cells.len() as u64;
    let mut shown = NotebookExcerpt { text: String::new(), total, last: 0, cut: false };
    let from = usize::try_from(window.first.max(1) - 1).unwrap_or(usize::MAX);
    let limit = usize::try_from(window.limit).unwrap_or(usize::MAX);
    for (at, cell) in notebook.cells.iter().enumerate().skip(from).take(limit) {
        if shown.text.len() >= window.largest {
            break;
        }
        show(&mut shown, at, cell, &notebook.language);
        shown.last = at as u64 + 1;
    }
    Ok(shown)
}

fn show(shown: &mut NotebookExcerpt, at: usize, cell: &NotebookCell<'_>, language: &str) {
    let id = cell.id.clone().unwrap_or_else(|| format!("cell-{at}"));
    let kind = match cell.kind.as_str() {
        "code" if language != "python" => format!("code language={language:?}"),
        kind => kind.to_owned(),
    };
    let count = cell.execution_count.map_or(String::new(), |count| format!(" run={count}"));
    shown.text.push_str(&format!("<cell number={at} id={id:?} type={kind}{count}>\n"));
    push(shown, &cell.source, MAX_SOURCE_CHARS);
    shown.text.push_str("</cell>\n");
    let outputs: Vec<&RawValue> =
        cell.outputs.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    for raw in outputs.iter().take(MAX_OUTPUTS) {
        shown.text.push_str("<output>\n");
        output(shown, raw);
        shown.text.push_str("</output>\n");
    }
    if let Some(more) = outputs.len().checked_sub(MAX_OUTPUTS).filter(|more| *more > 0) {
        shown.cut = true;
        shown.text.push_str(&format!("[{more} more outputs]\n"));
    }
}

fn push(shown: &mut NotebookExcerpt, text: &str, longest: usize) {
    match text.char_indices().nth(longest) {
        None => shown.text.push_str(text),
        Some((at, _)) => {
            shown.cut = true;
            let more = text[at..].chars().count();
            shown.text.push_str(&format!("{}\n[cut: {more} more characters]", &text[..at]));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        shown.text.push('\n');
    }
}

/// An output as nbformat 4 describes it.
#[derive(Deserialize)]
struct CellOutput<'t> {
    output_type: Option<String>,
    #[serde(borrow)]
    text: Option<&'t RawValue>,
    #[serde(borrow)]
    data: Option<&'t RawValue>,
    ename: Option<String>,
    evalue: Option<String>,
    traceback: Option<NotebookText>,
}

fn output(shown: &mut NotebookExcerpt, raw: &RawValue) {
    let Ok(output) = serde_json::from_str::<CellOutput<'_>>(raw.get()) else {
        shown.cut = true;
        shown.text.push_str("[an output that cannot be read]\n");
        return;
    };
    if output.output_type.as_deref() == Some("error") {
        let (name, value) = (output.ename.unwrap_or_default(), output.evalue.unwrap_or_default());
        push(shown, &format!("{name}: {value}"), MAX_OUTPUT_CHARS);
        let trace = match output.traceback {
            Some(NotebookText::Many(lines)) => lines.join("\n"),
            Some(NotebookText::One(text)) => text,
            None => String::new(),
        };
        push(shown, &shown_text(&trace).text, MAX_OUTPUT_CHARS);
        return;
    }
    if let Some(text) = shape::lines(output.text) {
        push(shown, &shown_text(&text).text, MAX_OUTPUT_CHARS);
    }
    let Some(data) = output.data else { return };
    let Ok(data) = serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(data.get()) else {
        return;
    };
    // Show one form only: the most readable one.
    let text = ["text/markdown", "text/plain", "text/latex", "text/html", "application/json"]
        .iter()
        .find_map(|kind| data.get(*kind));
    if let Some(raw) = text {
        let text = shape::lines(Some(raw)).unwrap_or_else(|| raw.get().to_owned());
        push(shown, &shown_text(&text).text, MAX_OUTPUT_CHARS);
    }
    for (kind, raw) in &data {
        if !kind.starts_with("text/") && kind != "application/json" {
            let kind: String = kind.chars().filter(|c| !c.is_control()).take(80).collect();
            shown.text.push_str(&format!("[{kind}, {} bytes as text]\n", raw.get().len()));
        }
    }
}
