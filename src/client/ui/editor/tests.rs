//! Table tests of the input line.

use proptest::prelude::*;

use crate::ui::editor::*;

/// Types `start`, then applies one letter per action, then shows the text with `|` at the cursor.
fn type_and_apply(start: &str, actions: &str) -> String {
    let mut editor = Editor::default();
    editor.insert(start);
    for action in actions.chars() {
        apply(&mut editor, action);
    }
    let (head, tail) = editor.text().split_at(editor.at);
    format!("{head}|{tail}")
}

fn apply(editor: &mut Editor, action: char) {
    match action {
        '<' => editor.left(),
        '>' => editor.right(),
        '^' => editor.up(),
        'v' => editor.down(),
        'h' => editor.home(),
        'e' => editor.end(),
        'b' => editor.backspace(),
        'd' => editor.delete(),
        'w' => editor.delete_word(),
        'u' => editor.delete_to_start(),
        'k' => editor.delete_to_end(),
        't' => drop(editor.take_text()),
        other => editor.insert(&other.to_string()),
    }
}

#[test]
fn editor_keys_behave_like_shell() {
    let check =
        |start, actions, expected| assert_eq!(type_and_apply(start, actions), expected, "{start} {actions}");
    check("abc", "<<b", "|bc");
    check("abc", "hd", "|bc");
    check("one two  ", "w", "one |");
    check("one\u{3000}two", "w", "one\u{3000}|");
    check("世界", "<b", "|界");
    check("ab\ncd", "u", "ab\n|");
    check("ab\ncd", "hk", "ab\n|");
    check("ab\ncd", "^", "ab|\ncd");
    check("a\nlonger", "^", "a|\nlonger");
    check("ab\ncd", "^hv", "ab\n|cd");
    check("a\r\nb\rc", "", "a\nb\nc|");
}

#[test]
fn editor_history_returns_to_draft() {
    let mut editor = Editor::default();
    for text in ["first", "second", "second"] {
        editor.insert(text);
        assert_eq!(editor.take_text(), text);
    }
    editor.insert("draft");
    let mut seen = Vec::new();
    for action in "^^^vvv".chars() {
        apply(&mut editor, action);
        seen.push(editor.text().to_string());
    }
    assert_eq!(seen, ["second", "first", "first", "second", "draft", "draft"]);
}

#[test]
fn long_input_wraps_and_keeps_cursor_visible() {
    let mut editor = Editor::default();
    editor.insert("abcdefgh\n世界世");
    let plain = |rows: Vec<StyledLine>| rows.iter().map(StyledLine::plain).collect::<Vec<_>>();
    let (rows, cursor) = editor.rows("> ", 8, 9);
    assert_eq!(
        (plain(rows), cursor),
        (vec!["> abcde".into(), "  fgh".into(), "  世界".into(), "  世".into()], (3, 4))
    );
    let (rows, cursor) = editor.rows("> ", 8, 2);
    assert_eq!((plain(rows), cursor), (vec!["  世界".into(), "  世".into()], (1, 4)));
    // A word that fits into one row is not broken.
    let mut editor = Editor::default();
    editor.insert("ab cdefgh");
    assert_eq!(plain(editor.rows("> ", 10, 9).0), ["> ab ", "  cdefgh"]);
    let mut editor = Editor::default();
    editor.insert("a\u{1b}");
    assert_eq!(plain(editor.rows("> ", 20, 2).0), ["> a⟦ESC⟧"]);
}

proptest! {
    #[test]
    fn random_key_sequences_keep_editor_consistent(start in "[a世\n ]{0,12}", actions in "[<>^vhebdwukt世x]{0,40}", columns in 3usize..12) {
        let mut editor = Editor::default();
        editor.insert(&start);
        for action in actions.chars() {
            apply(&mut editor, action);
            let (rows, (row, column)) = editor.rows("> ", columns, 3);
            prop_assert!(row < rows.len() && rows.len() <= 3);
            prop_assert!(column <= columns.max(5));
        }
    }
}
