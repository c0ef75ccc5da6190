//! Where a word of a command line points, by its text alone: nothing is looked up.
//!
//! Names are compared without case and without marks that some file systems ignore, as paths of
//! the file tools are.

use super::hatch::{Kind, Rows};
use super::word::{Marks, Word};

/// The folders that a judgement knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folders<'a> {
    pub(super) workspace: &'a str,
    pub(super) home: &'a str,
}

/// What a path is to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Care {
    Ordinary,
    /// Writing asks.
    Careful,
    /// Writing is denied.
    Protected,
}

/// A path with dots and double slashes taken out; `None` if it is not known.
pub(super) fn resolve(word: &str, is_home: bool, folder: &str, folders: Folders<'_>) -> String {
    let variable = |name: &str| {
        let rest = word.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    };
    let joined = if is_home {
        format!("{}/{}", folders.home, &word[1..])
    } else if let Some(rest) = variable("$HOME") {
        format!("{}{rest}", folders.home)
    } else if let Some(rest) = variable("$PWD") {
        format!("{folder}{rest}")
    } else if word.starts_with('/') {
        word.to_owned()
    } else {
        format!("{folder}/{word}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether `path` is `folder` or lies in it.
pub(super) fn is_in(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.chars()
        .filter(|c| {
            !matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
                | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}'
                | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        })
        .flat_map(char::to_lowercase)
        .map(|c| if c == '\u{17f}' { 's' } else { c })
        .collect()
}

/// Whether a part of a path, perhaps with wildcards, can be `name`.
fn can_be(part: &str, name: &str, wild: bool) -> bool {
    if !wild {
        return part == name;
    }
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | ',');
    let Some(first) = part.find(special) else { return part == name };
    let last = part.rfind(special).map_or(0, |at| at + 1);
    // A wildcard in front does not match a dot; a brace can.
    if first == 0 && name.starts_with('.') && !part.starts_with('{') {
        return false;
    }
    if !name.starts_with(&part[..first]) || !name.ends_with(&part[last..]) {
        return false;
    }
    // Braces only put together what stands in them.
    let middle = &part[first..last];
    let choice = middle.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if let Some(choice) = choice
        && !choice.contains(['{', '}', '*', '?', '['])
        && !choice.contains("..")
    {
        let inner = &name[first..name.len() - (part.len() - last).min(name.len() - first)];
        return choice.split(',').any(|piece| piece == inner);
    }
    middle.contains(['*', '?', '['])
        || name.len() <= first + (part.len() - last)
        || middle.split(['{', '}', ',']).any(|piece| !piece.is_empty() && name.contains(piece))
}

/// How a resolved path is to be treated; `wild` if its text holds wildcards or braces.
pub(super) fn care(path: &str, wild: bool, folders: Folders<'_>) -> Care {
    let path = fold(path);
    let home = fold(folders.home);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is = |at: usize, name: &str| parts.get(at).is_some_and(|part| can_be(part, name, wild));
    let mut found = Care::Ordinary;
    let certain = if wild { Care::Careful } else { Care::Protected };
    for at in 0..parts.len() {
        if is(at, ".agentd") {
            let kept =
                parts.get(at + 1).is_some_and(|next| matches!(*next, "agents" | "commands" | "skills"));
            found = found.max(if kept { Care::Careful } else { certain });
        }
        if is(at, ".agent") {
            found = found.max(Care::Careful);
        }
        if is(at, ".git") {
            let inner = at + 1..parts.len();
            let hooks = inner.clone().any(|at| is(at, "hooks"));
            let config = parts.len() > at + 1
                && (is(parts.len() - 1, "config") || is(parts.len() - 1, "config.worktree"));
            found = found.max(if hooks || config { certain } else { Care::Careful });
        }
        if is(at, ".config") && is(at + 1, "agentd")
            || is(at, ".local") && (is(at + 1, "share") || is(at + 1, "state")) && is(at + 2, "agentd")
            || at == 0 && is(0, "run") && is(1, "user") && is(3, "agentd")
            || at == 0 && is(0, "etc") && is(1, "agentd")
            || parts[at].starts_with("$xdg_") && is(at + 1, "agentd")
        {
            found = found.max(certain);
        }
    }
    // Folders above the daemon's own: moving or removing them moves these.
    if is_in(&format!("{home}/.config"), &path) || is_in(&format!("{home}/.local/share"), &path) {
        found = found.max(Care::Careful);
    }
    if wild
        && path.contains('{')
        && (path.contains(".agent") || path.contains(".git/") || path.contains("agentd"))
    {
        found = found.max(Care::Careful);
    }
    found
}

/// Whether reading the path would show what a command must not see unasked: processes, the
/// daemon's own files, credentials in the home folder.
pub(super) fn is_private(path: &str, folders: Folders<'_>) -> bool {
    let path = fold(path);
    let home = fold(folders.home);
    if let Some(rest) = path.strip_prefix("/proc/") {
        let first = rest.split('/').next().unwrap_or_default();
        let whose = matches!(first, "self" | "thread-self" | "kcore" | "kmem")
            || first.contains(['*', '?', '[', '$', '{']);
        return whose || first.bytes().all(|c| c.is_ascii_digit());
    }
    let daemon = ["/.config/agentd", "/.local/share/agentd", "/.local/state/agentd"];
    if daemon
        .iter()
        .any(|folder| is_in(&path, &format!("{home}{folder}")) || path.contains(&format!("{folder}/")))
        || path.starts_with("/run/user/") && path.split('/').nth(4) == Some("agentd")
        || path.starts_with("/etc/agentd")
        || matches!(path.as_str(), "/etc/shadow" | "/etc/gshadow" | "/dev/mem" | "/dev/kmem")
        || path.starts_with("/dev/tcp/")
        || path.starts_with("/dev/udp/")
    {
        return true;
    }
    let Some(rest) = path.strip_prefix(&format!("{home}/")) else { return false };
    let (first, more) = rest.split_once('/').unwrap_or((rest, ""));
    matches!(
        first,
        ".aws"
            | ".azure"
            | ".gnupg"
            | ".kube"
            | ".password-store"
            | ".netrc"
            | ".pgpass"
            | ".git-credentials"
            | ".docker"
            | ".vault-token"
            | ".npmrc"
            | ".pypirc"
            | ".my.cnf"
            | ".secrets"
    ) || first == ".ssh" && !more.ends_with(".pub")
        || first == ".config" && (more.starts_with("gcloud") || more.starts_with("gh"))
        || rest.starts_with(".local/share/keyrings")
}

/// Whether the name is that of a file that likely holds secrets, wherever it lies.
pub(super) fn is_secret(path: &str) -> bool {
    let path = fold(path);
    path.split('/').any(|part| {
        let env = match part.strip_prefix(".env") {
            Some("") => true,
            Some(rest) => rest.strip_prefix('.').is_some_and(|kind| {
                !matches!(kind, "example" | "sample" | "template" | "dist" | "defaults" | "schema")
            }),
            None => part.ends_with(".env") && part != "example.env",
        };
        let ending = [
            ".pem",
            ".key",
            ".p12",
            ".pfx",
            ".jks",
            ".keystore",
            ".kdbx",
            ".ppk",
            ".p8",
            ".tfstate",
            ".tfvars",
            ".gpg",
            ".age",
        ]
        .iter()
        .any(|ending| part.ends_with(ending));
        let name = part.split('.').next().unwrap_or_default();
        env || ending
            || matches!(
                part,
                ".ssh"
                    | ".aws"
                    | ".gnupg"
                    | ".kube"
                    | ".docker"
                    | ".secrets"
                    | ".netrc"
                    | "_netrc"
                    | ".pgpass"
                    | ".npmrc"
                    | ".pypirc"
                    | ".git-credentials"
                    | ".htpasswd"
                    | ".dockercfg"
                    | "id_rsa"
                    | "id_dsa"
                    | "id_ecdsa"
                    | "id_ed25519"
                    | "credentials"
                    | "master.key"
                    | ".bash_history"
                    | ".zsh_history"
                    | ".vault-token"
            )
            || matches!(
                name,
                "secret"
                    | "secrets"
                    | "credentials"
                    | "service-account"
                    | "service_account"
                    | "client_secret"
            ) && !part.ends_with(".rs")
                && !part.ends_with(".py")
                && !part.ends_with(".go")
                && !part.ends_with(".ts")
                && !part.ends_with(".js")
                && !part.ends_with(".md")
            || part.starts_with("service-account") && part.ends_with(".json")
    })
}

/// Whether a part of a path with wildcards may turn out to be the name of a file or folder of secrets,
/// as far as the name goes; the ending is for [`is_secret`].
pub(super) fn may_be_secret(part: &str) -> bool {
    let part = fold(part);
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']');
    let (Some(first), Some(last)) = (part.find(special), part.rfind(special)) else { return false };
    let begin = &part[..first];
    let end = part[last + 1..].split('.').next().unwrap_or_default();
    [
        "secret",
        "secrets",
        "credentials",
        "service-account",
        "service_account",
        "client_secret",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "_netrc",
    ]
    .iter()
    .any(|name| name.starts_with(begin) && name.ends_with(end))
        || "service-account".starts_with(begin)
        || begin.starts_with("service-account")
}

/// The texts within a word that may be paths: the whole, a value behind `=` or `:`, a value that
/// touches its letter; with `texts` also what stands between blanks and quotes.
pub(super) fn candidates(word: &Word, texts: bool) -> Vec<(&str, bool)> {
    let text = word.text.as_str();
    let mut found = vec![(text, word.marks.has(Marks::HOME))];
    let tilde = |rest: &str| rest.starts_with("~/") || rest == "~";
    for sign in ['=', ':', '@', ','] {
        for (at, _) in text.match_indices(sign).take(8) {
            let rest = &text[at + 1..];
            if !rest.is_empty() {
                found.push((rest, tilde(rest)));
            }
        }
    }
    if let Some(at) = text.find(':') {
        found.push((&text[..at], tilde(&text[..at])));
    }
    if text.starts_with('-') && !text.starts_with("--") {
        // `-ofile`, `-xo.agentd/x`
        for (at, _) in text.char_indices().skip(2).take(4) {
            found.push((&text[at..], tilde(&text[at..])));
        }
    }
    if texts {
        // Texts for another program: paths in them stand between blanks and quotes.
        for part in text.split([' ', '\'', '"', '(', ')', ';', '\t', '\n', '>', '<']).take(64) {
            if part.contains('/') {
                found.push((part, tilde(part)));
            }
        }
    }
    found
}

/// Which of its words a command writes.
pub(super) fn is_written(rows: Rows, at: usize, words: &[Word]) -> bool {
    match rows.kind() {
        Kind::Reads => false,
        Kind::Writes | Kind::Tool => true,
        Kind::Copies => {
            let text = words[at].text.as_str();
            let named = |word: &str| word == "-t" || word == "--target-directory" || word == "-Dt";
            let target = words.iter().any(|word| {
                named(&word.text) || word.text.starts_with("--target") || is_short_target(&word.text)
            });
            if target {
                text.starts_with("--t")
                    || is_short_target(text)
                    || at > 0 && named(&words[at - 1].text)
                    || at > 0 && words[at - 1].text.starts_with("--t") && !words[at - 1].text.contains('=')
                    || at > 0 && is_short_target(&words[at - 1].text)
            } else {
                let last = words.iter().rposition(|word| !word.text.starts_with('-') || word.text == "-");
                last == Some(at) || text.starts_with('-')
            }
        }
    }
}

/// `--output=FILE` and its like: a file that even a program which else reads would write.
pub(super) fn is_output(text: &str) -> bool {
    let Some((name, _)) = text.strip_prefix("--").and_then(|text| text.split_once('=')) else { return false };
    name.starts_with("out")
        || ["output", "write", "log-file", "logfile", "save", "dump", "prefix"]
            .iter()
            .any(|word| name.contains(word))
}

/// `-t`, `-at`, `-tDIR`: a cluster with the letter of the target folder.
fn is_short_target(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains('t')
}
