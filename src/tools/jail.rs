//! From the text of a path to the object it names (P4): links and `..` are followed as the
//! kernel would, what does not exist yet is kept as written.
//!
//! Resolving says *which* object is meant; `disk` opens exactly that and refuses if a link has
//! come in between.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::json;

use super::care::{Access, Places, care};
use super::refusal::Refusal;
use crate::types::tool::ResolvedPath;

/// More links than this in one path are a loop (the kernel's own limit).
const MOST_LINKS: usize = 40;

/// Resolves `text`, relative to `cwd`. `~` means the home folder only at the beginning.
pub(super) fn resolve(
    text: &str,
    cwd: &Path,
    workspace: &Path,
    places: &Places,
    access: Access,
) -> Result<ResolvedPath, Refusal> {
    refuse_hidden_characters(text)?;
    let written = if text == "~" {
        places.home.clone()
    } else if let Some(rest) = text.strip_prefix("~/") {
        places.home.join(rest.trim_start_matches('/'))
    } else {
        cwd.join(text)
    };
    let path = follow(&written)?;
    let in_workspace = path.starts_with(workspace);
    let care = care(&path, access, places);
    Ok(ResolvedPath { path, in_workspace, care })
}

fn refuse_hidden_characters(text: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::new("bad_path", "the path is empty"));
    }
    let hidden = text.chars().find(|c| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    });
    match hidden {
        None => Ok(()),
        Some(c) => Err(Refusal::new(
            "bad_path",
            format!("the path holds the invisible character U+{:04X}; write it without", u32::from(c)),
        )
        .with(json!({ "character": u32::from(c) }))),
    }
}

/// Follows every link of an absolute path. Parts that do not exist are kept; a `..` behind them
/// takes the last of them away.
pub(super) fn follow(path: &Path) -> Result<PathBuf, Refusal> {
    let mut out = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = names(path);
    let mut missing = 0_usize;
    let mut links = 0_usize;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            out.pop();
            missing = missing.saturating_sub(1);
            continue;
        }
        out.push(&part);
        if missing > 0 {
            missing += 1;
            continue;
        }
        if is_process_folder(&out) {
            return Err(Refusal::new(
                "magic_path",
                format!("{} belongs to a process; tools do not open it", out.display()),
            ));
        }
        match fs::symlink_metadata(&out) {
            Ok(meta) if meta.is_symlink() => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Refusal::new(
                        "too_many_links",
                        format!("{} leads through too many links", path.display()),
                    ));
                }
                let target = fs::read_link(&out).map_err(|e| Refusal::io(&out, &e))?;
                out.pop();
                if target.is_absolute() {
                    out = PathBuf::from("/");
                }
                for part in names(&target).into_iter().rev() {
                    rest.push_front(part);
                }
            }
            Ok(meta) if !meta.is_dir() && !rest.is_empty() => {
                return Err(Refusal::io(&out, &io::Error::from(io::ErrorKind::NotADirectory)));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => missing = 1,
            Err(e) => return Err(Refusal::io(&out, &e)),
        }
    }
    Ok(out)
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

/// `/proc/PID` and its aliases: its links are not what they look like, its files hold the
/// environment and the memory of a process, possibly the daemon's.
fn is_process_folder(path: &Path) -> bool {
    let Ok(below) = path.strip_prefix("/proc") else { return false };
    let Some(Component::Normal(first)) = below.components().next() else { return false };
    first == "self"
        || first == "thread-self"
        || first.to_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::types::tool::PathCare;

    struct House {
        _root: tempfile::TempDir,
        root: PathBuf,
    }

    /// `ws/src/main.rs`, `ws/real/x.txt`, `home/.bashrc`, `out/secret.txt`, and links in `ws`.
    fn house() -> House {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for file in
            ["ws/src/main.rs", "ws/real/x.txt", "home/.bashrc", "out/secret.txt", "ws/.agentd/policy.toml"]
        {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "x").unwrap();
        }
        let ws = root.join("ws");
        symlink("real", ws.join("lib")).unwrap();
        symlink("b", ws.join("a")).unwrap();
        symlink("c", ws.join("b")).unwrap();
        symlink(root.join("out/secret.txt"), ws.join("c")).unwrap();
        symlink(".agentd/policy.toml", ws.join("notes.txt")).unwrap();
        symlink("loop", ws.join("loop")).unwrap();
        symlink(root.join("out/new.txt"), ws.join("dangling")).unwrap();
        symlink(root.join("out"), ws.join("outdir")).unwrap();
        House { _root: dir, root }
    }

    fn check(house: &House, text: &str, expected: Result<(&str, bool, PathCare), &str>) {
        let (ws, home) = (house.root.join("ws"), house.root.join("home"));
        let places = Places { home, protected: vec![] };
        let text = text.replace("{R}", house.root.to_str().unwrap());
        let got = resolve(&text, &ws, &ws, &places, Access::Edit);
        let got = match &got {
            Ok(path) => Ok((path.path.clone(), path.in_workspace, path.care)),
            Err(refusal) => Err(refusal.code),
        };
        let expected = expected.map(|(path, inside, care)| {
            let path = if path.starts_with('/') { PathBuf::from(path) } else { house.root.join(path) };
            (path, inside, care)
        });
        assert_eq!(got, expected, "{text}");
    }

    #[test]
    fn paths_resolve_to_the_object_the_kernel_would_open() {
        use PathCare::{AutoExecuted, Ordinary, Protected};
        let house = house();
        for (text, expected) in [
            ("src/main.rs", Ok(("ws/src/main.rs", true, Ordinary))),
            ("./src/../src//main.rs", Ok(("ws/src/main.rs", true, Ordinary))),
            ("{R}/ws/src/main.rs", Ok(("ws/src/main.rs", true, Ordinary))),
            ("lib/x.txt", Ok(("ws/real/x.txt", true, Ordinary))),
            ("new/deep/file", Ok(("ws/new/deep/file", true, Ordinary))),
            ("new/../a", Ok(("out/secret.txt", false, PathCare::Secret))),
            ("..", Ok(("", false, Ordinary))),
            ("../out/secret.txt", Ok(("out/secret.txt", false, PathCare::Secret))),
            ("src/../../out/secret.txt", Ok(("out/secret.txt", false, PathCare::Secret))),
            ("a", Ok(("out/secret.txt", false, PathCare::Secret))),
            ("dangling", Ok(("out/new.txt", false, Ordinary))),
            ("outdir/../x", Ok(("x", false, Ordinary))),
            ("outdir/secret.txt", Ok(("out/secret.txt", false, PathCare::Secret))),
            ("notes.txt", Ok(("ws/.agentd/policy.toml", true, Protected))),
            ("~/.bashrc", Ok(("home/.bashrc", false, AutoExecuted))),
            ("$HOME/x", Ok(("ws/$HOME/x", true, Ordinary))),
            ("a~/x", Ok(("ws/a~/x", true, Ordinary))),
            ("...", Ok(("ws/...", true, Ordinary))),
            ("/proc/cpuinfo", Ok(("/proc/cpuinfo", false, Ordinary))),
            ("loop", Err("too_many_links")),
            ("src/main.rs/x", Err("not_a_directory")),
            ("src/main.rs\0.png", Err("bad_path")),
            ("src/\u{202e}x", Err("bad_path")),
            ("a\nb", Err("bad_path")),
            ("", Err("bad_path")),
            ("/proc/self/environ", Err("magic_path")),
            ("/proc/1/environ", Err("magic_path")),
            ("/proc/self/fd/3", Err("magic_path")),
            ("/dev/fd/0", Err("magic_path")),
            ("/dev/stdin", Err("magic_path")),
        ] {
            check(&house, text, expected);
        }
    }

    #[test]
    fn a_workspace_that_was_replaced_by_a_link_is_not_the_workspace() {
        let house = house();
        fs::rename(house.root.join("ws"), house.root.join("ws.old")).unwrap();
        symlink(house.root.join("out"), house.root.join("ws")).unwrap();
        check(&house, "secret.txt", Ok(("out/secret.txt", false, PathCare::Secret)));
    }
}
