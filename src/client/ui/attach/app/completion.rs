//! The menus of the input line: slash commands and files. Pure.

use crate::connection::mentions::mention_of;
use crate::terminal::escape;
use crate::ui::attach::app::{App, Effect};
use crate::ui::cursor::Step;
use types::slash_command::CommandView;

/// Maximum rows of a menu.
const MENU_ROWS: usize = 8;

/// Commands that this program runs itself, because the daemon does not know them. Each has the hint of its
/// argument.
const OWN_COMMANDS: &[(&str, Option<&str>, &str)] = &[
    ("copy", Some("[code]"), "Copy the last answer, or its last code block"),
    ("resume", None, "Choose another session to continue"),
    ("top", None, "Show all sessions; also ← on an empty line"),
    ("quit", None, "Leave; the session continues"),
    ("keys", None, "Show the keys"),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MenuEntry {
    /// The text that replaces the typed text.
    text: String,
    /// The shown text.
    pub(crate) label: String,
    pub(crate) detail: String,
    /// Whether the user must type more text after the entry.
    takes_more: bool,
}

/// The menu of possible completions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Menu {
    pub(crate) entries: Vec<MenuEntry>,
    pub(crate) selected: usize,
    /// Byte position at which the replaced text starts.
    from: usize,
    is_command: bool,
    /// Whether the user closed the menu. It stays closed for this word.
    pub(crate) is_closed: bool,
}

impl App {
    pub(crate) fn set_commands(&mut self, commands: Vec<CommandView>) {
        self.line.commands = Some(commands);
        self.update_menu();
    }

    pub(crate) fn set_files(&mut self, files: Vec<String>) {
        self.line.files = Some(files);
        self.update_menu();
    }

    /// Computes the menu for the text before the cursor.
    pub(super) fn update_menu(&mut self) {
        let before = self.line.menu.take();
        if self.is_writing() || self.overlay.is_some() || self.has_open_question() {
            return;
        }
        let head = &self.line.editor.text()[..self.line.editor.cursor()];
        let word_from = head
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        let is_command = head.starts_with('/') && word_from == 0;
        let entries = if is_command {
            command_entries(self.line.commands.as_deref().unwrap_or_default(), &head[1..])
        } else if let Some(typed) = head[word_from..].strip_prefix('@') {
            match &self.line.files {
                Some(files) => file_entries(files, typed),
                None => {
                    self.wanted.push(Effect::LoadFiles);
                    // Set an empty list, so that the files are requested only once.
                    self.line.files = Some(Vec::new());
                    Vec::new()
                }
            }
        } else {
            return;
        };
        let is_same_word = before.as_ref().is_some_and(|menu| menu.from == word_from);
        let is_closed = is_same_word && before.as_ref().is_some_and(|menu| menu.is_closed);
        // If an arrow key moved the selection, the entries are unchanged. Then keep the selection.
        let selected = before.filter(|menu| menu.entries == entries).map_or(0, |menu| menu.selected);
        self.line.menu = Some(Menu { entries, selected, from: word_from, is_command, is_closed });
    }

    /// The menu, if it is open and has entries.
    pub(crate) fn open_menu(&self) -> Option<&Menu> {
        self.line.menu.as_ref().filter(|menu| !menu.is_closed && !menu.entries.is_empty())
    }

    pub(super) fn step_menu(&mut self, step: Step) {
        if let Some(menu) = &mut self.line.menu {
            menu.selected = step.from(menu.selected, menu.entries.len());
        }
    }

    pub(super) fn close_menu(&mut self) {
        if let Some(menu) = &mut self.line.menu {
            menu.is_closed = true;
        }
    }

    /// Inserts the selected entry. Returns whether the input is complete with it.
    pub(super) fn accept_entry(&mut self) -> bool {
        let Some(menu) = self.open_menu().cloned() else { return false };
        let Some(entry) = menu.entries.get(menu.selected) else { return false };
        let end = if entry.takes_more || !menu.is_command { " " } else { "" };
        self.line.editor.replace_before_cursor(menu.from, &format!("{}{end}", entry.text));
        self.line.menu = None;
        menu.is_command && !entry.takes_more
    }

    /// The reason why a line that looks like a command cannot be one.
    pub(super) fn unknown_command(&self, text: &str) -> Option<String> {
        let commands = self.line.commands.as_ref()?;
        let line = text.trim_end();
        if line.contains('\n') {
            return None;
        }
        let name = line.strip_prefix('/')?.split([' ', '\t']).next().unwrap_or_default();
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | ':' | '-');
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_inner);
        let names = || {
            commands
                .iter()
                .map(|command| command.name.as_str())
                .chain(OWN_COMMANDS.iter().map(|(name, ..)| *name))
        };
        if !is_name || names().any(|command| command == name) {
            return None;
        }
        let nearest = names().map(|command| (strsim::damerau_levenshtein(command, name), command)).min();
        let hint = match nearest.filter(|(distance, _)| *distance <= (name.len() / 2).max(1)) {
            Some((_, command)) => format!("; did you mean /{command}?"),
            None => "; / lists the commands".into(),
        };
        Some(format!("no command /{name}{hint}"))
    }
}

fn command_entries(commands: &[CommandView], typed: &str) -> Vec<MenuEntry> {
    let own = OWN_COMMANDS.iter().map(|(name, hint, description)| (*name, *description, *hint));
    let all = commands
        .iter()
        .map(|c| (c.name.as_str(), c.description.as_str(), c.argument_hint.as_deref()))
        .chain(own);
    let mut entries: Vec<(usize, MenuEntry)> = all
        .filter_map(|(name, description, hint)| {
            let label = match hint {
                Some(hint) => format!("/{name} {hint}"),
                None => format!("/{name}"),
            };
            let entry = MenuEntry {
                text: format!("/{name}"),
                label: escape::line(&label).into_owned(),
                detail: escape::line(description.lines().next().unwrap_or_default()).into_owned(),
                takes_more: hint.is_some_and(|hint| !hint.starts_with('[')),
            };
            Some((rank(name, typed)?, entry))
        })
        .collect();
    entries.sort_by_key(|(rank, _)| *rank);
    entries.into_iter().take(MENU_ROWS).map(|(_, entry)| entry).collect()
}

fn file_entries(files: &[String], typed: &str) -> Vec<MenuEntry> {
    let mut matches: Vec<(usize, usize, &String)> = files
        .iter()
        .filter_map(|file| {
            let name = file.trim_end_matches('/').rsplit('/').next().unwrap_or(file);
            let by_name = rank(name, typed);
            let by_path = rank(file, typed).map(|rank| rank + 1);
            Some((by_name.into_iter().chain(by_path).min()?, file.len(), file))
        })
        .collect();
    matches.sort();
    let entry = |(_, _, file): (usize, usize, &String)| MenuEntry {
        text: mention_of(file),
        label: escape::line(file).into_owned(),
        detail: String::new(),
        takes_more: true,
    };
    matches.into_iter().take(MENU_ROWS).map(entry).collect()
}

/// Scores how well a name fits the typed text: smaller is better; `None` if it does not fit.
fn rank(name: &str, typed: &str) -> Option<usize> {
    let (name, typed) = (name.to_lowercase(), typed.to_lowercase());
    if name.starts_with(&typed) {
        return Some(0);
    }
    if name.contains(&typed) {
        return Some(2);
    }
    let mut rest = name.chars();
    typed.chars().all(|wanted| rest.any(|c| c == wanted)).then_some(4)
}
