//! Resolves words of a command line to paths by their text alone, without reading the disk.
//!
//! Names are compared without case and without marks that some file systems ignore, as the file tools
//! compare paths.

use std::path::{Path, PathBuf};

use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::call::WorkBudget;
use types::secret_names;

/// Work budget of one judgement, in steps. Work that is linear in the length of the line does not
/// count.
const MAX_STEPS: usize = 700_000;

/// The kind of repository that git finds in the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repository {
    /// A repository at the top of the workspace.
    #[default]
    Top,
    /// A repository above the workspace. It contains files outside the workspace.
    Above,
    /// No repository. git reports this, but `git diff` compares any two paths.
    Nowhere,
    /// Content of the workspace may look like a repository, whose settings may run programs.
    Content,
}

/// The folders of a judgement, and its remaining work budget.
#[derive(Debug)]
pub(crate) struct Folders {
    pub(crate) workspace: String,
    /// The additional folders of the workspace.
    additional_folders: Vec<String>,
    /// The working directory at the start of the line.
    pub(crate) start: String,
    pub(crate) home: String,
    /// The case-folded home folder, as names are compared, and folders in it.
    pub(crate) folded_home: String,
    settings_folder: String,
    share_folder: String,
    pub(crate) daemon: [String; 3],
    /// Folders of keys, for the guard of `bypass`.
    pub(crate) key_folders: Vec<String>,
    /// The kind of repository that git finds in the workspace.
    pub(crate) repository: Repository,
    /// Whether a deny or ask rule applies to reading some files. If so, a read-only command needs a
    /// grant unless it names all files that it shows.
    pub(crate) has_file_rules: bool,
    /// The work budget of the judgement. Path checks spend it.
    pub(crate) work_budget: WorkBudget,
}

impl Folders {
    /// All paths must be absolute and free of links.
    pub(crate) fn new(workspace: &Path, additional_folders: &[PathBuf], start: &Path, home: &Path) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let home = text(home);
        let folded_home = fold_case(home.trim_end_matches('/'));
        Self {
            workspace: text(workspace),
            additional_folders: additional_folders.iter().map(|folder| text(folder)).collect(),
            start: text(start),
            settings_folder: format!("{folded_home}/.config"),
            share_folder: format!("{folded_home}/.local/share"),
            daemon: ["/.config/agentd", "/.local/share/agentd", "/.local/state/agentd"]
                .map(|folder| format!("{folded_home}{folder}")),
            key_folders: Vec::new(),
            home,
            folded_home,
            repository: Repository::Top,
            has_file_rules: false,
            work_budget: WorkBudget::new(MAX_STEPS),
        }
    }

    /// Sets whether a deny or ask rule applies to reading some files.
    pub(crate) fn with_file_rules(self, has_file_rules: bool) -> Self {
        Self { has_file_rules, ..self }
    }

    /// Sets the folders of keys.
    pub(crate) fn with_key_folders(self, key_folders: &[PathBuf]) -> Self {
        let key_folders = key_folders.iter().map(|folder| folder.to_string_lossy().into_owned()).collect();
        Self { key_folders, ..self }
    }

    /// Sets the kind of repository that git finds in the workspace.
    pub(crate) fn with_repository(self, repository: Repository) -> Self {
        Self { repository, ..self }
    }

    /// The workspace and its additional folders.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.workspace).chain(&self.additional_folders).map(String::as_str)
    }

    /// Whether a resolved path lies in the workspace.
    pub(crate) fn contains_path(&self, path: &str) -> bool {
        self.roots().any(|root| is_in(path, root))
    }

    /// Whether a resolved folder is or contains a folder of the workspace or the home folder.
    pub(crate) fn contains_workspace_or_home(&self, folder: &str) -> bool {
        self.roots().chain([self.home.as_str()]).any(|inner| is_in(inner, folder))
    }

    /// Whether a path likely names a file with secrets. Once the budget is spent, every path may.
    pub(crate) fn may_be_secret(&self, path: &str) -> bool {
        !self.work_budget.spend(16 + 2 * path.len()) || is_secret(path)
    }

    /// Whether a text likely names a file with secrets, from any of these folders. The path of the
    /// workspace itself does not count.
    pub(crate) fn may_name_secret(&self, text: &str, cwds: &[String]) -> bool {
        self.may_be_secret(text)
            || cwds.iter().filter(|cwd| **cwd != self.workspace).any(|cwd| {
                let path = resolve_in(text, cwd, self);
                let root = self.roots().find(|root| is_in(&path, root)).unwrap_or_default();
                self.may_be_secret(&path[root.trim_end_matches('/').len()..])
            })
    }

    /// Whether a resolved path lies in one of the daemon's folders in the home folder.
    pub(crate) fn is_daemons(&self, path: &str) -> bool {
        let path = fold_case(path);
        self.daemon.iter().any(|folder| is_in(&path, folder))
    }

    /// Whether the line starts in another folder than the top of the workspace.
    pub(crate) fn starts_outside_top(&self) -> bool {
        self.start != self.workspace
    }
}

/// How a path is protected from writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathProtection {
    Ordinary,
    /// Writing needs a permission request.
    Careful,
    /// Writing is denied.
    Protected,
}

/// The absolute path of a word, without dots and double slashes. Once the budget is spent, the result
/// is `/`, which lies outside the workspace.
pub(crate) fn resolve_in(word: &str, folder: &str, folders: &Folders) -> String {
    resolve(word, false, folder, folders)
}

/// Same as `resolve_in`. With `is_home`, the word begins with the tilde of the home folder.
pub(crate) fn resolve(word: &str, is_home: bool, folder: &str, folders: &Folders) -> String {
    if !folders.work_budget.spend(12 + (word.len() + folder.len()) / 4) {
        return "/".to_owned();
    }
    let variable = |name: &str| {
        let rest = word.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    };
    let (base, rest) = if is_home {
        (folders.home.as_str(), &word[1..])
    } else if let Some(rest) = variable("$HOME") {
        (folders.home.as_str(), rest)
    } else if let Some(rest) = variable("$PWD").or_else(|| variable("~+")) {
        (folder, rest)
    } else if word.starts_with('/') {
        ("", word)
    } else {
        (folder, word)
    };
    let base = base.trim_end_matches('/');
    let mut path = String::with_capacity(base.len() + rest.len() + 1);
    path.push_str(base);
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => path.truncate(path.rfind('/').unwrap_or(0)),
            part => {
                path.push('/');
                path.push_str(part);
                // Follow the links that every machine has, so that a later `..` applies to their
                // target.
                match path.as_str() {
                    "/dev/fd" => path.replace_range(.., "/proc/self/fd"),
                    "/var/run" => path.replace_range(.., "/run"),
                    "/proc/self/cwd" => path.replace_range(.., folder.trim_end_matches('/')),
                    "/proc/self/root" => path.clear(),
                    _ => {}
                }
            }
        }
    }
    if path.is_empty() {
        path.push('/');
    }
    path
}

/// Whether an unquoted text begins with a tilde that does not mean the home folder: `~root/x`, `~+`, `~-`, `~1`. The
/// path that it means is not known.
pub(crate) fn is_other_tilde(text: &str) -> bool {
    text.strip_prefix('~').is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

/// Whether `path` is `folder` or lies in it.
pub(crate) fn is_in(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A name as file systems compare it that ignore case and some marks.
pub(crate) fn fold_case(name: &str) -> String {
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

/// Whether a component of a path, perhaps with wildcards, can be `name`.
pub(crate) fn can_be(part: &str, name: &str, has_wildcards: bool) -> bool {
    if !has_wildcards {
        return part == name;
    }
    let is_special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | ',');
    let Some(first) = part.find(is_special) else { return part == name };
    let last = part.rfind(is_special).map_or(0, |index| index + 1);
    // A leading wildcard does not match a dot, but a leading brace can expand to one.
    if first == 0 && name.starts_with('.') && !part.starts_with('{') {
        return false;
    }
    if !name.starts_with(&part[..first]) || !name.ends_with(&part[last..]) {
        return false;
    }
    // Braces without wildcards expand only to their alternatives.
    let middle = &part[first..last];
    let choice = middle.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if let Some(choice) = choice
        && !choice.contains(['{', '}', '*', '?', '['])
        && !choice.contains("..")
    {
        let inner = &name[first..name.len() - (part.len() - last).min(name.len() - first)];
        return choice.split(',').any(|piece| piece == inner);
    }
    // A sequence such as `{a..z}` yields names that its text does not contain, so it can be any name.
    middle.contains(['*', '?', '['])
        || middle.contains("..")
        || name.len() <= first + (part.len() - last)
        || middle.split(['{', '}', ',']).any(|piece| !piece.is_empty() && name.contains(piece))
}

/// A part of a path, and whether it holds wildcards or braces.
struct PathPart<'p> {
    text: &'p str,
    has_wildcards: bool,
}

impl PathPart<'_> {
    /// Whether this part can be the name.
    fn can_be(&self, name: &str) -> bool {
        if self.has_wildcards { can_be(self.text, name, true) } else { self.text == name }
    }
}

/// The protection of a resolved path. `has_wildcards` says that its text contains wildcards or braces.
pub(crate) fn path_protection(path: &str, has_wildcards: bool, folders: &Folders) -> PathProtection {
    // Moving or removing a folder above the daemon's folders would move or remove those.
    let is_above_daemon_folders =
        |path: &str| is_in(&folders.settings_folder, path) || is_in(&folders.share_folder, path);
    if !may_name_protected_path(path) {
        return if is_above_daemon_folders(&path.to_ascii_lowercase()) {
            PathProtection::Careful
        } else {
            PathProtection::Ordinary
        };
    }
    if !folders.work_budget.spend(24 + if has_wildcards { 2 * path.len() } else { path.len() }) {
        return PathProtection::Ordinary;
    }
    let path = fold_case(path);
    let is_special = |text: &str| has_wildcards && text.contains(['*', '?', '[', ']', '{', '}', ',']);
    let parts: Vec<PathPart<'_>> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|text| PathPart { text, has_wildcards: is_special(text) })
        .collect();
    let can_be_at = |index: usize, name: &str| parts.get(index).is_some_and(|part| part.can_be(name));
    let mut protection = PathProtection::Ordinary;
    // If one of the `named` components is a pattern, the path is perhaps not protected, so writing
    // asks. If all are literal, writing is denied.
    let protection_of_named = |named: &[usize]| {
        let is_open = named.iter().any(|index| parts.get(*index).is_some_and(|part| part.has_wildcards));
        if is_open { PathProtection::Careful } else { PathProtection::Protected }
    };
    let mut in_git = false;
    for index in 0..parts.len() {
        if can_be_at(index, ".agentd") {
            let extension_folders = ["agents", "commands", "skills"];
            let is_extension = parts.get(index + 1).is_some_and(|next| match next.has_wildcards {
                true => extension_folders.iter().any(|name| next.can_be(name)) && !next.can_be("config.toml"),
                false => extension_folders.contains(&next.text),
            });
            protection = protection.max(if is_extension {
                PathProtection::Careful
            } else {
                protection_of_named(&[index])
            });
        }
        if can_be_at(index, ".agent") {
            protection = protection.max(PathProtection::Careful);
        }
        // Only the first `.git` is checked, because its check covers all components after it.
        if !in_git && can_be_at(index, ".git") {
            in_git = true;
            let last = parts.len() - 1;
            let is_config = |index: usize| {
                ["config", "config.worktree", "commondir"].iter().any(|name| can_be_at(index, name))
            };
            let hooks = (index + 1..parts.len())
                .filter(|hooks| can_be_at(*hooks, "hooks"))
                .map(|hooks| protection_of_named(&[index, hooks]));
            let config = (last > index && is_config(last)).then(|| protection_of_named(&[index, last]));
            protection =
                hooks.chain(config).fold(protection.max(PathProtection::Careful), PathProtection::max);
        }
        let daemon_parts: &[usize] = if can_be_at(index, ".config") && can_be_at(index + 1, "agentd") {
            &[0, 1]
        } else if can_be_at(index, ".local")
            && (can_be_at(index + 1, "share") || can_be_at(index + 1, "state"))
            && can_be_at(index + 2, "agentd")
        {
            &[0, 1, 2]
        } else if index == 0 && can_be_at(0, "run") && can_be_at(1, "user") && can_be_at(3, "agentd") {
            &[0, 1, 3]
        } else if index == 0 && can_be_at(0, "etc") && can_be_at(1, "agentd") {
            &[0, 1]
        } else if parts[index].text.starts_with("$xdg_") && can_be_at(index + 1, "agentd") {
            &[1]
        } else {
            &[]
        };
        if !daemon_parts.is_empty() {
            let named: Vec<usize> = daemon_parts.iter().map(|after| index + after).collect();
            protection = protection.max(protection_of_named(&named));
        }
        if protection == PathProtection::Protected {
            return protection;
        }
    }
    if is_above_daemon_folders(&path) {
        protection = protection.max(PathProtection::Careful);
    }
    if has_wildcards
        && path.contains('{')
        && (path.contains(".agent") || path.contains(".git/") || path.contains("agentd"))
    {
        protection = protection.max(PathProtection::Careful);
    }
    protection
}

/// Whether a text may name a protected path at all. This quick check avoids the exact one for most
/// words.
pub(crate) fn may_name_protected_path(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().any(|(index, c)| match c {
        b'*' | b'?' | b'[' | b'{' | 0x80.. => true,
        b'a' | b'A' => begins_ignoring_case(&bytes[index..], b"agent"),
        b'.' => [&b".git"[..], b".config", b".local"]
            .iter()
            .any(|name| begins_ignoring_case(&bytes[index..], name)),
        _ => false,
    })
}

/// Whether bytes begin with a name, in any case.
fn begins_ignoring_case(bytes: &[u8], name: &[u8]) -> bool {
    bytes.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
}

/// Whether a path likely names a file with secrets, in any folder. The name of each folder in the path
/// counts as well, as in the file tools.
pub(crate) fn is_secret(path: &str) -> bool {
    const NAMES: &[&str] =
        &["secret", "secrets", "credentials", "service-account", "service_account", "client_secret"];
    const CODE: &[&str] = &[".rs", ".py", ".go", ".ts", ".js", ".md"];
    let path = fold_case(path);
    path.split('/').any(|part| {
        let name = part.split('.').next().unwrap_or_default();
        secret_names::is_folder(part)
            || secret_names::is_file(part)
            || part == ".docker"
            || NAMES.contains(&name) && !CODE.iter().any(|ending| part.ends_with(ending))
    })
}

/// Whether a component with wildcards may match the name of a file or folder of secrets. It checks only
/// the name; [`is_secret`] checks the ending.
pub(crate) fn may_be_secret(part: &str) -> bool {
    let part = fold_case(part);
    let is_special = |c: char| matches!(c, '*' | '?' | '[' | ']');
    let (Some(first), Some(last)) = (part.find(is_special), part.rfind(is_special)) else { return false };
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

/// The texts within a word that may be paths, each with whether it begins with `~`. These are the whole
/// word, the text after `=`, `:`, `@` or `,`, the text before `:`, and the text directly after an
/// option's letter.
pub(crate) fn candidates(word: &Word) -> Vec<(&str, bool)> {
    candidates_in(word, WordUse::Argument)
}

/// How a program reads a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordUse {
    /// As one argument.
    Argument,
    /// As a text for another program, so that paths in it stand between blanks and quotes.
    Text,
}

/// The texts within a word that may be paths, as `candidates` has them. In a text for another program, also the parts
/// between blanks and quotes.
pub(crate) fn candidates_in(word: &Word, word_use: WordUse) -> Vec<(&str, bool)> {
    let text = word.text.as_str();
    let mut texts = vec![(text, word.marks.has_any(Marks::HOME))];
    let has_signs = text.bytes().any(|c| matches!(c, b'=' | b':' | b'@' | b','));
    if !(has_signs || word_use == WordUse::Text || text.starts_with('-')) {
        return texts;
    }
    let begins_with_home = |rest: &str| rest.starts_with("~/") || rest == "~";
    for sign in ['=', ':', '@', ','] {
        for (index, _) in text.match_indices(sign).take(8) {
            let rest = &text[index + 1..];
            if !rest.is_empty() {
                texts.push((rest, begins_with_home(rest)));
            }
        }
    }
    if let Some(index) = text.find(':').filter(|index| *index > 1 || !text.starts_with('/')) {
        texts.push((&text[..index], begins_with_home(&text[..index])));
    }
    if text.starts_with('-') && !text.starts_with("--") {
        // `-ofile`, `-xo.agentd/x`: a path may begin after any letter that can be an option.
        let letters = text[1..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        // A text that is longer than any path (PATH_MAX) is not split and counts as `/`.
        let is_path = text.len() <= 4_096 + MAX_CLUSTER_LETTERS;
        let begins_ignoring_case =
            text.char_indices().skip(2).take(letters.clamp(4, MAX_CLUSTER_LETTERS)).filter(|_| is_path);
        for (index, _) in begins_ignoring_case {
            texts.push((&text[index..], begins_with_home(&text[index..])));
        }
        if letters > MAX_CLUSTER_LETTERS || !is_path {
            texts.push(("/", false));
        }
    }
    if word_use == WordUse::Text {
        for part in text.split([' ', '\'', '"', '(', ')', ';', '\t', '\n', '>', '<']).take(64) {
            if part.contains('/') {
                texts.push((part, begins_with_home(part)));
            }
        }
    }
    texts
}

/// Maximum number of option letters in one word. A word with more may contain any path.
const MAX_CLUSTER_LETTERS: usize = 40;

/// Whether an option such as `--output=FILE` names a file that even a read-only program would write.
pub(crate) fn is_output(text: &str) -> bool {
    let Some((name, _)) = text.strip_prefix("--").and_then(|text| text.split_once('=')) else { return false };
    name.starts_with("out")
        || ["output", "write", "log-file", "logfile", "save", "dump", "prefix"]
            .iter()
            .any(|word| name.contains(word))
}
