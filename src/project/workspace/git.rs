//! Adds a short description of the repository to the prompt. Git runs only in a trusted folder, and with
//! options that execute nothing from the repository.

use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use crate::git::safe_command_in;
use base::proc;

/// Limit of the whole text, in characters.
const MAX_TEXT_CHARS: usize = 2_000;
/// Maximum bytes that are read of one answer of git.
const MAX_ANSWER_BYTES: u64 = 16 << 10;
/// Time limit of a git command. In a large repository, a slow part is omitted.
const GIT_TIMEOUT: Duration = Duration::from_secs(3);

/// The description as text; `None` if git reports no status. Cancel-safe: dropping the future kills the
/// commands.
pub(super) async fn facts(cwd: &Path) -> Option<String> {
    let (branch, default, status, log, user) = tokio::join!(
        run_git(cwd, &["symbolic-ref", "--short", "-q", "HEAD"]),
        run_git(cwd, &["symbolic-ref", "--short", "-q", "refs/remotes/origin/HEAD"]),
        run_git(cwd, &["status", "--short", "--ignore-submodules=all"]),
        run_git(
            cwd,
            &["log", "-5", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--format=%h %s"]
        ),
        run_git(cwd, &["config", "--get", "user.name"]),
    );
    // Without a status, git is missing or fails in this folder, so give no description.
    status.as_ref()?;
    let mut text = String::from("\n\n# Git at the start of the session");
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            text.push_str(&format!("\n- {name}: {value}"));
        }
    };
    line("Branch", branch);
    line("Default branch", default);
    line("User", user);
    let several = |name: &str, value: Option<String>| {
        let value = value.filter(|value| !value.is_empty());
        value.map(|value| format!("\n- {name}:\n{value}")).unwrap_or_default()
    };
    let clean = status.as_deref() == Some("");
    text.push_str(if clean { "\n- Status: clean" } else { "" });
    // The log comes first, because a long status may be truncated.
    let rest = several("Last commits", log) + &several("Status", status);
    text.push_str(&rest);
    Some(truncate_text(text))
}

/// Number of files that git lists as changed, or as new and not ignored; `None` without a repository. Very many files
/// are counted in part. Only for trusted folders.
pub async fn changed_files(cwd: &Path) -> Option<u64> {
    let status = run_git(cwd, &["status", "--porcelain", "--ignore-submodules=all"]).await?;
    Some(status.lines().count() as u64)
}

fn truncate_text(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}\n[cut: there is more; ask git]", &text[..end]),
        None => text,
    }
}

/// Runs git. Returns its output without the last newline; `None` if git fails or takes too long.
async fn run_git(cwd: &Path, what: &[&str]) -> Option<String> {
    let mut command = safe_command_in(cwd);
    command.args(what).kill_on_drop(true);
    let mut child = proc::spawn(&mut command).ok()?;
    let out = child.stdout.take()?;
    let answer = async {
        let mut bytes = Vec::new();
        out.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes).await.ok()?;
        if bytes.len() as u64 == MAX_ANSWER_BYTES {
            // Stop git, because the rest of its output would be truncated anyway.
            child.start_kill().ok()?;
            child.wait().await.ok()?;
        } else if !child.wait().await.ok()?.success() {
            return None;
        }
        // Names of files and authors may contain any characters.
        let text = String::from_utf8_lossy(&bytes);
        let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        Some(text.trim_end().to_owned())
    };
    tokio::time::timeout(GIT_TIMEOUT, answer).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    fn git(folder: &Path, args: &[&str]) -> bool {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(folder).args(["-c", "user.name=Ann", "-c", "user.email=a@b"]).args(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    #[tokio::test]
    async fn git_facts_are_read_without_running_repository_code() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("resolved");
        if !git(&path, &["init", "-q", "-b", "trunk"]) {
            base::skip_test!("there is no git");
            return;
        }
        std::fs::write(path.join("a.txt"), "one\n").expect("written");
        assert!(git(&path, &["add", "."]) && git(&path, &["commit", "-q", "-m", "the first"]));
        std::fs::write(path.join("new file"), "x").expect("written");
        let pwned = path.join("pwned");
        let touch = format!("touch {}", pwned.display());
        for (key, value) in [
            ("core.fsmonitor", touch.as_str()),
            ("core.pager", &touch),
            ("diff.external", &touch),
            ("log.showSignature", "true"),
            ("gpg.program", &touch),
            ("core.sshCommand", &touch),
            ("core.hooksPath", path.to_str().expect("text")),
        ] {
            assert!(git(&path, &["config", key, value]), "{key}");
        }
        std::fs::write(path.join("post-index-change"), format!("#!/bin/sh\n{touch}\n")).expect("written");
        let facts = facts(&path).await.expect("facts");
        assert!(facts.contains("Branch: trunk") && facts.contains("the first"), "{facts}");
        assert!(facts.contains("?? \"new file\"") || facts.contains("?? new file"), "{facts}");
        assert_eq!(changed_files(&path).await, Some(2), "the file and the hook");
        assert!(!pwned.exists(), "something of the repository was run");
    }

    #[tokio::test]
    async fn long_git_status_is_truncated_with_note() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("resolved");
        if !git(&path, &["init", "-q"]) {
            base::skip_test!("there is no git");
            return;
        }
        for n in 0..400 {
            std::fs::write(path.join(format!("a-file-with-a-long-name-{n}")), "").expect("written");
        }
        let facts = facts(&path).await.expect("facts");
        assert!(facts.chars().count() < MAX_TEXT_CHARS + 60 && facts.contains("[cut"), "{}", facts.len());
    }

    #[tokio::test]
    async fn folder_without_repository_has_no_git_facts() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(facts(folder.path()).await, None);
    }
}
