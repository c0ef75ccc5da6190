//! Properties for any text and any line from the daemon, checked by the fuzz targets and their corpus.

use unicode_width::UnicodeWidthStr;

use crate::connection::wire;
use crate::terminal::escape;
use crate::terminal::style::{StyledLine, width};
use crate::ui::markdown::MarkdownStream;
use crate::ui::prompt;
use crate::ui::render::{OutputPiece, Transcript};
use crate::ui::request_list::{ListStyle, RequestList};
use types::event::Event;
use types::invisible_chars::{is_joiner, is_joiner_at};
use types::permission::Mode;

/// Escaping makes any text safe for a terminal. No output moves the cursor, reorders or hides text.
/// Nothing is lost: the original text can be computed from the output.
///
/// # Panics
/// If a property is violated.
pub fn escape(data: &[u8]) {
    let raw = String::from_utf8_lossy(data);
    let (text, line) = (escape::text(&raw), escape::line(&raw));
    check(&text, &['\n', '\t']);
    check(&line, &[]);
    assert_eq!(original(&text), raw);
    assert_eq!(original(&line), raw);
    // Escaping twice changes only the brackets of the names.
    let again = |shown: &str| escape::line(shown).replace("⟦U+27E6⟧", "⟦").replace("⟦U+27E7⟧", "⟧");
    assert_eq!(again(&line), line);
    // A name takes as many columns as it has letters, so no letter is hidden.
    for name in line.split('⟦').skip(1).filter_map(|rest| rest.split('⟧').next()) {
        assert_eq!(name.width(), name.len(), "{name:?}");
    }

    let exact = escape::exact_lines(&raw);
    for shown in &exact {
        check(shown, &[]);
        assert!(!shown.ends_with(' '), "{shown:?} ends in a blank");
    }
    let read_back: Vec<String> = exact.iter().map(|shown| original(shown)).collect();
    assert_eq!(read_back.join("\n"), raw);
}

/// For any lines from the daemon, the printed text contains no terminal control sequence, and no row is wider than
/// allowed. The first byte is the width. Every further line is one message, or one event without its frame.
///
/// # Panics
/// If a property is violated.
pub fn screen(data: &[u8]) {
    let [columns, bytes @ ..] = data else { return };
    let columns = usize::from(*columns);
    let mut transcript = Transcript::with_input();
    let mut markdown = MarkdownStream::default();
    let check_lines = |lines: &[StyledLine]| lines.iter().for_each(|line| check(&line.plain(), &['\t']));
    for line in bytes.split(|byte| *byte == b'\n') {
        let framed = [&b"{\"method\":\"session.event\",\"params\":{\"result\":"[..], line, b"}}"].concat();
        let message = wire::parse(line).into_iter().chain(wire::parse(&framed));
        for received in message.filter_map(|message| match message {
            wire::Message::Event(received) => received.event,
            wire::Message::Reply { .. }
            | wire::Message::Session(_)
            | wire::Message::Restarting(_)
            | wire::Message::Other => None,
        }) {
            if let Event::PermissionRequested { request, .. } = &received.event {
                let mut list = RequestList::default();
                list.push(request.clone());
                let shown = prompt::question(request).into_iter().chain(list.answer_lines());
                shown.for_each(|line| check_line(&line, columns));
                let style = ListStyle {
                    columns,
                    rows: 20,
                    mode: Mode::Default,
                    is_answerable: true,
                    has_draft: false,
                    can_all: false,
                };
                for row in list.rows(style) {
                    check(&row.plain(), &[]);
                    assert!(row.width() <= columns.max(4), "{row:?} is wider than {columns}");
                }
                for row in prompt::rows(request, columns) {
                    assert!(width(&row.plain()) <= columns.max(2), "{row:?} is wider than {columns}");
                }
            }
            for piece in transcript.render_event(&received) {
                match piece {
                    OutputPiece::Text(text) => {
                        check(&text, &['\n', '\t']);
                        check_lines(&markdown.push(&text, columns));
                        check_lines(&markdown.tail(columns));
                    }
                    OutputPiece::Line(line) => check_line(&line, columns),
                    OutputPiece::Folded { shown, full } => {
                        shown.iter().chain(&full).for_each(|line| check_line(line, columns));
                    }
                    OutputPiece::Break => check_lines(&markdown.finish(columns)),
                }
            }
        }
    }
}

fn check_line(line: &StyledLine, columns: usize) {
    check(&line.plain(), &['\t']);
    let ink = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let rows = line.wrap(columns);
    for row in &rows {
        assert!(width(&row.plain()) <= columns.max(2), "{row:?} is wider than {columns}");
    }
    let printed: String = rows.iter().map(StyledLine::plain).collect();
    assert_eq!(ink(&printed), ink(&line.plain()), "wrapping lost something");
}

/// Checks that there is no control character except `allowed`, and no invisible character except joiners of words and
/// emoji.
fn check(shown: &str, allowed: &[char]) {
    let is_text = |index: usize, c: char| {
        let is_at_end = index == 0 || index + c.len_utf8() == shown.len();
        is_joiner_at(shown, index) || is_at_end && is_joiner(c)
    };
    for (index, c) in shown.char_indices().filter(|(_, c)| !allowed.contains(c)) {
        let is_control = matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}');
        // Unicode's `Bidi_Control`, and its two separators.
        let reorders = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}');
        // Characters of `Default_Ignorable_Code_Point` that can hide text; the emoji selector is
        // allowed.
        let hides = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
            | '\u{fe00}'..='\u{fe0e}' | '\u{e0000}'..='\u{e0fff}')
            && !is_text(index, c);
        assert!(!is_control && !reorders && !hides, "{c:?} is left in {shown:?}");
    }
}

/// Computes the original text from the escaped one.
fn original(shown: &str) -> String {
    let mut raw = String::new();
    let mut rest = shown;
    while let Some((before, name)) = rest.split_once('⟦') {
        raw.push_str(before);
        let (name, after) = name.split_once('⟧').expect("a bracket that is open is closed");
        if let Some(count) = name.strip_prefix("SP×") {
            raw.extend(std::iter::repeat_n(' ', count.parse().expect("a number of blanks")));
            rest = after;
            continue;
        }
        raw.push(match name {
            "NUL" => '\0',
            "BEL" => '\u{7}',
            "BS" => '\u{8}',
            "TAB" => '\t',
            "LF" => '\n',
            "CR" => '\r',
            "ESC" => '\u{1b}',
            "SP" => ' ',
            "DEL" => '\u{7f}',
            other => {
                let code = other.strip_prefix("U+").expect("a number in a name");
                let code = u32::from_str_radix(code, 16).expect("hexadecimal");
                char::from_u32(code).expect("a character")
            }
        });
        rest = after;
    }
    assert!(!rest.contains('⟧'), "{shown:?} closes what was not opened");
    raw + rest
}
