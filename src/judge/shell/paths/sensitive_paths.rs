//! Files that a command must not show without a request: processes, the daemon's own files, credentials
//! in home folders. Decided by the text of a path only, and by what a pattern in it may match.

use crate::shell::paths::resolve::{Folders, can_be, fold_case, is_in, is_secret};
use types::credentials::{self, CREDENTIALS, SETTINGS};

/// Whether reading the path would show something that needs a request: processes, the daemon's own
/// files, credentials in the home folder.
pub(crate) fn is_private(path_text: &str, folders: &Folders) -> bool {
    if !folders.work_budget.spend(8 + path_text.len() / 2) {
        return true;
    }
    let path = fold_case(path_text);
    // On most machines `/var/run` is a link to `/run`.
    let path = path.strip_prefix("/var").filter(|rest| rest.starts_with("/run/")).unwrap_or(&path);
    if let Some(rest) = path.strip_prefix("/proc/") {
        let first = rest.split('/').next().unwrap_or_default();
        let is_process_entry = matches!(first, "self" | "thread-self" | "kcore" | "kmem")
            || first.contains(['*', '?', '[', '$', '{']);
        return is_process_entry || first.bytes().all(|c| c.is_ascii_digit());
    }
    let within = ["/.config/agentd/", "/.local/share/agentd/", "/.local/state/agentd/"];
    if folders.daemon.iter().any(|folder| is_in(path, folder))
        || path.contains("/agentd/") && within.iter().any(|folder| path.contains(folder))
        || path.starts_with("/run/user/") && path.split('/').nth(4) == Some("agentd")
        || path.starts_with("/etc/agentd")
        || matches!(path, "/etc/shadow" | "/etc/gshadow" | "/dev/mem" | "/dev/kmem")
        || path.strip_prefix("/etc/").is_some_and(|name| {
            let first_wildcard = name.find(['*', '?', '[', '{']).unwrap_or(name.len());
            let may_name = first_wildcard > 0 || name.starts_with('{');
            first_wildcard < name.len()
                && may_name
                && ["shadow", "gshadow"].iter().any(|file| file.starts_with(&name[..first_wildcard]))
        })
        || path.starts_with("/dev/tcp/")
        || path.starts_with("/dev/udp/")
    {
        return true;
    }
    let below = path.strip_prefix(folders.folded_home.as_str()).and_then(|rest| rest.strip_prefix('/'));
    // Also in the home folders of other users.
    let in_home_of_others = || {
        let home = path.strip_prefix("/home/").and_then(|rest| Some(rest.split_once('/')?.1));
        home.or_else(|| path.strip_prefix("/root/"))
    };
    let Some(rest) = below.or_else(in_home_of_others) else { return false };
    // A pattern may match hidden files of an unknown home folder.
    let (first, more) = rest.split_once('/').unwrap_or((rest, ""));
    let below = match first {
        ".config" | ".cargo" => more,
        ".local" => more.strip_prefix("share/").unwrap_or(""),
        _ => "",
    };
    let lists_hidden = first.contains("{.") || first.contains(",.");
    if lists_hidden
        || first.starts_with('.') && has_wildcard(first)
        || below.split('/').next().is_some_and(has_wildcard)
    {
        return true;
    }
    if let Some(ssh_path) = rest.strip_prefix(".ssh/") {
        return !ssh_path.ends_with(".pub");
    }
    let parts: Vec<&str> = rest.split('/').collect();
    // Outside the workspace the name alone decides: copies of keys, `.env` of other projects.
    credentials::is_credential_path(&parts) || !folders.contains_path(path_text) && is_secret(rest)
}

/// Same for a path with wildcards: whether it may match such a file.
pub(crate) fn may_find_private(path: &str, folders: &Folders) -> bool {
    if !folders.work_budget.spend(64 + path.len()) {
        return true;
    }
    let path = fold_case(path);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is = |index: usize, name: &str| {
        parts.get(index).is_some_and(|part| can_be(part, name, has_wildcard(part)))
    };
    let is_any_process = |part: &&str| {
        has_wildcard(part)
            || matches!(*part, "self" | "thread-self")
            || part.bytes().all(|c| c.is_ascii_digit())
    };
    let is_of_machine = is(0, "etc") && ["shadow", "gshadow", "agentd"].iter().any(|name| is(1, name))
        || is(0, "proc") && parts.get(1).is_some_and(is_any_process)
        || is(0, "run") && is(1, "user") && is(3, "agentd");
    if is_of_machine {
        return true;
    }
    let home_parts: Vec<&str> = folders.folded_home.split('/').filter(|part| !part.is_empty()).collect();
    let is_own_home = home_parts.iter().enumerate().all(|(index, name)| is(index, name));
    [(is_own_home, home_parts.len()), (is(0, "home"), 2), (is(0, "root"), 1)].into_iter().any(
        |(is_home, depth)| {
            is_home
                && parts.get(depth).is_some()
                && may_match_sensitive(&parts[depth..], &folders.work_budget)
        },
    )
}

/// Whether a pattern below a home folder may match a file of the tables, or one of the daemon.
fn may_match_sensitive(parts: &[&str], work_budget: &crate::shell::programs::call::WorkBudget) -> bool {
    if !work_budget.spend(CREDENTIALS.len() + SETTINGS.len()) {
        return true;
    }
    let is = |sensitive: &&str| {
        let mut index = 0;
        sensitive.split('/').all(|name| {
            index += 1;
            parts
                .get(index - 1)
                .is_some_and(|part| can_be(part, &name.to_ascii_lowercase(), has_wildcard(part)))
        })
    };
    let is_public = parts.last().is_some_and(|part| part.ends_with(".pub"));
    let daemon_folders = [".config/agentd", ".local/share/agentd", ".local/state/agentd"];
    CREDENTIALS
        .iter()
        .chain(SETTINGS)
        .filter(|sensitive| **sensitive != ".ssh" || !is_public)
        .chain(&daemon_folders)
        .any(is)
}

/// Whether a component of a path has wildcards or braces.
fn has_wildcard(part: &str) -> bool {
    part.contains(['*', '?', '[', '{'])
}

#[cfg(test)]
mod tests {
    use crate::shell::paths::sensitive_paths::*;
    use std::path::Path;

    #[test]
    fn pattern_that_may_match_secret_is_sensitive() {
        let folders = Folders::new(Path::new("/w/proj"), &[], Path::new("/w/proj"), Path::new("/home/u"));
        let may = |path: &str| may_find_private(path, &folders);
        for path in [
            "/e*/shadow",
            "/*/*/.s*/id",
            "/*/.s*/i*",
            "/h*/u/.aws/credentials",
            "/home/*/.netrc",
            "/home/u/.s[a-z]h/id_rsa",
            "/p*/1/environ",
            "/?roc/self/environ",
            "/run/*/*/agentd/sock",
            "/home/u/.{ssh,x}/id_rsa",
            "/{root,x}/.ssh/id_rsa",
            "/home/u/.config/*/hosts.yml",
        ] {
            assert!(may(path), "{path}");
        }
        for path in [
            "/w/proj/src/*.rs",
            "/w/proj/*/Cargo.toml",
            "/home/u/*",
            "/home/u/work/*/.env.example",
            "/home/*/notes.txt",
            "/usr/*/share",
            "/etc/*.conf",
            "/home/*/.ssh/*.pub",
            "/w/proj/{src,tests}/*.rs",
            "/p*/cpuinfo",
        ] {
            assert!(!may(path), "{path}");
        }
    }
}
