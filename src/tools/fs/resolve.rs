//! Resolves the text of a path to the object that it names. Links and `..` are followed like in the kernel;
//! missing components stay as written.
//!
//! The result is the path that is meant at this moment. `jail` then opens it and refuses if a link has
//! appeared meanwhile.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::json;

use crate::error::ToolError;
use crate::sensitivity::repository;
use types::invisible_chars::{is_invisible, is_joiner_at};

/// Links in one path; more are a loop (the kernel's own limit).
const MAX_LINKS: usize = 40;

/// Components of a path; no real path has more.
const MAX_PARTS: usize = 1_000;

/// Lookups for one path. Each lookup begins at the root, and a hostile tree of links could cause millions.
const MAX_LOOKUPS: usize = 50_000;

/// The path that `text` names, absolute and free of links, relative to `cwd`. `~` means the home folder only at
/// the beginning; nothing else is expanded or decoded.
///
/// Also returns the path as written, made absolute, with links in it.
pub(crate) fn resolve(text: &str, cwd: &Path, home: &Path) -> Result<(PathBuf, PathBuf), ToolError> {
    refuse_hidden_characters(text)?;
    let written = if text == "~" {
        home.to_path_buf()
    } else if let Some(rest) = text.strip_prefix("~/") {
        home.join(rest.trim_start_matches('/'))
    } else {
        cwd.join(text)
    };
    let path = follow(&written)?;
    // The target of a link may have a name that is not valid text.
    match path.to_str() {
        Some(path) => refuse_hidden_characters(path)?,
        None => {
            let shown = path.display().to_string();
            return Err(ToolError::new("bad_path", format!("{shown} is a name that is not UTF-8"))
                .with(json!({ "path": shown })));
        }
    }
    let mut plain = PathBuf::from("/");
    for part in path_parts(&written) {
        if part == ".." {
            plain.pop();
        } else {
            plain.push(part)
        }
    }
    Ok((path, plain))
}

/// Whether a shell would expand the beginning to a folder that is not known here: `~root/x`, `~+`, `~-`, `~1`. The
/// file tools open a folder with this name.
pub(crate) fn is_other_tilde(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    first.strip_prefix('~').is_some_and(|name| !name.is_empty() && name.chars().all(is_of_name))
}

fn refuse_hidden_characters(text: &str) -> Result<(), ToolError> {
    if text.is_empty() {
        return Err(ToolError::new("bad_path", "the path is empty"));
    }
    let hidden = text.char_indices().find(|(index, c)| is_invisible(*c) && !is_joiner_at(text, *index));
    match hidden {
        None => Ok(()),
        Some((_, c)) => Err(ToolError::new(
            "bad_path",
            format!("the path holds the invisible character U+{:04X}; write it without", u32::from(c)),
        )
        .with(json!({ "character": u32::from(c) }))),
    }
}

/// Follows every link of an absolute path. Missing components are kept; a following `..` removes the last one.
pub(crate) fn follow(path: &Path) -> Result<PathBuf, ToolError> {
    let mut out = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = path_parts(path);
    let mut missing = 0_usize;
    let mut links = 0_usize;
    let (mut depth, mut names) = (0_usize, 0_usize);
    if rest.len() > MAX_PARTS {
        return Err(ToolError::new("bad_path", format!("the path has more than {MAX_PARTS} parts")));
    }
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            out.pop();
            depth = depth.saturating_sub(1);
            missing = missing.saturating_sub(1);
            continue;
        }
        out.push(&part);
        depth += 1;
        if missing > 0 {
            missing += 1;
            continue;
        }
        if is_process_folder(&out) {
            return Err(process_file_error(&out));
        }
        names += depth;
        if names > MAX_LOOKUPS {
            return Err(too_many_links(path));
        }
        match fs::symlink_metadata(&out) {
            Ok(meta) if meta.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(too_many_links(path));
                }
                let target = fs::read_link(&out).map_err(|e| ToolError::io(&out, &e))?;
                out.pop();
                depth -= 1;
                if target.is_absolute() {
                    out = PathBuf::from("/");
                    depth = 0;
                }
                for part in path_parts(&target).into_iter().rev() {
                    rest.push_front(part);
                }
            }
            Ok(meta) if !meta.is_dir() && !rest.is_empty() => {
                return Err(ToolError::io(&out, &io::Error::from(io::ErrorKind::NotADirectory)));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => missing = 1,
            Err(e) => return Err(ToolError::io(&out, &e)),
        }
    }
    Ok(out)
}

fn too_many_links(path: &Path) -> ToolError {
    ToolError::new("too_many_links", format!("{} leads through too many links or folders", path.display()))
}

fn path_parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

/// The error for files of a process, which are never opened.
pub(crate) fn process_file_error(path: &Path) -> ToolError {
    ToolError::new("magic_path", format!("{} belongs to a process; tools do not open it", path.display()))
        .with(json!({ "path": path.to_string_lossy() }))
}

/// Whether this is `/proc/PID` or an alias of it. Its links do not lead where they seem to, and its files
/// contain the environment and memory of a process, possibly of the daemon.
fn is_process_folder(path: &Path) -> bool {
    let Ok(below) = path.strip_prefix("/proc") else { return false };
    let Some(Component::Normal(first)) = below.components().next() else { return false };
    first == "self"
        || first == "thread-self"
        || first.to_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
}

/// Entries that are inspected in one workspace.
const MAX_ENTRIES: usize = 4_000;

/// A link at the path of an auto-executed file: `.git`, `.agentd`, `.github/workflows`, `AGENTS.md` and others. A
/// repository may contain such a link, so that a file with a harmless name is the one that is executed.
pub(crate) struct Alias {
    /// Path of the link.
    pub(crate) name: PathBuf,
    /// Target of the link.
    pub(crate) target: PathBuf,
}

/// The links at the top of a workspace and in the hidden folders there.
pub(crate) fn aliases_of(workspace: &Path) -> Vec<Alias> {
    let mut found: Vec<Alias> = git_file(workspace).into_iter().collect();
    let mut left = MAX_ENTRIES;
    let mut folders = vec![workspace.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if left == 0 {
                return found;
            }
            left -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_symlink() {
                let name = entry.path();
                found.extend(follow(&name).ok().map(|target| Alias { name, target }));
            } else if kind.is_dir()
                && folder == workspace
                && entry.file_name().as_encoded_bytes().starts_with(b".")
            {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// The `.git` file of a work tree points to a repository that may have any name.
fn git_file(workspace: &Path) -> Option<Alias> {
    let name = workspace.join(".git");
    fs::symlink_metadata(&name).ok().filter(fs::Metadata::is_file)?;
    let target = follow(&repository::named_in(&name)?).ok()?;
    Some(Alias { name, target })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_check_agrees_with_table_of_invisible_characters() {
        for c in char::MIN..=char::MAX {
            assert_eq!(refuse_hidden_characters(&format!("a/{c}")).is_err(), is_invisible(c), "{c:?}");
        }
        for name in ["👨\u{200d}👩.txt", "می\u{200c}خواهم", "Donau\u{ad}dampf", "葛\u{e0100}.md"]
        {
            assert!(refuse_hidden_characters(name).is_ok(), "{name:?}");
        }
    }
}
