//! Properties of notebook changes for any text. The fuzz target and its corpus check them.

use crate::files::notebook::change::{NotebookChange, apply};
use crate::files::notebook::shape::read;
use crate::files::notebook::show;
use crate::files::notebook::show::CellWindow;

/// The first byte selects the operation, the second the cell; the rest is the notebook. A valid notebook is
/// still valid after a change, and bytes outside the cell stay the same.
///
/// # Panics
/// If a property does not hold.
pub(crate) fn notebook(data: &[u8]) {
    let [what, which, text @ ..] = data else { return };
    let text = String::from_utf8_lossy(text);
    let _ = show::read(&text, &CellWindow { first: 1, limit: 100, largest: 100_000 });
    let Ok(notebook) = read(&text) else { return };
    let count = notebook.cells.len();
    let source = "x = 'é'\n\"\\ y";
    let at = usize::from(*which) % (count + 1);
    let change = match what % 4 {
        0 if at < count => NotebookChange::Replace { at, source, kind: None },
        1 if at < count => NotebookChange::Replace { at, source, kind: Some("markdown") },
        2 if at < count => NotebookChange::Delete { at },
        _ => NotebookChange::Insert { at, source, kind: "code" },
    };
    let new = apply(&notebook, &change);
    let after = read(&new).expect("a notebook stays one");
    let (expected, changed) = match change {
        NotebookChange::Replace { at, .. } => (count, Some(at)),
        NotebookChange::Insert { at, .. } => (count + 1, Some(at)),
        NotebookChange::Delete { .. } => (count - 1, None),
    };
    assert_eq!(after.cells.len(), expected);
    if let Some(at) = changed {
        assert_eq!(after.cells[at].source, source);
    }
    let place = |notebook: &crate::files::notebook::shape::Notebook<'_>| notebook.list.clone();
    let (old_list, new_list) = (place(&notebook), place(&after));
    assert_eq!(text[..old_list.start], new[..new_list.start]);
    assert_eq!(text[old_list.end..], new[new_list.end..]);
    // All other cells keep their bytes.
    let bytes = |text: &str, cells: &[crate::files::notebook::shape::NotebookCell<'_>]| -> Vec<String> {
        cells.iter().map(|cell| text[cell.place.clone()].to_owned()).collect()
    };
    let (mut old, mut new) = (bytes(&text, &notebook.cells), bytes(&new, &after.cells));
    match change {
        NotebookChange::Replace { at, .. } => drop((old.remove(at), new.remove(at))),
        NotebookChange::Insert { at, .. } => drop(new.remove(at)),
        NotebookChange::Delete { at } => drop(old.remove(at)),
    }
    assert_eq!(old, new);
}
