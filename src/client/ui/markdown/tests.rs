use crate::terminal::style::{StyledLine, Tone};
use crate::ui::markdown::*;
use proptest::prelude::*;

fn render_lines(text: &str, columns: usize) -> Vec<String> {
    lines(text, columns).iter().map(StyledLine::plain).collect()
}

const ANSWER: &str = "# Why load fails\n\nThe loader panics on a **missing** file, see `src/lib.rs:3`. Return the error, so \
                      that the caller can decide:\n1. Return `io::Result<String>` instead of calling unwrap()\n2. Handle \
                      it in main\n   - print the path\n\n```rust\nfn load() {}\n```\n\n| file | lines |\n|---|--:|\n| \
                      src/lib.rs | 3 |\n| a | 12 |\n\n> quoted\n> twice\n\nSee [the guide](https://a.org/x) and \
                      https://b.org.\n";

#[test]
fn answer_is_laid_out_like_the_proposed_screen() {
    assert_eq!(
        render_lines(ANSWER, 60),
        [
            "Why load fails",
            "",
            "The loader panics on a missing file, see src/lib.rs:3.",
            "Return the error, so that the caller can decide:",
            "1. Return io::Result<String> instead of calling unwrap()",
            "2. Handle it in main",
            "   - print the path",
            "",
            "    fn load() {}",
            "",
            " file        lines",
            " ──────────  ─────",
            " src/lib.rs      3",
            " a              12",
            "",
            "│ quoted twice",
            "",
            "See the guide (https://a.org/x) and https://b.org.",
        ]
    );
}

#[test]
fn list_items_wrap_with_hanging_indent() {
    assert_eq!(
        render_lines("- one two three four\n- five\n  1. six seven eight", 14),
        ["- one two", "  three four", "- five", "  1. six seven", "     eight"]
    );
    assert_eq!(render_lines("- [x] done\n- [ ] open", 30), ["- [x] done", "- [ ] open"]);
}

#[test]
fn struck_out_text_keeps_its_marks() {
    assert_eq!(render_lines("a ~~x~~ b", 40), ["a ~~x~~ b"]);
}

#[test]
fn table_wraps_cells_and_becomes_list_when_too_narrow() {
    let table = "| name | what it does |\n|---|---|\n| alpha | returns the error to the caller |\n";
    assert_eq!(
        render_lines(table, 26),
        [
            " name   what it does",
            " ─────  ──────────────────",
            " alpha  returns the error",
            "        to the caller"
        ]
    );
    let wide = "| a | b | c | d |\n|---|---|---|---|\n| first | second | thirds | fourth |\n";
    assert_eq!(render_lines(wide, 20), ["a: first", "b: second", "c: thirds", "d: fourth"]);
}

#[test]
fn code_is_coloured_by_language_and_not_wrapped() {
    let code = lines("```rust\nlet x = \"long text that is wider\"; // note\n```\n", 20);
    let tones: Vec<Tone> = code[0].0.iter().map(|(tone, _)| *tone).collect();
    assert!(tones.contains(&Tone::Keyword) && tones.contains(&Tone::Literal) && tones.contains(&Tone::Dim));
    assert_eq!(code[0].plain(), "    let x = \"long text that is wider\"; // note");
    let diff = lines("```diff\n-a\n+b\n```", 20);
    assert!(diff[0].0.iter().any(|(tone, _)| *tone == Tone::Bad), "{diff:?}");
    assert_eq!(render_lines("```nosuch\nx\n```", 20), ["    x"]);
}

#[test]
fn control_characters_in_markdown_are_escaped_after_decoding() {
    let text = "a &#27;[2J &#x202e; **\u{1b}[1m** `\u{9b}2J`\n\n```sh\necho \u{1b}\n```\n";
    let shown = render_lines(text, 200).join("\n");
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{shown:?}");
    assert!(shown.contains("⟦ESC⟧[2J") && shown.contains("⟦U+202E⟧"), "{shown}");
}

#[test]
fn complete_units_are_returned_once_and_the_rest_stays_unfinished() {
    let mut stream = MarkdownStream::default();
    let texts = |lines: Vec<StyledLine>| lines.iter().map(StyledLine::plain).collect::<Vec<_>>();
    assert!(stream.push("A para", 40).is_empty());
    assert_eq!(texts(stream.tail(40)), ["A para"]);
    assert!(stream.push("graph\n#", 40).is_empty(), "it could become #5");
    assert_eq!(texts(stream.push(" Head\n", 40)), ["A paragraph", "Head"]);
    assert!(stream.push("\n- one\n- tw", 40).is_empty(), "only complete lines end a unit");
    assert_eq!(texts(stream.push("o\n", 40)), ["", "- one"]);
    assert_eq!(texts(stream.push("\n```\nx\ny", 40)), ["- two", "", "    x"]);
    assert_eq!(texts(stream.tail(40)), ["    y"]);
    assert_eq!(texts(stream.push("\n```\nend", 40)), ["    y"]);
    assert_eq!(texts(stream.finish(40)), ["", "end"]);
    assert!(stream.tail(40).is_empty());
}

proptest! {
    /// The shown lines do not depend on how the stream splits the text.
    #[test]
    fn parts_of_a_stream_give_the_lines_of_the_whole(cuts in proptest::collection::vec(0usize..460, 0..12)) {
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|end| ANSWER.is_char_boundary(*end)).collect();
        cuts.sort_unstable();
        let mut stream = MarkdownStream::default();
        let (mut found, mut from) = (Vec::new(), 0);
        for end in cuts.into_iter().filter(|end| *end <= ANSWER.len()).chain([ANSWER.len()]) {
            found.extend(stream.push(&ANSWER[from..end], 60));
            from = end;
        }
        found.extend(stream.finish(60));
        let found: Vec<String> = found.iter().map(StyledLine::plain).collect();
        prop_assert_eq!(found, render_lines(ANSWER, 60));
    }

    /// Prose is never wider than the terminal.
    #[test]
    fn markdown_rows_fit_the_terminal(text in "[a-z*_`#|>\\-\n 1.界]{0,200}", columns in 20usize..90) {
        for line in lines(&text, columns) {
            let is_code = line.plain().starts_with("    ") || line.plain().contains("    ");
            prop_assert!(is_code || line.width() <= columns + 1, "{:?}", line);
        }
    }
}

#[test]
fn frame_of_endless_paragraph_lays_out_only_its_end() {
    let mut stream = MarkdownStream::default();
    let text: String = (0..20_000).map(|n| format!("word{n} ")).collect();
    stream.push(&text, 80);
    let frame = stream.frame(80);
    assert!(frame.len() < 200 && frame.last().is_some_and(|line| line.plain().ends_with("word19999")));
    assert!(stream.finish(80).len() > 2_000, "nothing is lost");
}
