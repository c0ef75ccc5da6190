//! Links to files of agents, such as `.claude/skills/x -> ../../.agents/skills/x`: where they may lead.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use types::{names, secret_names};

/// The target of a link in a project. It must lie in the project, too.
///
/// # Errors
/// The link is not followed; the reason, for users.
pub(crate) fn project_target(link: &Path, root: &Path, home: &Path) -> Result<PathBuf, String> {
    let target = resolve(link)?;
    let below = target.strip_prefix(root).map_err(|_| "the link leaves the project and is not followed")?;
    if below.iter().any(|part| part == ".git") {
        return Err("the link leads into the repository's own files and is not followed".into());
    }
    refuse_secret(&target, home)?;
    Ok(target)
}

/// The target of a link in the user's own folders. It may lie anywhere, but the user must own it.
///
/// # Errors
/// The link is not followed; the reason, for users.
pub(crate) fn user_target(link: &Path, home: &Path) -> Result<PathBuf, String> {
    let target = resolve(link)?;
    let meta = fs::metadata(&target).map_err(|error| format!("could not follow the link: {error}"))?;
    if meta.uid() != geteuid().as_raw() {
        return Err("the link leads to a file of another user and is not followed".into());
    }
    refuse_secret(&target, home)?;
    Ok(target)
}

fn resolve(link: &Path) -> Result<PathBuf, String> {
    link.canonicalize().map_err(|error| match error.raw_os_error() {
        Some(nix::libc::ELOOP) => "the link leads in a circle".into(),
        _ => format!("could not follow the link: {error}"),
    })
}

/// Refuses a path that looks like a file with secrets.
pub(crate) fn refuse_secret(target: &Path, home: &Path) -> Result<(), String> {
    let folded: Vec<String> = target.iter().map(|part| names::fold_case(&part.to_string_lossy())).collect();
    let parts: Vec<&str> = folded.iter().map(String::as_str).collect();
    let home_parts = home.canonicalize().unwrap_or_else(|_| home.to_owned()).iter().count();
    let is_below_home =
        target.starts_with(home) || home.canonicalize().is_ok_and(|it| target.starts_with(it));
    let below_home = is_below_home.then(|| parts.get(home_parts..)).flatten();
    let below_home = below_home.filter(|parts| !is_text_for_agents(parts));
    if secret_names::is_secret(&parts, below_home) {
        return Err("the link leads to a file that looks like a secret and is not followed".into());
    }
    Ok(())
}

/// Whether a path below the home folder is a text for agents. The folders of other agents hold keys, too.
fn is_text_for_agents(below_home: &[&str]) -> bool {
    let below = match below_home {
        [".claude" | ".codex" | ".gemini" | ".kode" | ".agents", below @ ..] => below,
        [".config", "agentd", below @ ..] => below,
        _ => return false,
    };
    matches!(below, ["skills" | "agents" | "commands" | "plugins", ..])
        || below.last().is_some_and(|name| name.ends_with(".md"))
}
