//! Tests with notebooks of several layouts, changed and shown.

use crate::files::notebook::change::{NotebookChange, apply};
use crate::files::notebook::fuzz::notebook as check_properties;
use crate::files::notebook::shape::read;
use crate::files::notebook::show;
use crate::files::notebook::show::CellWindow;

/// The layout that nbformat writes.
const INDENTED_NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aaaa",
   "metadata": {},
   "source": [
    "# Title\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "bbbb",
   "metadata": {"tags":  ["x"]},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "\u001b[31mred\u001b[0m\n",
      "two\n"
     ]
    },
    {
     "data": {
      "image/png": "aGVsbG8=",
      "text/plain": [
       "<Figure>"
      ]
     },
     "metadata": {},
     "output_type": "display_data"
    }
   ],
   "source": [
    "print(1)"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {"language": "python"}
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

const COMPACT_NOTEBOOK: &str = r##"{"cells":[{"cell_type":"code","source":"a","outputs":[],"metadata":{},"execution_count":null}],"nbformat":4,"nbformat_minor":4,"metadata":{}}"##;

fn apply_change(text: &str, change: &NotebookChange<'_>) -> String {
    apply(&read(text).unwrap(), change)
}

#[test]
fn replaced_cell_source_keeps_layout_and_clears_outputs() {
    let new = apply_change(
        INDENTED_NOTEBOOK,
        &NotebookChange::Replace { at: 1, source: "print(2)\n\"é\"", kind: None },
    );
    let outputs = INDENTED_NOTEBOOK.find("\"outputs\": [").unwrap() + "\"outputs\": ".len();
    let end = INDENTED_NOTEBOOK.find("   ],\n   \"source\": [\n    \"print(1)\"").unwrap() + 4;
    let expected = format!("{}[]{}", &INDENTED_NOTEBOOK[..outputs], &INDENTED_NOTEBOOK[end..])
        .replace("\"execution_count\": 3", "\"execution_count\": null")
        .replace("    \"print(1)\"\n", "    \"print(2)\\n\",\n    \"\\\"é\\\"\"\n");
    assert_eq!(new, expected);
    // A file with escapes keeps using escapes.
    let escaped = COMPACT_NOTEBOOK.replace("\"a\"", "\"\\u00e9\"");
    let new = apply_change(&escaped, &NotebookChange::Replace { at: 0, source: "ü😀", kind: None });
    assert_eq!(new, COMPACT_NOTEBOOK.replace("\"a\"", "\"\\u00fc\\ud83d\\ude00\""));
    let new = apply_change(
        INDENTED_NOTEBOOK,
        &NotebookChange::Replace { at: 0, source: "", kind: Some("markdown") },
    );
    assert_eq!(new, INDENTED_NOTEBOOK.replace("[\n    \"# Title\\n\",\n    \"text\"\n   ]", "[]"));
    // A string stays a string, and one line stays one line.
    let new = apply_change(COMPACT_NOTEBOOK, &NotebookChange::Replace { at: 0, source: "b\nc", kind: None });
    assert_eq!(new, COMPACT_NOTEBOOK.replace("\"a\"", "\"b\\nc\""));
}

#[test]
fn changed_cell_kind_gets_matching_fields() {
    let new = apply_change(
        INDENTED_NOTEBOOK,
        &NotebookChange::Replace { at: 1, source: "words", kind: Some("markdown") },
    );
    let place = read(INDENTED_NOTEBOOK).unwrap().cells[1].place.clone();
    let cell = "{\n   \"cell_type\": \"markdown\",\n   \"id\": \"bbbb\",\n   \"metadata\": {\n    \"tags\": [\n     \"x\"\n    ]\n   },\n   \
                \"source\": [\n    \"words\"\n   ]\n  }";
    assert_eq!(
        new,
        format!("{}{cell}{}", &INDENTED_NOTEBOOK[..place.start], &INDENTED_NOTEBOOK[place.end..])
    );
    let new =
        apply_change(INDENTED_NOTEBOOK, &NotebookChange::Replace { at: 0, source: "1", kind: Some("code") });
    let cell = &read(&new).unwrap().cells[0];
    assert_eq!((cell.kind.as_str(), cell.outputs.map(|raw| raw.get())), ("code", Some("[]")));
}

#[test]
fn inserted_or_deleted_cell_keeps_other_bytes() {
    let new = apply_change(INDENTED_NOTEBOOK, &NotebookChange::Insert { at: 1, source: "x", kind: "code" });
    let notebook = read(&new).unwrap();
    let id = notebook.cells[1].id.clone().unwrap();
    let cell = format!(
        "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{id}\",\n   \"metadata\": {{}},\n   \
         \"outputs\": [],\n   \"source\": [\n    \"x\"\n   ]\n  }},\n"
    );
    let at = INDENTED_NOTEBOOK.find("  {\n   \"cell_type\": \"code\"").unwrap();
    assert_eq!(new, format!("{}{cell}{}", &INDENTED_NOTEBOOK[..at], &INDENTED_NOTEBOOK[at..]));
    // After the cell is deleted again, the file equals the original.
    assert_eq!(apply_change(&new, &NotebookChange::Delete { at: 1 }), INDENTED_NOTEBOOK);
    for at in [0, 2] {
        let new = apply_change(INDENTED_NOTEBOOK, &NotebookChange::Insert { at, source: "x", kind: "raw" });
        assert_eq!(read(&new).unwrap().cells[at].kind, "raw");
        assert_eq!(apply_change(&new, &NotebookChange::Delete { at }), INDENTED_NOTEBOOK);
    }
    // If the format has no ids, none is created.
    let new =
        apply_change(COMPACT_NOTEBOOK, &NotebookChange::Insert { at: 1, source: "m", kind: "markdown" });
    let cell = r#",{"cell_type":"markdown","metadata":{},"source":["m"]}]"#;
    assert_eq!(new, COMPACT_NOTEBOOK.replacen("],\"nbformat\"", &format!("{cell},\"nbformat\""), 1));
    let empty = apply_change(COMPACT_NOTEBOOK, &NotebookChange::Delete { at: 0 });
    assert!(empty.starts_with("{\"cells\":[],"));
    assert_eq!(
        read(&apply_change(&empty, &NotebookChange::Insert { at: 0, source: "", kind: "raw" }))
            .unwrap()
            .cells
            .len(),
        1
    );
}

#[test]
fn notebook_cells_are_shown_with_bounded_outputs() {
    let all = CellWindow { first: 1, limit: 9, largest: 1_000_000 };
    let shown = show::read(INDENTED_NOTEBOOK, &all).unwrap();
    assert_eq!(
        shown.text,
        "<cell number=0 id=\"aaaa\" type=markdown>\n# Title\ntext\n</cell>\n\
         <cell number=1 id=\"bbbb\" type=code run=3>\nprint(1)\n</cell>\n<output>\nred\ntwo\n</output>\n\
         <output>\n<Figure>\n[image/png, 10 bytes as text]\n</output>\n"
    );
    assert_eq!((shown.total, shown.last, shown.cut), (2, 2, false));
    let huge = INDENTED_NOTEBOOK.replace("two\\n", &"y".repeat(3_000_000));
    let shown = show::read(&huge, &all).unwrap();
    assert!(shown.text.len() < 20_000 && shown.text.contains("[cut: 2992004 more characters]") && shown.cut);
    let one = show::read(INDENTED_NOTEBOOK, &CellWindow { first: 2, limit: 1, ..all }).unwrap();
    assert!(one.text.starts_with("<cell number=1"));
    for (text, expected_text) in [
        ("[]", "not a JSON object"),
        ("{}", "no cells"),
        ("{\"cells\": {}}", "no list"),
        ("{\"cells\": [1]}", "cell 0"),
        ("{\"cells\": [{}]}", "cell_type"),
        ("{\"cells\": [{\"cell_type\": \"code\", \"source\": 1}]}", "source of cell 0"),
        (&"[".repeat(100_000), "JSON"),
        (&format!("{{\"cells\": {}", "[".repeat(100_000)), "JSON"),
    ] {
        let why = show::read(text, &all).unwrap_err();
        assert!(why.contains(expected_text), "{why}");
    }
}

#[test]
fn notebook_edit_properties_hold_for_every_layout() {
    let tabs = INDENTED_NOTEBOOK.replace("\n ", "\n\t");
    let windows = INDENTED_NOTEBOOK.replace('\n', "\r\n");
    for text in [
        INDENTED_NOTEBOOK,
        COMPACT_NOTEBOOK,
        &tabs,
        &windows,
        "{\"cells\": [ ] }",
        "{\"cells\":[{\"cell_type\":\"raw\"}]}",
    ] {
        for what in 0..4 {
            for which in 0..3 {
                check_properties(&[&[what, which], text.as_bytes()].concat());
            }
        }
    }
}
