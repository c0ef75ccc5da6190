//! The lines above a new conversation: its folder, and the sessions that wait for the user.

use api::methods;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::connection::client::Client;
use crate::connection::remote::Machine;
use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone, cut};
use crate::ui::request_list::home_relative;
use api::params::{ListParams, WorkspaceParams};
use types::session::{SessionState, SessionView};

/// How long the lines wait for git and for the list of sessions. In a large repository, git does not answer
/// in time, and the number of changed files is left out.
const TIMEOUT: Duration = Duration::from_millis(150);
/// The same for a daemon on another machine.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum bytes that are read of a file of git.
const MAX_GIT_FILE_BYTES: u64 = 4_096;

/// The facts of the first line.
#[derive(Debug, Default)]
pub(super) struct StartFacts {
    folder: String,
    branch: Option<String>,
    changed_files: Option<u64>,
    model: String,
    mode: &'static str,
    timeout: Duration,
}

impl StartFacts {
    /// Reads the branch from the files of git.
    pub(super) fn new(cwd: &str, model: &str, mode: &'static str, machine: Machine) -> Self {
        Self {
            folder: cwd.to_owned(),
            branch: if machine == Machine::This { branch(Path::new(cwd)) } else { None },
            timeout: if machine == Machine::This { TIMEOUT } else { REMOTE_TIMEOUT },
            changed_files: None,
            model: model.to_owned(),
            mode,
        }
    }

    /// All lines of the start, with the facts that only the daemon knows. Only the daemon runs git, and only
    /// in a trusted folder.
    pub(super) async fn complete(mut self, client: Client) -> Vec<StyledLine> {
        let params = WorkspaceParams { cwd: self.folder.clone(), count_changes: true };
        let status = client.call::<methods::workspace::Status>(&params);
        let (status, waiting) = tokio::join!(
            tokio::time::timeout(self.timeout, status),
            tokio::time::timeout(self.timeout, waiting_sessions(&client, &self.folder))
        );
        self.changed_files = status.ok().and_then(Result::ok).and_then(|reply| reply.changed_files);
        std::iter::once(self.line()).chain(waiting_line(&waiting.unwrap_or_default())).collect()
    }

    /// For example `agentd · ~/shop · main, 2 files changed · anthropic/sonnet · default`.
    pub(super) fn line(&self) -> StyledLine {
        let changed = match self.changed_files {
            None => String::new(),
            Some(0) => ", clean".into(),
            Some(1) => ", 1 file changed".into(),
            Some(count) => format!(", {count} files changed"),
        };
        let git =
            self.branch.as_deref().map(|branch| format!(" · {}{changed}", cut(&escape::line(branch), 40)));
        let folder = home_relative(&self.folder);
        StyledLine::new(Tone::Bold, "agentd").and(
            Tone::Dim,
            format!(
                " · {}{} · {} · {}",
                escape::line(&folder),
                git.unwrap_or_default(),
                escape::line(&self.model),
                self.mode
            ),
        )
    }
}

/// The sessions of the folder that wait for the user, the newest first.
async fn waiting_sessions(client: &Client, cwd: &str) -> Vec<SessionView> {
    let filter = ListParams {
        cwd: Some(cwd.to_owned()),
        states: Some(vec![SessionState::RequiresAction, SessionState::Paused]),
        ..ListParams::default()
    };
    // If the call fails, leave out this line.
    client.call::<methods::session::List>(&filter).await.map(|reply| reply.sessions).unwrap_or_default()
}

/// For example `1 session waits for you here: #12 fix login · ← shows all`.
fn waiting_line(waiting: &[SessionView]) -> Option<StyledLine> {
    let first = waiting.first()?;
    let count = match waiting.len() {
        1 => "1 session waits".to_owned(),
        count => format!("{count} sessions wait"),
    };
    let title = cut(&escape::line(&first.summary.title), 30);
    Some(
        StyledLine::new(Tone::Warn, format!("{count} for you here: "))
            .and(Tone::Bold, format!("#{} {title}", first.number))
            .and(Tone::Dim, " · ← shows all"),
    )
}

/// The branch of the repository around a folder, or the beginning of the commit that is checked out. Runs no program.
fn branch(cwd: &Path) -> Option<String> {
    let entry = cwd.ancestors().map(|folder| folder.join(".git")).find(|entry| entry.exists())?;
    let folder = match entry.is_dir() {
        true => entry,
        // The `.git` of a worktree or a submodule is a file that names the folder.
        false => {
            let named = PathBuf::from(first_line(&entry)?.strip_prefix("gitdir:")?.trim());
            entry.parent()?.join(named)
        }
    };
    let head = first_line(&folder.join("HEAD"))?;
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => head.get(..8).filter(|start| start.bytes().all(|b| b.is_ascii_hexdigit())).map(str::to_owned),
    }
}

fn first_line(file: &Path) -> Option<String> {
    use std::io::Read as _;
    // Read regular files only, because a pipe would block the start.
    if !std::fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(file).ok()?.take(MAX_GIT_FILE_BYTES).read_to_string(&mut text).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::SESSION;
    use crate::resolve_id::sample;

    #[test]
    fn branch_is_read_without_running_git() {
        let dir = tempfile::tempdir().expect("a folder");
        let (repository, tree) = (dir.path().join("r"), dir.path().join("tree"));
        std::fs::create_dir_all(repository.join(".git/worktrees/tree")).expect("made");
        std::fs::create_dir_all(repository.join("src")).expect("made");
        std::fs::create_dir_all(&tree).expect("made");
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).expect("written");
        write(repository.join(".git/HEAD"), "ref: refs/heads/fix/login\n");
        write(repository.join(".git/worktrees/tree/HEAD"), "0123456789abcdef0123456789abcdef01234567\n");
        write(tree.join(".git"), "gitdir: ../r/.git/worktrees/tree\n");
        assert_eq!(branch(&repository.join("src")).as_deref(), Some("fix/login"));
        assert_eq!(branch(&tree).as_deref(), Some("01234567"));
        write(repository.join(".git/HEAD"), "garbage\n");
        assert_eq!(branch(&repository), None);
    }

    #[test]
    fn start_lines_name_place_and_waiting_sessions() {
        let mut place = StartFacts {
            folder: "/w/shop".into(),
            branch: Some("main\u{1b}[2J".into()),
            changed_files: Some(2),
            model: "anthropic/sonnet".into(),
            mode: "default",
            timeout: TIMEOUT,
        };
        assert_eq!(
            place.line().plain(),
            "agentd · /w/shop · main⟦ESC⟧[2J, 2 files changed · anthropic/sonnet · default"
        );
        (place.branch, place.changed_files) = (None, None);
        assert_eq!(place.line().plain(), "agentd · /w/shop · anthropic/sonnet · default");
        let session: SessionView = serde_json::from_value(sample(SESSION, "fix login")).expect("a session");
        let session = SessionView { number: 12, ..session };
        let line = |count| waiting_line(&vec![session.clone(); count]).map(|line| line.plain());
        assert_eq!(line(0), None);
        assert_eq!(line(1).as_deref(), Some("1 session waits for you here: #12 fix login · ← shows all"));
        assert_eq!(line(3).as_deref(), Some("3 sessions wait for you here: #12 fix login · ← shows all"));
    }
}
