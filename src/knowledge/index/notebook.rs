//! The cells of a Jupyter notebook (nbformat 3 and 4) as one text. Outputs are left out: they are results, and pictures
//! in them are many times larger than the notebook's code.

use std::ops::Range;

use serde::{Deserialize, Deserializer};

use crate::graph::{CutPoint, Mention, Outline, Symbol, WorkLimit, language_of_path, outline};

/// Largest notebook that is read, in bytes. Most of it are outputs.
pub(super) const MAX_NOTEBOOK_BYTES: u64 = 16 * 1024 * 1024;
/// Largest text of the cells of one notebook.
const MAX_CELLS_BYTES: usize = 1024 * 1024;

/// The cells of a notebook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notebook {
    /// The sources of all cells, each after a line that begins with `# %%`.
    pub text: String,
    /// The language of the cells with code.
    pub language: Option<&'static str>,
    cells: Vec<NotebookCell>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NotebookCell {
    /// The beginning of the line before the cell.
    start: usize,
    source: Range<usize>,
    is_code: bool,
}

/// Programs write notebooks with `null` or other values where the format wants an object. Such a part is left out, so that
/// the other cells are read.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lenient<T> {
    Valid(T),
    Other(serde::de::IgnoredAny),
}

fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(input: D) -> Result<T, D::Error> {
    Ok(match Lenient::deserialize(input)? {
        Lenient::Valid(value) => value,
        Lenient::Other(_) => T::default(),
    })
}

fn lenient_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<Vec<T>, D::Error> {
    let list: Option<Vec<Lenient<T>>> = Option::deserialize(input)?;
    let valid = |entry| match entry {
        Lenient::Valid(value) => Some(value),
        Lenient::Other(_) => None,
    };
    Ok(list.into_iter().flatten().filter_map(valid).collect())
}

#[derive(Deserialize)]
struct NotebookFile {
    #[serde(default, deserialize_with = "lenient_list")]
    cells: Vec<CellFile>,
    #[serde(default, deserialize_with = "lenient_list")]
    worksheets: Vec<Worksheet>,
    #[serde(default, deserialize_with = "lenient")]
    metadata: NotebookMetadata,
}

/// The cells of nbformat 3.
#[derive(Deserialize)]
struct Worksheet {
    #[serde(default, deserialize_with = "lenient_list")]
    cells: Vec<CellFile>,
}

#[derive(Deserialize)]
struct CellFile {
    #[serde(default, deserialize_with = "lenient")]
    cell_type: String,
    #[serde(default, alias = "input")]
    source: CellSource,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CellSource {
    One(String),
    Lines(Vec<String>),
    Other(serde::de::IgnoredAny),
}

impl Default for CellSource {
    fn default() -> Self {
        Self::One(String::new())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NotebookMetadata {
    #[serde(deserialize_with = "lenient")]
    language_info: LanguageInfo,
    #[serde(deserialize_with = "lenient")]
    kernelspec: KernelSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LanguageInfo {
    #[serde(deserialize_with = "lenient")]
    file_extension: String,
    #[serde(deserialize_with = "lenient")]
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KernelSpec {
    #[serde(deserialize_with = "lenient")]
    language: String,
}

/// Whether a path is that of a notebook.
pub(super) fn is_notebook(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("ipynb"))
}

/// The cells of a notebook, or `None` if the text is none.
pub(super) fn read(text: &str) -> Option<Notebook> {
    let file: NotebookFile = serde_json::from_str(text).ok()?;
    let language = language(&file.metadata);
    let mut notebook = Notebook { language, ..Notebook::default() };
    for cell in file.worksheets.into_iter().flat_map(|sheet| sheet.cells).chain(file.cells) {
        let source = match cell.source {
            CellSource::One(source) => source,
            CellSource::Lines(lines) => lines.concat(),
            CellSource::Other(_) => String::new(),
        };
        if notebook.text.len() + source.len() > MAX_CELLS_BYTES {
            break;
        }
        let start = notebook.text.len();
        let is_code = cell.cell_type == "code";
        match is_code {
            true => notebook.text.push_str("# %%\n"),
            false => notebook.text.push_str(&format!("# %% [{}]\n", cell.cell_type)),
        }
        let source_start = notebook.text.len();
        notebook.text.push_str(&source);
        notebook.cells.push(NotebookCell { start, source: source_start..notebook.text.len(), is_code });
        notebook.text.push_str("\n\n");
    }
    (!notebook.cells.is_empty()).then_some(notebook)
}

fn language(metadata: &NotebookMetadata) -> Option<&'static str> {
    let extension = metadata.language_info.file_extension.trim_start_matches('.');
    let by_name = |name: &str| match name.to_ascii_lowercase().as_str() {
        "python" | "ipython" => Some("python"),
        "typescript" => Some("typescript"),
        "javascript" => Some("javascript"),
        "rust" => Some("rust"),
        "java" => Some("java"),
        "go" => Some("go"),
        "c++" | "cpp" => Some("cpp"),
        _ => None,
    };
    language_of_path(&format!("cell.{extension}"))
        .or_else(|| by_name(&metadata.language_info.name))
        .or_else(|| by_name(&metadata.kernelspec.language))
}

impl Notebook {
    /// The outline of all cells: of code in their language, of texts as Markdown. `None` if the limit was reached.
    pub fn outline(&self, limit: &WorkLimit) -> Option<Outline> {
        let mut all = Outline::default();
        for cell in &self.cells {
            all.cuts.push(CutPoint { at: cell.start, depth: 0 });
            let language = if cell.is_code { self.language } else { Some("markdown") };
            let source = &self.text[cell.source.clone()];
            let Some(part) = language.and_then(|language| outline(language, source, limit)) else {
                if limit.is_reached() {
                    return None;
                }
                continue;
            };
            let (offset, symbols) = (cell.source.start, all.symbols.len());
            if all.description.is_empty() {
                all.description = part.description;
            }
            all.symbols.extend(part.symbols.into_iter().map(|symbol| Symbol {
                start: symbol.start + offset,
                end: symbol.end + offset,
                parent: symbol.parent.map(|parent| parent + symbols),
                ..symbol
            }));
            all.mentions.extend(part.mentions.into_iter().map(|mention| Mention {
                at: mention.at + offset,
                symbol: mention.symbol.map(|symbol| symbol + symbols),
                ..mention
            }));
            let cuts = part.cuts.into_iter().filter(|cut| cut.at > 0);
            all.cuts
                .extend(cuts.map(|cut| CutPoint { at: cut.at + offset, depth: cut.depth.saturating_add(1) }));
        }
        Some(all)
    }

    /// The number of the cell at this byte, from 1, as the offset of Read counts them.
    pub fn cell_at(&self, at: usize) -> u32 {
        let number = self.cells.partition_point(|cell| cell.start <= at).max(1);
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn cells_of_all_formats_become_text_without_outputs() {
        let new = r##"{"cells": [
            {"cell_type": "markdown", "source": ["# Load\n", "Reads rows."]},
            {"cell_type": "code", "source": "def load_rows():\n    pass", "outputs": [{"data": {"image/png": "iVBORw0KGgo"}}]},
            {"cell_type": "code", "source": 5}, {"cell_type": "raw"}],
            "metadata": {"language_info": {"file_extension": ".py"}}}"##;
        let notebook = read(new).expect("a notebook");
        assert!(notebook.text.starts_with("# %% [markdown]\n# Load\nReads rows.\n\n# %%\ndef load_rows()"));
        assert!(!notebook.text.contains("iVBOR"));
        assert_eq!(notebook.language, Some("python"));
        let outline = notebook.outline(&WorkLimit::start(&CancellationToken::new())).expect("an outline");
        let symbols: Vec<(&str, u32)> =
            outline.symbols.iter().map(|it| (it.name.as_str(), notebook.cell_at(it.start))).collect();
        assert_eq!(symbols, [("Load", 1), ("load_rows", 2)]);
        let function = &outline.symbols[1];
        assert!(notebook.text[function.start..function.end].starts_with("def load_rows"));

        let old = r#"{"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}],
            "metadata": {"kernelspec": {"language": "Python"}}}"#;
        let notebook = read(old).expect("a notebook");
        assert_eq!((notebook.text.as_str(), notebook.language), ("# %%\nx = 1\n\n", Some("python")));
        let odd = r#"{"cells": [5, null, {"cell_type": null, "source": null}, {"cell_type": "code", "source": "def odd(): pass",
            "metadata": null}], "worksheets": null,
            "metadata": {"language_info": null, "kernelspec": {"language": "python", "name": 3}}}"#;
        let notebook = read(odd).expect("a notebook");
        assert_eq!((notebook.cells.len(), notebook.language), (2, Some("python")));
        assert!(notebook.text.ends_with("# %%\ndef odd(): pass\n\n"), "{}", notebook.text);
        for text in ["", "[]", "{", "{\"cells\": []}", "{\"cells\": 3}", "null"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
