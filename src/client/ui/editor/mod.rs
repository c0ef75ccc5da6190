//! The input line: one or several lines, with a history. Pure, except for the user's external editor.

mod draft;

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::process::Stdio;

use tokio::process::Command;

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone, width};
pub use crate::ui::editor::draft::{Draft, PastedPicture};
use crate::ui::editor::draft::{Paste, with_pastes};

/// Maximum number of remembered inputs.
const MAX_HISTORY: usize = 200;

/// A text with a cursor.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    text: String,
    /// Byte position of the cursor, always on a character boundary.
    at: usize,
    history: Vec<String>,
    /// Index of the shown history entry; the history's length if none is shown.
    shown: usize,
    /// The text that the user was typing when the history was opened.
    draft: String,
    /// The last deleted text.
    killed: String,
    /// Long pastes. The text contains a marker for each of them.
    pastes: Vec<Paste>,
    /// Pictures from the clipboard that were not sent. The text contains a marker for most of them.
    pictures: Vec<PastedPicture>,
    /// The number of pictures so far, so that a marker in the history never means another picture.
    picture_count: usize,
}

/// A paste with more lines or characters is shown as a marker.
const MAX_PASTED_LINES: usize = 10;
const MAX_PASTED_CHARS: usize = 2_000;

/// Maximum number of pictures that wait to be sent, because each may have many bytes.
const MAX_PICTURES: usize = 20;

impl Editor {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes the text with all pastes, adds it to the history and leaves the line empty.
    pub fn take_text(&mut self) -> String {
        let text = self.take_draft();
        self.remember(&text);
        self.clear();
        text
    }

    /// Takes the text with all pastes and leaves the line empty.
    pub fn take_draft(&mut self) -> String {
        let text = self.whole_text();
        self.clear();
        text
    }

    /// The text with all pastes.
    pub fn whole_text(&self) -> String {
        with_pastes(&self.text, &self.pastes)
    }

    /// Takes the text with its pastes and pictures, adds it to the history and leaves the line empty.
    pub fn take_input(&mut self) -> Draft {
        let (pictures, others) = std::mem::take(&mut self.pictures)
            .into_iter()
            .partition(|picture| self.text.contains(&picture.marker));
        self.pictures = others;
        let draft = Draft { text: self.text.clone(), pastes: std::mem::take(&mut self.pastes), pictures };
        self.remember(&draft.whole_text());
        self.clear();
        draft
    }

    /// Puts a text with its pastes and pictures back.
    pub fn restore(&mut self, draft: Draft) {
        let Draft { text, pastes, pictures } = draft;
        self.clear();
        self.insert(&text);
        self.pastes = pastes;
        self.pictures.extend(pictures);
    }

    /// Adds a text to the history.
    pub fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || self.history.last().is_some_and(|last| last == text) {
            return;
        }
        self.history.push(text.to_owned());
        if self.history.len() > MAX_HISTORY {
            self.history.remove(0);
        }
        if self.shown + 1 == self.history.len() {
            self.shown = self.history.len();
        }
    }

    /// Adds older texts to the history, oldest first.
    pub fn remember_older(&mut self, mut older: Vec<String>) {
        let mut texts: HashSet<String> = self.history.iter().cloned().collect();
        // Keep the newest of several equal texts, because a search finds it first there.
        older.reverse();
        older.retain(|text| !text.trim().is_empty() && texts.insert(text.clone()));
        older.reverse();
        older.append(&mut self.history);
        self.history = older;
        self.shown = self.history.len();
    }

    /// The newest text of the history that contains `query`, after skipping the `skip` newest matches.
    pub fn search(&self, query: &str, skip: usize) -> Option<&str> {
        let query = query.to_lowercase();
        let fits = |text: &&String| text.to_lowercase().contains(&query);
        self.history.iter().rev().filter(fits).nth(skip).map(String::as_str)
    }

    /// Inserts a paste. A long paste becomes a marker.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.trim_end_matches('\n').split('\n').count();
        if lines <= MAX_PASTED_LINES && text.chars().count() <= MAX_PASTED_CHARS {
            return self.insert(&text);
        }
        let marker =
            format!("[paste {}: {lines} line{}]", self.pastes.len() + 1, if lines == 1 { "" } else { "s" });
        self.insert(&marker);
        self.pastes.push(Paste { marker, text });
    }

    /// Inserts the marker of a picture, which is sent with the text.
    pub fn paste_picture(&mut self, data: Vec<u8>) {
        self.picture_count += 1;
        let name = self.picture_count.to_string();
        let marker = format!("[image {name}: {} KB]", data.len().div_ceil(1_000));
        self.insert(&marker);
        self.pictures.push(PastedPicture { marker, name, data });
        if self.pictures.len() > MAX_PICTURES {
            self.pictures.remove(0);
        }
    }

    /// Position of the cursor, in bytes.
    pub fn cursor(&self) -> usize {
        self.at
    }

    /// Replaces the text from `from` to the cursor.
    pub fn replace_before_cursor(&mut self, from: usize, text: &str) {
        if self.text.is_char_boundary(from) && from <= self.at {
            self.text.replace_range(from..self.at, text);
            self.at = from + text.len();
        }
    }

    pub fn set_text(&mut self, text: &str) {
        self.clear();
        self.insert(text);
    }

    /// Inserts the last deleted text again.
    pub fn yank(&mut self) {
        let killed = self.killed.clone();
        self.insert(&killed);
    }

    /// Empties the line; [`Editor::yank`] brings the text back.
    pub fn kill(&mut self) {
        let text = self.take_draft();
        self.killed = text;
    }

    /// Empties the line.
    pub fn clear(&mut self) {
        self.text.clear();
        self.pastes.clear();
        self.at = 0;
        self.shown = self.history.len();
        self.draft.clear();
    }

    /// Inserts at the cursor. Line ends of any kind become `\n`.
    pub fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.at, &text);
        self.at += text.len();
    }

    /// Removes the character before the cursor.
    pub fn backspace(&mut self) {
        // Delete a marker as a whole.
        let is_before = |marker: &String| self.text[..self.at].ends_with(marker.as_str());
        let markers = self.pastes.iter().map(|paste| &paste.marker);
        let mut markers = markers.chain(self.pictures.iter().map(|picture| &picture.marker));
        if let Some(marker) = markers.find(|marker| is_before(marker)).cloned() {
            self.pastes.retain(|paste| paste.marker != marker);
            self.pictures.retain(|picture| picture.marker != marker);
            let start = self.at - marker.len();
            self.text.drain(start..self.at);
            self.at = start;
        } else if let Some(before) = self.previous_boundary() {
            self.text.drain(before..self.at);
            self.at = before;
        }
    }

    /// Removes the character under the cursor.
    pub fn delete(&mut self) {
        if let Some(c) = self.text[self.at..].chars().next() {
            self.text.drain(self.at..self.at + c.len_utf8());
        }
    }

    /// Removes the word before the cursor.
    pub fn delete_word(&mut self) {
        let head = self.text[..self.at].trim_end();
        let start = head
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        self.killed = self.text.drain(start..self.at).collect();
        self.at = start;
    }

    /// Removes everything before the cursor in its line.
    pub fn delete_to_start(&mut self) {
        let start = self.line_start();
        self.killed = self.text.drain(start..self.at).collect();
        self.at = start;
    }

    /// Removes everything after the cursor in its line.
    pub fn delete_to_end(&mut self) {
        let end = self.line_end();
        self.killed = self.text.drain(self.at..end).collect();
    }

    /// Moves one character to the left.
    pub fn left(&mut self) {
        self.at = self.previous_boundary().unwrap_or(0);
    }

    /// Moves one character to the right.
    pub fn right(&mut self) {
        self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
    }

    /// Moves to the start of the line.
    pub fn home(&mut self) {
        self.at = self.line_start();
    }

    /// Moves to the end of the line.
    pub fn end(&mut self) {
        self.at = self.line_end();
    }

    /// Moves to the start of the word before the cursor.
    pub fn word_left(&mut self) {
        let head = self.text[..self.at].trim_end();
        self.at = head.rfind(char::is_whitespace).map_or(0, |blank| self.boundary_at_or_before(blank) + 1);
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    /// Moves to the end of the word after the cursor.
    pub fn word_right(&mut self) {
        let rest = &self.text[self.at..];
        let skipped = rest.len() - rest.trim_start().len();
        let word = rest[skipped..].find(char::is_whitespace).unwrap_or(rest.len() - skipped);
        self.at += skipped + word;
    }

    /// Moves a line up. From the first line, goes back in the history.
    pub fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let column = self.at - start;
            let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
            self.at = self.boundary_at_or_before((above + column).min(start - 1));
        } else if self.shown > 0 {
            if self.shown == self.history.len() {
                self.draft.clone_from(&self.text);
            }
            self.show_entry(self.shown - 1);
        }
    }

    /// Moves a line down. From the last line, goes forward in the history.
    pub fn down(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.at - self.line_start();
            let below_end = self.text[end + 1..].find('\n').map_or(self.text.len(), |n| end + 1 + n);
            self.at = self.boundary_at_or_before((end + 1 + column).min(below_end));
        } else if self.shown < self.history.len() {
            self.show_entry(self.shown + 1);
        }
    }

    fn show_entry(&mut self, entry: usize) {
        self.shown = entry;
        self.text = self.history.get(entry).unwrap_or(&self.draft).clone();
        self.at = self.text.len();
    }

    fn previous_boundary(&self) -> Option<usize> {
        self.text[..self.at].char_indices().next_back().map(|(at, _)| at)
    }

    fn line_start(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.at..].find('\n').map_or(self.text.len(), |n| self.at + n)
    }

    fn boundary_at_or_before(&self, mut index: usize) -> usize {
        while !self.text.is_char_boundary(index) {
            index -= 1;
        }
        index
    }

    /// The rows to show, at most `most` of them around the cursor, and the row and column of the cursor. The
    /// first row begins with `mark`.
    pub fn rows(&self, mark: &str, columns: usize, most: usize) -> (Vec<StyledLine>, (usize, usize)) {
        let indent = width(mark);
        let room = columns.saturating_sub(indent + 1).max(2);
        // The cells of each row: the position in the text, and the shown character.
        let mut rows: Vec<Vec<(usize, String)>> = vec![Vec::new()];
        let mut used = 0;
        for (at, c) in self.text.char_indices() {
            let mut buffer = [0; 4];
            let shown = match c {
                '\n' => String::new(),
                '\t' => "    ".into(),
                _ => escape::line(c.encode_utf8(&mut buffer)).into_owned(),
            };
            let wide = width(&shown);
            if used + wide > room && used > 0 {
                let tail = rows.last_mut().map(|row| split_word(row, c)).unwrap_or_default();
                used = tail.iter().map(|(_, cell)| width(cell)).sum();
                rows.push(tail);
            }
            used += wide;
            if let Some(row) = rows.last_mut() {
                row.push((at, shown));
            }
            if c == '\n' {
                rows.push(Vec::new());
                used = 0;
            }
        }
        let columns_of = |cells: &[(usize, String)]| cells.iter().map(|(_, cell)| width(cell)).sum::<usize>();
        let place = rows.iter().enumerate().find_map(|(nth, row)| {
            let cell = row.iter().position(|(at, _)| *at == self.at)?;
            Some((nth, columns_of(&row[..cell])))
        });
        let end = (rows.len() - 1, rows.last().map_or(0, |row| columns_of(row)));
        let cursor = place.unwrap_or(end);
        let rows: Vec<String> =
            rows.into_iter().map(|row| row.into_iter().map(|(_, cell)| cell).collect()).collect();
        // Keep the cursor visible.
        let first = (cursor.0 + 1).saturating_sub(most.max(1));
        let blank = " ".repeat(indent);
        let lines = rows.iter().enumerate().skip(first).take(most.max(1)).map(|(n, row)| {
            let lead = if n == 0 { mark } else { &blank };
            StyledLine::new(Tone::User, lead).and(Tone::Plain, row.clone())
        });
        (lines.collect(), (cursor.0 - first, cursor.1 + indent))
    }
}

/// Removes the beginning of the word that `next` continues from the end of a full row, so that rows break between
/// words. A word that fills the row breaks inside.
fn split_word(row: &mut Vec<(usize, String)>, next: char) -> Vec<(usize, String)> {
    if next.is_whitespace() {
        return Vec::new();
    }
    let start = row.iter().rposition(|(_, cell)| cell.trim().is_empty()).map_or(0, |blank| blank + 1);
    if start == 0 { Vec::new() } else { row.split_off(start) }
}

/// The command of the user's editor.
fn external_editor() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

pub(crate) fn has_editor() -> bool {
    external_editor().is_some()
}

/// Opens the user's editor with a text, and waits until the user closes it. Returns the changed text. The
/// terminal must not be in raw mode.
pub(crate) async fn in_editor(text: &str) -> io::Result<String> {
    let editor = external_editor().ok_or_else(|| io::Error::other("EDITOR is not set"))?;
    let path = std::env::temp_dir().join(format!("agentctl-{}.json", uuid::Uuid::now_v7()));
    // Create a file that only the owner can read. Never overwrite an existing file.
    let made = {
        use std::os::unix::fs::OpenOptionsExt as _;
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)
    };
    made?.write_all(text.as_bytes())?;
    // The variable may contain arguments, so let the shell split it. The path stays one word.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(&path)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .status()
        .await;
    let changed = std::fs::read_to_string(&path);
    let _ = std::fs::remove_file(&path);
    let status = status?;
    if status.success() { changed } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

#[cfg(test)]
mod tests;
