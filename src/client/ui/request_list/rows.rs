//! Lays out the list as rows.

use crate::answer::permission::PermissionChoice;
use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::prompt;
use crate::ui::request_list::{ListEntry, RequestList};
use crate::ui::summary::{call_summary, one_line};
use types::permission::{Mode, RequestKind};
use types::session::PermissionRequest;

/// The mark before the rows of the list.
const BAR: &str = "▌ ";

/// Columns before the text of a request: the bar, and an indentation.
const BODY_INDENT: usize = 4;

#[derive(Clone, Copy)]
pub(crate) struct ListStyle {
    pub(crate) columns: usize,
    /// Maximum number of rows of the list.
    pub(crate) rows: usize,
    pub(crate) mode: Mode,
    /// Whether keys answer. Until then the rows are dim.
    pub(crate) is_answerable: bool,
    /// Whether the input line contains a draft.
    pub(crate) has_draft: bool,
    /// Whether one answer for all requests is offered.
    pub(crate) can_all: bool,
}

impl RequestList {
    pub(crate) fn rows(&self, look: ListStyle) -> Vec<StyledLine> {
        let Some(request) = self.current() else { return Vec::new() };
        let count = self.len();
        let mut answers = self.answer_rows(request, look);
        answers.extend(wrap_rows(&keys(look, self.is_page_open(), count), look.columns));
        let others = self.other_rows(look);
        let (before, after) = others.split_at(self.current.min(others.len()));
        let body = body(request, (count > 1).then_some((self.current + 1, count)), look.columns);
        let room = look.rows.saturating_sub(answers.len() + others.len()).max(1);
        let mut rows = before.to_vec();
        if body.len() <= room {
            rows.extend(body);
        } else {
            let room = room.saturating_sub(1).max(1);
            let first = self.scroll.min(body.len() - room);
            let below = body.len() - room - first;
            rows.extend(body.into_iter().skip(first).take(room));
            let text = format!("{BAR}{first} lines above, {below} below · PgUp PgDn · Ctrl-O all");
            rows.push(StyledLine::new(Tone::Warn, text).cut(look.columns));
        }
        rows.append(&mut answers);
        rows.extend(after.iter().cloned());
        rows
    }

    /// Whether the screen shows all requests in full, so that one answer for all can be offered.
    pub(crate) fn can_all(&self, columns: usize, rows: usize) -> bool {
        let full = |request: &PermissionRequest| {
            let body = body(request, Some((1, self.len())), columns).len();
            // A request that is not the current one is shown by its first row only.
            let is_current = self.current().is_some_and(|current| current.request_id == request.request_id);
            if is_current { (true, body) } else { (is_one_row(request), 1) }
        };
        let parts: Vec<(bool, usize)> = self.iter().map(full).collect();
        let needed: usize = parts.iter().map(|(_, rows)| rows).sum();
        parts.iter().all(|(fits, _)| *fits) && needed + 7 <= rows
    }

    fn answer_rows(&self, request: &PermissionRequest, look: ListStyle) -> Vec<StyledLine> {
        let cursor = |is_here: bool| if is_here && look.is_answerable { "› " } else { "  " };
        let tone = |is_here: bool| match (look.is_answerable, is_here) {
            (false, _) => Tone::Dim,
            (true, true) => Tone::Bold,
            (true, false) => Tone::Plain,
        };
        let row = |is_here: bool, number: usize, (text, rule): (String, Option<&str>)| {
            let line = StyledLine::new(Tone::Warn, BAR)
                .and(tone(is_here), format!("{}{number}  {text}", cursor(is_here)));
            let rule = rule.map(|rule| one_line(rule, 300)).unwrap_or_default();
            line.and(if look.is_answerable { Tone::Tool } else { Tone::Dim }, rule)
        };
        let mut lines = Vec::new();
        if let Some(current) = self.page {
            lines.push(page_head(request));
            for (index, choice) in self.page_choices().into_iter().enumerate() {
                lines.push(row(current == index, index + 1, page_text(choice, request)));
            }
        } else {
            let current = self.cursor(look.mode);
            for entry in self.all_entries(look.mode, look.can_all) {
                lines.push(row(entry == current, entry.number(), self.entry_text(entry, request)));
            }
        }
        lines.iter().flat_map(|line| wrap_rows(line, look.columns)).collect()
    }

    /// The answers of the current request or of its page, for a user who types their numbers.
    pub(crate) fn answer_lines(&self) -> Vec<StyledLine> {
        let Some(request) = self.current() else { return Vec::new() };
        let line = |number: usize, (text, rule): (String, Option<&str>)| {
            StyledLine::new(Tone::Warn, BAR)
                .and(Tone::Bold, number.to_string())
                .and(Tone::Plain, format!("  {text}"))
                .and(Tone::Tool, rule.map(|rule| one_line(rule, 300)).unwrap_or_default())
        };
        if self.is_page_open() {
            let rules = self.page_choices().into_iter().enumerate();
            let rules = rules.map(|(index, choice)| line(index + 1, page_text(choice, request)));
            return std::iter::once(page_head(request)).chain(rules).collect();
        }
        let entries = self.entries().into_iter();
        entries.map(|entry| line(entry.number(), self.entry_text(entry, request))).collect()
    }

    fn entry_text<'a>(&self, entry: ListEntry, request: &'a PermissionRequest) -> (String, Option<&'a str>) {
        use PermissionChoice::{AcceptEdits, Deny, Folder, Once, Session};
        let text = match (entry, request.kind) {
            (ListEntry::Answer(Once), RequestKind::Plan) => "Yes, carry it out",
            (ListEntry::Answer(Once), RequestKind::Sandbox) => "Yes, once, outside the sandbox",
            (ListEntry::Answer(Once), RequestKind::Tool) => "Yes, once",
            (ListEntry::Answer(AcceptEdits), _) => "Yes, and accept its edits",
            (ListEntry::Answer(Session(_)), RequestKind::Sandbox) => "Yes, outside, until the session ends: ",
            (ListEntry::Answer(Session(_)), _) => "Yes, until the session ends: ",
            (ListEntry::Answer(Folder(_)), _) => "Yes, and always in this folder: ",
            (ListEntry::FolderRules, _) => "Yes, and always in this folder…",
            (ListEntry::Words, _) => "No, and say what to change…",
            (ListEntry::Answer(Deny), RequestKind::Plan) => "No, keep planning",
            (ListEntry::Answer(Deny), _) => "No, and go on without it",
            (ListEntry::AllEdits, _) => "Yes, and all edits of this session (mode accept_edits)",
            (ListEntry::All, _) => return (format!("Yes to all {} requests shown here", self.len()), None),
        };
        let rule = match entry {
            ListEntry::Answer(Session(rule) | Folder(rule)) => {
                request.suggestions.get(rule).map(String::as_str)
            }
            _ => None,
        };
        (text.into(), rule)
    }

    /// The requests that are not shown in full, one row for each.
    fn other_rows(&self, look: ListStyle) -> Vec<StyledLine> {
        let count = self.len();
        let others = self.iter().enumerate().filter(|(index, _)| *index != self.current);
        let rows = others.map(|(index, request)| {
            StyledLine::new(Tone::Warn, BAR)
                .and(Tone::Dim, format!("{}/{count}  ", index + 1))
                .and(Tone::Plain, call_summary(&request.tool, &request.input))
                .cut(look.columns)
        });
        rows.collect()
    }
}

/// The first row of the page with the rules for the folder.
fn page_head(request: &PermissionRequest) -> StyledLine {
    let folder = one_line(&home_relative(&request.cwd), 60);
    let text = format!("Writes one of these rules for {folder}, for all later sessions:");
    StyledLine::new(Tone::Warn, BAR).and(Tone::Plain, text)
}

fn page_text(choice: PermissionChoice, request: &PermissionRequest) -> (String, Option<&str>) {
    match choice {
        PermissionChoice::Folder(rule) => (String::new(), request.suggestions.get(rule).map(String::as_str)),
        _ => ("No rule: only once".into(), None),
    }
}

/// Whether one row shows a complete request.
fn is_one_row(request: &PermissionRequest) -> bool {
    prompt::question(request).len() <= 3 && request.diff.is_none()
}

fn keys(look: ListStyle, is_page_open: bool, count: usize) -> StyledLine {
    let text = if !look.is_answerable {
        "…".to_owned()
    } else if look.has_draft {
        "↑↓ moves to the list; other keys continue your draft · Ctrl-O all".to_owned()
    } else if is_page_open {
        "↑↓ Enter · Esc back".to_owned()
    } else {
        let others = if count > 1 { "←→ other · " } else { "" };
        format!("{others}↑↓ Enter · Tab words · e change it · Ctrl-O all · Esc no, and stop")
    };
    StyledLine::new(Tone::Warn, BAR).and(Tone::Dim, text)
}

/// A request without its answers, in rows.
fn body(request: &PermissionRequest, place: Option<(usize, usize)>, columns: usize) -> Vec<StyledLine> {
    let mut lines = match request.kind {
        // The first row is replaced below.
        RequestKind::Plan => std::iter::once(StyledLine::default())
            .chain(prompt::plan_lines(request, columns.saturating_sub(BODY_INDENT)))
            .collect(),
        _ => prompt::question(request),
    };
    if let Some(first) = lines.first_mut() {
        let place = place.map(|(number, count)| format!("{number}/{count}  ")).unwrap_or_default();
        *first = head(request, &place);
    }
    // The first row has the reason.
    if request.kind == RequestKind::Sandbox {
        lines.remove(1);
    }
    // Remove the argument `file_path`, because the first row names the file.
    if let Some(path) = file_path(request) {
        let row = format!("    file_path: {path}");
        lines.retain(|line| line.plain() != row);
    }
    let with_bar = lines.into_iter().map(|mut line| {
        if let Some((_, lead)) = line.0.first_mut()
            && let Some(rest) = lead.strip_prefix("    ")
        {
            *lead = format!("  {rest}");
            return line.with_lead(Tone::Warn, BAR);
        }
        line
    });
    with_bar.flat_map(|line| wrap_rows(&line, columns)).collect()
}

/// The file of a call that changes one, exactly as its arguments name it.
fn file_path(request: &PermissionRequest) -> Option<String> {
    let path = request.input.get("file_path").and_then(serde_json::Value::as_str)?;
    let is_shown = request.kind == RequestKind::Tool && !path.contains('\n');
    is_shown.then(|| escape::exact_line(path))
}

/// The first row of a request: the call, and the reason for the request.
fn head(request: &PermissionRequest, place: &str) -> StyledLine {
    let line = StyledLine::new(Tone::Warn, BAR).and(Tone::Dim, place);
    let reason = escape::line(&request.reason).into_owned();
    match request.kind {
        RequestKind::Plan => line.and(Tone::Bold, "The model proposes this plan:"),
        RequestKind::Sandbox => line
            .and(Tone::Bold, escape::line(&request.tool))
            .and(Tone::Bad, " again, OUTSIDE THE SANDBOX")
            .and(Tone::Dim, format!(" · {reason}")),
        RequestKind::Tool => {
            let mut line = line.and(Tone::Bold, escape::line(&request.tool));
            if let Some(path) = file_path(request) {
                line = line.and(Tone::Bold, format!(" {path}"));
            }
            if let Some(diff) = &request.diff {
                let sums = crate::ui::diff::Diff::parse(diff).sums();
                line = line.and(Tone::Plain, format!("  {sums}"));
            }
            line.and(Tone::Dim, format!(" · asks because {reason}"))
        }
    }
}

/// Rows of at most `columns`. Continuation rows begin with the bar, so that no text of the model is at the
/// start of a row.
fn wrap_rows(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let mut rows = line.wrap(columns);
    if rows.len() > 1 {
        let lead = if columns > 20 { "▌       " } else { "▌ " };
        rows = line.wrap(columns.saturating_sub(lead.chars().count()).max(2));
        for row in rows.iter_mut().skip(1) {
            *row = std::mem::take(row).with_lead(Tone::Warn, lead);
        }
    }
    rows
}

/// A path below the user's home folder, with `~`.
pub(crate) fn home_relative(path: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    match path
        .strip_prefix(&home)
        .filter(|rest| !home.is_empty() && (rest.is_empty() || rest.starts_with('/')))
    {
        Some(rest) => format!("~{rest}"),
        None => path.to_owned(),
    }
}
