//! The part of a repository's own configuration that trust covers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::folders::{open_plain, read_up_to};

/// Bytes of git's own configuration.
const MAX_CONFIG_BYTES: u64 = 256 << 10;
/// Sections of git's configuration that change in daily work and name no program that git would run for
/// `workspace::git`. Trust binds all other sections.
const UNBOUND_SECTIONS: [&str; 4] = ["branch", "remote", "user", "submodule"];

/// The part of a repository's own configuration that decides which programs git runs.
pub(super) fn git_settings(root: &Path) -> Result<String, String> {
    let (own, shared) = git_folders(root)?;
    let mut settings = bound_settings(&shared.join("config"))?;
    // Include the configuration of this work tree, if the main configuration enables it (git-worktree(1)).
    let of_tree = own.join("config.worktree");
    if fs::symlink_metadata(&of_tree).is_ok() {
        settings.push_str(&bound_settings(&of_tree)?);
    }
    Ok(settings)
}

fn bound_settings(path: &Path) -> Result<String, String> {
    let file = open_plain(path).map_err(|error| format!("its configuration: {error}"))?;
    let text = read_up_to(file, MAX_CONFIG_BYTES).map_err(|error| format!("its configuration: {error}"))?;
    let text = text.ok_or("its configuration is too large")?;
    let text = String::from_utf8_lossy(&text);
    let mut settings = String::new();
    let mut is_daily = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let name: String =
                section.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            // Text after a section's head on the same line belongs to the section.
            let is_alone = section.trim_end().ends_with(']');
            is_daily = is_alone && UNBOUND_SECTIONS.contains(&name.to_ascii_lowercase().as_str());
            if name.to_ascii_lowercase().starts_with("include") {
                return Err("its configuration includes other files".into());
            }
        }
        if !is_daily && !line.is_empty() {
            settings.push_str(line);
            settings.push('\n');
        }
    }
    Ok(settings)
}

/// The configuration folders of a work tree and of its repository: `.git`, or the folders that a `.git` file
/// names (gitrepository-layout(5)).
fn git_folders(root: &Path) -> Result<(PathBuf, PathBuf), String> {
    let dot_git = root.join(".git");
    let meta = fs::symlink_metadata(&dot_git).map_err(|error| error.to_string())?;
    let pointer = |path: &Path| -> Result<String, String> {
        let file = open_plain(path).map_err(|error| error.to_string())?;
        let text = read_up_to(file, 4_096).map_err(|error| error.to_string())?.ok_or("a strange .git")?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    };
    let own = if meta.is_dir() {
        dot_git
    } else {
        let text = pointer(&dot_git)?;
        root.join(text.strip_prefix("gitdir:").ok_or("a strange .git")?.trim())
    };
    let named = own.join("commondir");
    let shared = if fs::symlink_metadata(&named).is_ok() { own.join(pointer(&named)?) } else { own.clone() };
    Ok((own, shared))
}
