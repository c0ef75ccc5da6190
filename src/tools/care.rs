//! How careful to be with a path (P4): tables over resolved paths. Pure.
//!
//! Names are compared folded: case and combining marks do not count, because some file systems
//! treat such spellings as the same file.

use std::path::{Path, PathBuf};

use crate::types::tool::PathCare;

/// What the caller wants to do with the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Edit,
}

/// Folders that the tables need to know.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) home: PathBuf,
    /// The daemon's own folders.
    pub(super) protected: Vec<PathBuf>,
}

/// Classifies a resolved path for one access: what matters for reading (secrets) and what
/// matters for writing are different questions.
pub(super) fn care(path: &Path, access: Access, places: &Places) -> PathCare {
    let parts = folded(path);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let below_home = {
        let home = folded(&places.home);
        (!home.is_empty()
            && parts.len() > home.len()
            && parts.iter().zip(&home).all(|(a, b)| *a == b.as_str()))
        .then(|| &parts[home.len()..])
    };
    let daemon = is_daemon_folder(&parts, below_home, places);
    match access {
        Access::Read if daemon || is_secret(&parts, below_home) => PathCare::Secret,
        Access::Read => PathCare::Ordinary,
        Access::Edit if daemon || is_git_control(&parts) => PathCare::Protected,
        Access::Edit => match agentd_folder(&parts) {
            Some(care) => care,
            None if is_auto_executed(&parts, below_home) => PathCare::AutoExecuted,
            None if is_secret(&parts, below_home) => PathCare::Secret,
            None => PathCare::Ordinary,
        },
    }
}

/// The parts of a path as a file system that ignores case and marks would compare them.
fn folded(path: &Path) -> Vec<String> {
    path.iter().filter(|part| *part != "/").map(|part| fold(&part.to_string_lossy())).collect()
}

fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| {
            !matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
                | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}'
                | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        })
        .flat_map(char::to_lowercase)
        // The Kelvin sign and the long s fold to ASCII letters as well.
        .map(|c| match c {
            '\u{17f}' => 's',
            c => c,
        })
        .collect()
}

/// The daemon's configuration, data and runtime folders: the configured ones and the defaults.
fn is_daemon_folder(parts: &[&str], below_home: Option<&[&str]>, places: &Places) -> bool {
    let configured = places.protected.iter().any(|folder| {
        let folder = folded(folder);
        !folder.is_empty()
            && folder.len() <= parts.len()
            && folder.iter().zip(parts).all(|(a, b)| a.as_str() == *b)
    });
    configured
        || matches!(parts, ["etc", "agentd", ..] | ["run", "user", _, "agentd", ..])
        || matches!(below_home, Some([".config", "agentd", ..] | [".local", "share" | "state", "agentd", ..]))
}

/// What git runs or obeys: hooks, configuration, and the `.git` entry itself.
fn is_git_control(parts: &[&str]) -> bool {
    let Some(at) = parts.iter().position(|part| *part == ".git") else { return false };
    match &parts[at + 1..] {
        [] => true,
        inner => {
            inner.contains(&"hooks")
                || inner.last().is_some_and(|l| matches!(*l, "config" | "config.worktree"))
        }
    }
}

/// `.agentd/` and what is in it, at any depth; `None` elsewhere.
fn agentd_folder(parts: &[&str]) -> Option<PathCare> {
    let at = parts.iter().position(|part| *part == ".agentd")?;
    Some(match parts.get(at + 1) {
        Some(&("agents" | "commands" | "skills")) => PathCare::AutoExecuted,
        _ => PathCare::Protected,
    })
}

/// Folders of which every file is run or obeyed by some program.
const OBEYED_FOLDERS: &[&str] = &[
    ".git",
    ".hg",
    ".claude",
    ".kode",
    ".agent",
    ".agents",
    ".codex",
    ".cursor",
    ".gemini",
    ".windsurf",
    ".husky",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".circleci",
    ".cargo",
    ".direnv",
    ".mvn",
    ".yarn",
    ".ssh",
    ".gnupg",
];

/// Files that are run or obeyed without anybody naming them.
const OBEYED_FILES: &[&str] = &[
    // Shells and sessions.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    "config.fish",
    ".inputrc",
    ".xinitrc",
    ".xsession",
    ".xprofile",
    ".xsessionrc",
    ".pam_environment",
    ".envrc",
    ".direnvrc",
    ".tmux.conf",
    ".screenrc",
    "crontab",
    ".crontab",
    // Version control and package managers.
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".hgrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "pip.conf",
    ".condarc",
    ".gemrc",
    ".bundlerc",
    ".curlrc",
    ".wgetrc",
    // Editors, debuggers, interpreters.
    ".vimrc",
    ".gvimrc",
    ".exrc",
    ".nvimrc",
    ".emacs",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    ".irbrc",
    ".pryrc",
    ".pythonrc",
    ".pythonstartup",
    ".rprofile",
    ".psqlrc",
    ".sqliterc",
    ".editrc",
    ".mailcap",
    "sitecustomize.py",
    "usercustomize.py",
    "conftest.py",
    // Hooks of tools.
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".gitlab-ci.yml",
    ".mise.toml",
    "mise.toml",
    ".rtx.toml",
    // Instructions for agents.
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "agent.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".aider.conf.yml",
    "copilot-instructions.md",
    ".mcp.json",
    ".mcprc",
];

fn is_auto_executed(parts: &[&str], below_home: Option<&[&str]>) -> bool {
    let Some((name, folders)) = parts.split_last() else { return false };
    folders.iter().chain([name]).any(|folder| OBEYED_FOLDERS.contains(folder))
        || OBEYED_FILES.contains(name)
        || name.ends_with(".pth")
        || folders
            .windows(2)
            .any(|pair| matches!(pair, [".github", "workflows" | "actions" | "instructions"]))
        || matches!(
            below_home,
            Some(
                ["bin", ..]
                    | [".local", "bin", ..]
                    | [".config", "autostart" | "systemd" | "fish" | "git" | "nvim" | "environment.d", ..]
                    | [".bashrc.d" | ".zshrc.d" | ".profile.d" | ".oh-my-zsh" | ".vim" | ".emacs.d", ..]
                    | ["library", "launchagents", ..]
            )
        )
        || matches!(parts, ["etc", ..] | ["var", "spool", "cron", ..])
}

/// Folders of credentials.
const SECRET_FOLDERS: &[&str] =
    &[".ssh", ".aws", ".azure", ".gnupg", ".kube", ".password-store", ".docker", ".secrets", ".gcloud"];

/// Files of credentials.
const SECRET_FILES: &[&str] = &[
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".dockercfg",
    ".vault-token",
    ".boto",
    ".s3cfg",
    ".rclone.conf",
    "rclone.conf",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "client_secret.json",
    "terraform.tfvars",
    "terraform.tfstate",
    "master.key",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".node_repl_history",
    ".mysql_history",
];

const SECRET_ENDINGS: &[&str] = &[
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".p8",
    ".pkcs12",
    ".tfstate",
    ".gpg",
    ".age",
];

/// Samples of `.env` files hold no secrets by their purpose.
const HARMLESS_ENV: &[&str] = &["example", "sample", "template", "dist", "defaults", "schema"];

fn is_secret(parts: &[&str], below_home: Option<&[&str]>) -> bool {
    let Some((name, folders)) = parts.split_last() else { return false };
    if folders.iter().chain([name]).any(|folder| SECRET_FOLDERS.contains(folder)) {
        return !name.ends_with(".pub");
    }
    let is_env = match name.strip_prefix(".env") {
        Some("") => true,
        Some(rest) => rest.strip_prefix('.').is_some_and(|kind| !HARMLESS_ENV.contains(&kind)),
        None => name.ends_with(".env") && !name.starts_with("example."),
    };
    // `secrets.json`, `secret.yaml`, `secrets` – but not `secrets.rs`.
    let is_named_secret = {
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        matches!(stem, "secret" | "secrets")
            && matches!(
                ending,
                "" | "json"
                    | "yaml"
                    | "yml"
                    | "toml"
                    | "env"
                    | "txt"
                    | "ini"
                    | "xml"
                    | "properties"
                    | "enc.yaml"
            )
    };
    let is_key_by_ending = SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending));
    let is_service_account = (name.starts_with("service-account") || name.starts_with("service_account"))
        && name.ends_with(".json");
    is_env
        || is_named_secret
        || is_key_by_ending
        || is_service_account
        || SECRET_FILES.contains(name)
        || matches!(parts, ["etc", "shadow" | "gshadow" | "shadow-" | "gshadow-"])
        || matches!(
            below_home,
            Some(
                [".config", "gcloud" | "gh" | "op" | "hub" | "google-chrome" | "chromium" | "sops", ..]
                    | [".local", "share", "keyrings", ..]
                    | [".mozilla" | ".thunderbird", ..]
            )
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use PathCare::{AutoExecuted, Ordinary, Protected, Secret};

    fn check(path: &str, read: PathCare, edit: PathCare) {
        let places = Places { home: "/home/u".into(), protected: vec!["/run/x/agentd".into()] };
        assert_eq!(care(Path::new(path), Access::Read, &places), read, "reading {path}");
        assert_eq!(care(Path::new(path), Access::Edit, &places), edit, "editing {path}");
    }

    #[test]
    fn paths_are_classified_by_what_they_are() {
        for (path, read, edit) in [
            ("/w/src/main.rs", Ordinary, Ordinary),
            ("/w/..config/x", Ordinary, Ordinary),
            ("/w/Makefile", Ordinary, Ordinary),
            ("/w/secrets.rs", Ordinary, Ordinary),
            ("/w/.env.example", Ordinary, Ordinary),
            ("/w/environment", Ordinary, Ordinary),
            ("/w/git/hooks/x", Ordinary, Ordinary),
            // The daemon's own.
            ("/run/x/agentd/agentd.sock", Secret, Protected),
            ("/run/x/agentd2/a", Ordinary, Ordinary),
            ("/home/u/.config/agentd/config.toml", Secret, Protected),
            ("/home/u/.local/share/agentd/x.db", Secret, Protected),
            ("/run/user/1000/agentd/agentd.sock", Secret, Protected),
            ("/w/.agentd", Ordinary, Protected),
            ("/w/.agentd/policy.toml", Ordinary, Protected),
            ("/w/.agentd\u{301}/policy.toml", Ordinary, Protected),
            ("/w/.AgentD/Policy.toml", Ordinary, Protected),
            ("/w/.agentd/agents/a.md", Ordinary, AutoExecuted),
            ("/w/.agentd/skills/a/SKILL.md", Ordinary, AutoExecuted),
            // git.
            ("/w/.git", Ordinary, Protected),
            ("/w/.git/config", Ordinary, Protected),
            ("/w/.GIT/hooks/pre-commit", Ordinary, Protected),
            ("/w/.git/modules/x/hooks/post-checkout", Ordinary, Protected),
            ("/w/.git/worktrees/a/config.worktree", Ordinary, Protected),
            ("/w/.git/HEAD", Ordinary, AutoExecuted),
            // Run or obeyed automatically.
            ("/home/u/.bashrc", Ordinary, AutoExecuted),
            ("/w/.envrc", Ordinary, AutoExecuted),
            ("/w/AGENTS.md", Ordinary, AutoExecuted),
            ("/w/sub/CLAUDE.md", Ordinary, AutoExecuted),
            ("/w/conftest.py", Ordinary, AutoExecuted),
            ("/w/.Agent/Policy.toml", Ordinary, AutoExecuted),
            ("/w/.claude/agents/x.md", Ordinary, AutoExecuted),
            ("/w/.vscode/tasks.json", Ordinary, AutoExecuted),
            ("/w/.github/workflows/ci.yml", Ordinary, AutoExecuted),
            ("/home/u/.config/systemd/user/x.service", Ordinary, AutoExecuted),
            ("/home/u/bin/ls", Ordinary, AutoExecuted),
            ("/w/bin/ls", Ordinary, Ordinary),
            ("/etc/passwd", Ordinary, AutoExecuted),
            // Secrets.
            ("/w/.env", Secret, Secret),
            ("/w/.env.production", Secret, Secret),
            ("/w/server.pem", Secret, Secret),
            ("/w/secrets.json", Secret, Secret),
            ("/w/id_rsa", Secret, Secret),
            ("/w/id_rsa.pub", Ordinary, Ordinary),
            ("/home/u/.ssh/id_rsa", Secret, AutoExecuted),
            ("/home/u/.ssh/config", Secret, AutoExecuted),
            ("/home/u/.aws/credentials", Secret, Secret),
            ("/home/u/.npmrc", Secret, AutoExecuted),
            ("/etc/shadow", Secret, AutoExecuted),
        ] {
            check(path, read, edit);
        }
    }
}
