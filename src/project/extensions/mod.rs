//! Markdown files with front matter that extend the daemon: slash commands, agents and skills.
//!
//! A broken file gives a [`Diagnostic`] and is left out; it never fails a session. Files of a project come from
//! the trust inventory, which read exactly the content that the user trusts. Files of the user are scanned here.

mod agent_keys;
mod agent_model_options;
mod agent_tools;
pub mod agents;
pub mod commands;
#[cfg(test)]
mod compatibility_tests;
mod expansion;
mod front_matter;
mod scan;
pub mod skills;
pub mod watch;

use std::path::PathBuf;

pub use expansion::Expansion;
pub use front_matter::read_strictly as read_front_matter;
pub use scan::{MarkdownFile, UserLinks, files_from_contents, scan};

/// A file that cannot be used, or can be used only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file or folder.
    pub path: PathBuf,
    /// The problem and how to correct it.
    pub message: String,
}

/// Notes about files, each text once: the first file is named, and the others are counted.
#[must_use]
pub fn merged_notes(notes: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut merged: Vec<(Diagnostic, usize)> = Vec::new();
    for note in notes {
        match merged.iter_mut().find(|(known, _)| known.message == note.message) {
            Some((_, more)) => *more += 1,
            None => merged.push((note, 0)),
        }
    }
    let text = |(note, more): (Diagnostic, usize)| match more {
        0 => note,
        more => Diagnostic { message: format!("{} (also {more} more files)", note.message), ..note },
    };
    merged.into_iter().map(text).collect()
}

/// The owner of an extension file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionSource {
    /// The user: the file applies in every workspace.
    User,
    /// The project: the file applies in its trusted workspace.
    Project,
}
