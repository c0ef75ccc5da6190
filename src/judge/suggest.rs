//! Grants that a user could give for a call like this one, narrowest first.
//!
//! These are candidates only; `judge` keeps those that would really allow the call.

use std::path::Path;
use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::glob::escape;
use super::rule::Rule;
use types::invisible_chars::is_invisible;
use types::permission::RuleKind;
use types::slug::slug;
use types::tool::{PathSensitivity, Subject};

/// Maximum bytes of a suggested exact rule: a user cannot review a longer one.
const MAX_EXACT_BYTES: usize = 500;

/// Programs whose name alone does not tell the effect of a call, so that it is never suggested as a
/// prefix. They run their arguments or input, act as another user or on the machine, remove, move or
/// unpack, or connect to the daemon.
static NEVER_A_PREFIX: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
    "\
    redis-cli valkey-cli gdd ginstall gshred gchmod gchown gln az gcloud grm gmv gcp gtar bsdtar sh bash \
    dash zsh ksh fish csh tcsh busybox python pypy perl ruby node nodejs deno bun php lua luajit tclsh \
    wish expect autoexpect dagger frida sysdig bats pm2 forever awk gawk mawk nawk sed ed ex vi vim nvim \
    emacs nano osascript pwsh powershell rscript r julia ghci scala groovy java jshell npx bunx uvx uv \
    pipx eval exec source command builtin env xargs parallel find fd nice ionice nohup setsid timeout \
    time stdbuf watch entr script strace ltrace gdb lldb valgrind perf flock make gmake ninja just task \
    tmux screen trap alias export set unset declare typeset local readonly enable hash shopt test ssh \
    scp sftp rsync nc ncat netcat socat telnet ftp curl wget http xh aria sudo doas su runuser pkexec \
    chroot unshare nsenter bwrap systemctl systemd-run service crontab at batch mount umount dd mkfs \
    fdisk parted kill pkill killall reboot shutdown halt poweroff iptables nft ip chmod chown chgrp \
    chattr setfacl passwd useradd usermod visudo apt apt-get dpkg yum dnf rpm pacman apk brew snap \
    flatpak gpg openssl op pass vault rm rmdir unlink shred truncate mv cp ln install tee tar zip unzip \
    gzip gunzip cpio ar split patch sort rg ag jj less more man agentd agentctl"
        .split_whitespace()
        .collect()
});

/// Programs whose second word is a verb, with the verbs that are as unspecific as the program alone.
const VERBS: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "config",
            "submodule",
            "bisect",
            "filter-branch",
            "rebase",
            "difftool",
            "mergetool",
            "grep",
            "hook",
            "lfs",
        ],
    ),
    ("cargo", &["run", "install", "login", "config"]),
    ("npm", &["exec", "x", "config", "set", "login", "token", "explore"]),
    ("pnpm", &["exec", "dlx", "config", "x"]),
    ("yarn", &["exec", "dlx", "config", "node"]),
    ("go", &["run", "generate", "tool", "env"]),
    ("pip", &["config"]),
    ("poetry", &["run", "config", "shell"]),
    (
        "docker",
        &[
            "run",
            "exec",
            "cp",
            "build",
            "compose",
            "context",
            "login",
            "container",
            "buildx",
            "system",
            "volume",
            "image",
            "network",
            "plugin",
            "swarm",
            "service",
            "stack",
            "secret",
            "config",
            "builder",
            "node",
            "load",
            "rm",
            "rmi",
            "import",
            "commit",
            "tag",
            "manifest",
            "trust",
            "checkpoint",
        ],
    ),
    (
        "podman",
        &[
            "run",
            "exec",
            "cp",
            "build",
            "unshare",
            "login",
            "container",
            "system",
            "volume",
            "image",
            "network",
            "machine",
            "secret",
            "pod",
            "kube",
            "play",
            "generate",
            "rm",
            "rmi",
            "load",
            "import",
            "commit",
        ],
    ),
    ("kubectl", &["exec", "run", "cp", "config", "debug", "apply", "delete", "proxy", "edit"]),
    (
        "gh",
        &[
            "api",
            "auth",
            "alias",
            "extension",
            "secret",
            "config",
            "codespace",
            "repo",
            "gist",
            "pr",
            "workflow",
            "run",
            "release",
            "issue",
            "variable",
            "ssh-key",
            "gpg-key",
            "cache",
            "project",
            "label",
            "ruleset",
            "co",
        ],
    ),
    ("rustup", &["run", "override", "self"]),
    ("terraform", &["apply", "destroy", "console"]),
    ("helm", &["plugin", "install", "upgrade"]),
    ("gradle", &[]),
    ("mvn", &["exec"]),
    ("bundle", &["exec", "config"]),
    ("composer", &["exec", "config", "global"]),
    ("dotnet", &["run", "exec", "tool"]),
    ("swift", &["run"]),
    ("zig", &["run"]),
    ("mix", &["run", "cmd"]),
];

/// Rules that may cover the call, narrowest first. Each one parses back to the same rule.
pub(super) fn candidates(workspace: &Path, home: &Path, subject: &Subject) -> Vec<Rule> {
    let texts = match subject {
        Subject::Bash { command, .. } => for_command(command),
        Subject::Read { path } => for_path("Read", workspace, home, &path.path, path.sensitivity),
        Subject::Edit { path } => for_path("Edit", workspace, home, &path.path, path.sensitivity),
        // A single key press must not grant deleting all files of a folder, so only the narrowest rule
        // is suggested.
        Subject::Delete { path } => {
            for_path("Delete", workspace, home, &path.path, path.sensitivity).into_iter().take(1).collect()
        }
        Subject::Web { host, .. } => vec![format!("WebFetch(domain:{host})")],
        Subject::Several { parts } => {
            let mut rules: Vec<Rule> = Vec::new();
            for rule in parts.iter().flat_map(|part| candidates(workspace, home, part)) {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
            return rules;
        }
        // The approval mode allows sub-agents without a request; only ask rules and safe mode require
        // one.
        Subject::Task { agent, .. } => vec![format!("Task({})", slug(agent)), "Task".to_owned()],
        Subject::Blob { .. }
        | Subject::Background { .. }
        | Subject::Session { .. }
        | Subject::Question { .. }
        | Subject::ProposedPlan(_) => Vec::new(),
        Subject::Tool { name } | Subject::Mcp { name, .. } => vec![name.clone()],
    };
    texts
        .into_iter()
        .filter_map(|text| Rule::in_list(RuleKind::Allow, &text).ok().filter(|rule| rule.as_str() == text))
        .collect()
}

fn for_command(command: &str) -> Vec<String> {
    let command = command.trim();
    let mut texts = Vec::new();
    if command.len() <= MAX_EXACT_BYTES && !command.ends_with(":*") && command.chars().all(is_visible) {
        texts.push(format!("Bash({command})"));
    }
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    if is_plain(command)
        && let Some(prefix) = safe_prefix(&words)
    {
        texts.push(format!("Bash({prefix}:*)"));
    }
    texts
}

/// The prefix to suggest for a line with one command, given by its first words. The text of the line may
/// be too long to be reviewed, such as a message of several lines.
pub(super) fn prefix(words: &[&str]) -> Option<Rule> {
    format!("Bash({}:*)", safe_prefix(words)?).parse().ok()
}

/// Whether the text contains only characters that the shell treats literally, and `*`.
fn is_plain(command: &str) -> bool {
    command.chars().all(|c| {
        c.is_ascii_alphanumeric()
            || matches!(c, ' ' | '_' | '.' | '/' | ':' | '=' | '@' | ',' | '+' | '-' | '*')
    })
}

/// Whether the character is visible to a user.
fn is_visible(c: char) -> bool {
    !is_invisible(c) && (c == ' ' || !c.is_whitespace())
}

/// The prefix to suggest: the program, or the program and its verb. `None` if these words do not
/// determine the effect.
fn safe_prefix(words: &[&str]) -> Option<String> {
    let program = *words.first()?;
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
    };
    // `python3.11` and `python3` are python.
    let stem = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_unspecific = |name: &str| NEVER_A_PREFIX.contains(name);
    if !is_name(program) || is_unspecific(program) || is_unspecific(stem) {
        return None;
    }
    match VERBS.iter().find(|(name, _)| *name == program || *name == stem) {
        None => Some(program.to_owned()),
        Some((_, unsafe_verbs)) => {
            let verb = words.get(1)?;
            (is_name(verb) && !unsafe_verbs.contains(verb)).then(|| format!("{program} {verb}"))
        }
    }
}

fn for_path(
    tool: &str,
    workspace: &Path,
    home: &Path,
    path: &Path,
    sensitivity: PathSensitivity,
) -> Vec<String> {
    let Some(text) = path.to_str() else { return Vec::new() };
    let mut texts = vec![format!("{tool}({})", escape(text))];
    let Some(folder) = path.parent().filter(|_| sensitivity == PathSensitivity::Ordinary) else {
        return texts;
    };
    if let Ok(relative) = folder.strip_prefix(workspace) {
        match relative.to_str() {
            Some("") => texts.push(format!("{tool}(**)")),
            Some(relative) => texts.push(format!("{tool}({}/**)", escape(relative))),
            None => {}
        }
    } else if folder != Path::new("/")
        && !home.starts_with(folder)
        && let Some(folder) = folder.to_str()
    {
        texts.push(format!("{tool}({}/**)", escape(folder)));
    }
    texts
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use types::tool::ResolvedPath;

    fn check(subject: &Subject, expected: &[&str]) {
        let got: Vec<String> = candidates(Path::new("/w/proj"), Path::new("/home/u"), subject)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(got, expected, "{subject:?}");
    }

    #[test]
    fn command_suggestions_are_exact_text_and_safe_prefix() {
        for (command, expected) in [
            ("npm run build", &["Bash(npm run build)", "Bash(npm run:*)"][..]),
            ("cargo test --lib x", &["Bash(cargo test --lib x)", "Bash(cargo test:*)"]),
            ("ls -la", &["Bash(ls -la)", "Bash(ls:*)"]),
            ("git status", &["Bash(git status)", "Bash(git status:*)"]),
            ("git", &["Bash(git)"]),
            ("git -C x status", &["Bash(git -C x status)"]),
            ("git config x y", &["Bash(git config x y)"]),
            ("python3 x.py", &["Bash(python3 x.py)"]),
            ("python3.11 x.py", &["Bash(python3.11 x.py)"]),
            ("sudo ls", &["Bash(sudo ls)"]),
            ("rm x", &["Bash(rm x)"]),
            ("./run.sh", &["Bash(./run.sh)"]),
            ("A=b ls", &["Bash(A=b ls)"]),
            ("ls | wc -l", &["Bash(ls | wc -l)"]),
            ("echo x:*", &["Bash(echo:*)"]),
            // No rule for exactly this text: an unquoted star is refused.
            ("wc -l *.rs", &["Bash(wc:*)"]),
            ("rm *", &[]),
            ("git add *", &["Bash(git add:*)"]),
            ("grep -rn 'a*' src", &["Bash(grep -rn 'a*' src)"]),
            ("a\nb", &[]),
            ("a \u{202e}b", &[]),
        ] {
            check(&Subject::command(command), expected);
        }
    }

    #[test]
    fn file_suggestions_are_path_and_folder() {
        let edit = |path: &str, sensitivity| Subject::Edit {
            path: ResolvedPath {
                path: PathBuf::from(path),
                in_workspace: path.starts_with("/w/proj"),
                sensitivity,
                matched_aliases: Vec::new(),
            },
        };
        let ordinary = PathSensitivity::Ordinary;
        check(&edit("/w/proj/src/a.rs", ordinary), &["Edit(/w/proj/src/a.rs)", "Edit(src/**)"]);
        check(&edit("/w/proj/a.rs", ordinary), &["Edit(/w/proj/a.rs)", "Edit(**)"]);
        check(&edit("/w/proj/[x]/a*.rs", ordinary), &["Edit(/w/proj/\\[x\\]/a\\*.rs)", "Edit(\\[x\\]/**)"]);
        check(&edit("/opt/x/a", ordinary), &["Edit(/opt/x/a)", "Edit(/opt/x/**)"]);
        check(&edit("/home/u/a", ordinary), &["Edit(/home/u/a)"]);
        check(&edit("/w/proj/.envrc", PathSensitivity::AutoExecuted), &["Edit(/w/proj/.envrc)"]);
    }
}
