//! The folder of policy files: reads follow changes on disk, and changes run one at a time.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};

use super::file::{Policy, PolicyEntry};
use base::crash;
use base::sync::lock;
use types::hex;
use types::permission::RuleKind;

/// Maximum size of a file in bytes, far above the needs of any user.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The scope of a policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyScope<'a> {
    /// The user's rules for all workspaces.
    User,
    /// The rules of one workspace, named by its real path.
    Workspace(&'a Path),
}

/// A policy file that could not be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The file exists but is invalid: none of its rules apply, and nothing is allowed without a request.
    #[error("the policy file {} cannot be used: {why}; fix it or move it away", .file.display())]
    Unsound {
        file: PathBuf,
        /// The reason, for the user.
        why: String,
    },
    /// The file could not be written. Its previous content applies.
    #[error("the policy file {} could not be written: {why}", .file.display())]
    Unwritable {
        file: PathBuf,
        /// The error of the operating system.
        why: String,
    },
    /// The rule is invalid.
    #[error("{0}")]
    BadRule(String),
}

/// Metadata of a file when it was read. Different metadata means different content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PolicyStamp {
    inode: u64,
    size: u64,
    mtime: (i64, i64),
    ctime: (i64, i64),
    mode: u32,
}

impl PolicyStamp {
    fn from_metadata(meta: &Metadata) -> Self {
        Self {
            inode: meta.ino(),
            size: meta.size(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            ctime: (meta.ctime(), meta.ctime_nsec()),
            mode: meta.mode(),
        }
    }
}

type CachedPolicy = (Option<PolicyStamp>, Result<Arc<Policy>, PolicyError>);

/// All policy files. The methods access the disk and block.
#[derive(Debug, Default)]
pub struct Policies {
    /// `None`: rules are not stored.
    dir: Option<PathBuf>,
    known: Mutex<HashMap<PathBuf, CachedPolicy>>,
    /// Held while a file is changed.
    changing: Mutex<()>,
}

impl Policies {
    /// Creates the policies of a folder, which is created with the first rule. Only one daemon may use it at a
    /// time.
    #[must_use]
    pub fn in_folder(dir: PathBuf) -> Self {
        Self { dir: Some(dir), ..Self::default() }
    }

    /// The path of a scope's file, which need not exist. Empty if rules are not stored.
    #[must_use]
    pub fn file(&self, place: PolicyScope<'_>) -> PathBuf {
        let Some(dir) = &self.dir else { return PathBuf::new() };
        match place {
            PolicyScope::User => dir.join("user.json"),
            PolicyScope::Workspace(path) => {
                let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
                dir.join(format!("{}.json", hex::encode(&hash)))
            }
        }
    }

    /// The current rules of a scope; none if it has no file.
    ///
    /// # Errors
    /// The file is invalid. It stays unchanged.
    pub fn read(&self, place: PolicyScope<'_>) -> Result<Arc<Policy>, PolicyError> {
        if self.dir.is_none() {
            return Ok(Arc::default());
        }
        let file = self.file(place);
        let stamp = match fs::symlink_metadata(&file) {
            Ok(meta) => Some(PolicyStamp::from_metadata(&meta)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(PolicyError::Unsound { file, why: error.to_string() }),
        };
        if let Some((seen, policy)) = lock(&self.known).get(&file)
            && *seen == stamp
        {
            return policy.clone();
        }
        let (seen, policy) = match stamp {
            None => (None, Ok(Arc::default())),
            Some(_) => match read_policy(&file, place) {
                Ok((seen, policy)) => (Some(seen), policy.map(Arc::new)),
                Err(error) => (stamp, Err(error.to_string())),
            },
        };
        let policy = policy.map_err(|why| PolicyError::Unsound { file: file.clone(), why });
        lock(&self.known).insert(file, (seen, policy.clone()));
        policy
    }

    /// Adds a rule unless it exists. It is synced to disk before this returns. Returns whether it was new.
    ///
    /// # Errors
    /// The rule or the file is invalid, or the file could not be written. Nothing has changed.
    pub fn add(&self, place: PolicyScope<'_>, entry: PolicyEntry) -> Result<bool, PolicyError> {
        let _changing = lock(&self.changing);
        let before = self.read(place)?;
        if before.contains(entry.kind, &entry.rule) {
            return Ok(false);
        }
        let mut entries = before.entries.clone();
        entries.push(entry);
        self.replace(place, entries)?;
        Ok(true)
    }

    /// Removes a rule. The change is synced to disk before this returns. Returns whether the rule existed.
    ///
    /// # Errors
    /// The file is invalid or could not be written. Nothing has changed.
    pub fn remove(&self, place: PolicyScope<'_>, kind: RuleKind, rule: &str) -> Result<bool, PolicyError> {
        let _changing = lock(&self.changing);
        let before = self.read(place)?;
        if !before.contains(kind, rule) {
            return Ok(false);
        }
        let stays = |entry: &&PolicyEntry| entry.kind != kind || entry.rule != rule;
        self.replace(place, before.entries.iter().filter(stays).cloned().collect())?;
        Ok(true)
    }

    fn replace(&self, place: PolicyScope<'_>, entries: Vec<PolicyEntry>) -> Result<(), PolicyError> {
        let policy = Policy::from_entries(entries).map_err(PolicyError::BadRule)?;
        let file = self.file(place);
        let text = policy.text(scope_path(place));
        write(&file, &text).map_err(|error| PolicyError::Unwritable { file, why: error.to_string() })
    }
}

fn scope_path(place: PolicyScope<'_>) -> Option<&Path> {
    match place {
        PolicyScope::User => None,
        PolicyScope::Workspace(path) => Some(path),
    }
}

/// Locks a mutex and ignores poisoning: no holder leaves a partial change.
/// Reads a file through one descriptor, so that the checked file is the file that is read.
fn read_policy(file: &Path, place: PolicyScope<'_>) -> io::Result<(PolicyStamp, Result<Policy, String>)> {
    let handle = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(file)?;
    let meta = handle.metadata()?;
    let stamp = PolicyStamp::from_metadata(&meta);
    if let Some(why) = mode_problem(&meta) {
        return Ok((stamp, Err(why)));
    }
    let mut text = String::new();
    let read = Read::take(&handle, MAX_FILE_BYTES).read_to_string(&mut text);
    let policy = match read {
        Ok(_) => Policy::read(&text, scope_path(place)),
        Err(error) => Err(error.to_string()),
    };
    Ok((stamp, policy))
}

/// The reason why the owner or mode of a file makes it invalid.
fn mode_problem(meta: &Metadata) -> Option<String> {
    let ours = nix::unistd::geteuid().as_raw();
    if !meta.is_file() {
        return Some("it is not a plain file".into());
    }
    if meta.uid() != ours {
        return Some(format!("it belongs to user {}, not to {ours}", meta.uid()));
    }
    if meta.mode() & 0o022 != 0 {
        return Some("others may write it: chmod 600".into());
    }
    (meta.size() > MAX_FILE_BYTES).then(|| format!("it is longer than {MAX_FILE_BYTES} bytes"))
}

/// Replaces a file as a whole and syncs it, or changes nothing.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let dir = file.parent().ok_or(io::ErrorKind::NotFound)?;
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let fresh = file.with_extension("json.new");
    // Only one change runs at a time, so an existing temporary file is left from a crash.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut handle = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    handle.write_all(text.as_bytes())?;
    handle.sync_all()?;
    crash::point("C24.grant_synced");
    fs::rename(&fresh, file)?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use types::time::Timestamp;

    fn entry(kind: RuleKind, rule: &str) -> PolicyEntry {
        let (by, session_id, request_id) = (None, None, None);
        PolicyEntry { kind, rule: rule.into(), added_at_ms: Timestamp(1), by, session_id, request_id }
    }

    fn rules_in(policies: &Policies, place: PolicyScope<'_>) -> Vec<String> {
        let policy = policies.read(place).expect("sound");
        policy.entries.iter().map(|entry| format!("{} {}", entry.kind.name(), entry.rule)).collect()
    }

    #[test]
    fn added_rules_apply_to_their_workspace_immediately() {
        let dir = tempfile::tempdir().expect("a folder");
        let (policies, other) =
            (Policies::in_folder(dir.path().join("policy")), Policies::in_folder(dir.path().join("policy")));
        let (a, b) = (PolicyScope::Workspace(Path::new("/w/a")), PolicyScope::Workspace(Path::new("/w/b")));
        assert!(rules_in(&policies, a).is_empty());
        assert_eq!(policies.add(a, entry(RuleKind::Allow, "Bash(make:*)")), Ok(true));
        assert_eq!(policies.add(a, entry(RuleKind::Allow, "Bash(make:*)")), Ok(false));
        assert_eq!(policies.add(a, entry(RuleKind::Deny, "Read(x)")), Ok(true));
        assert_eq!(policies.add(PolicyScope::User, entry(RuleKind::Ask, "Edit")), Ok(true));
        for policies in [&policies, &other] {
            assert_eq!(rules_in(policies, a), ["allow Bash(make:*)", "deny Read(x)"]);
            assert!(rules_in(policies, b).is_empty());
            assert_eq!(rules_in(policies, PolicyScope::User), ["ask Edit"]);
        }
        assert_eq!(policies.remove(a, RuleKind::Ask, "Bash(make:*)"), Ok(false));
        assert_eq!(policies.remove(a, RuleKind::Allow, "Bash(make:*)"), Ok(true));
        assert_eq!(rules_in(&other, a), ["deny Read(x)"]);
        let meta = fs::metadata(policies.file(a)).expect("there");
        assert_eq!(meta.mode() & 0o777, 0o600);
        let folder = fs::metadata(dir.path().join("policy")).expect("there");
        assert_eq!(folder.mode() & 0o777, 0o700);
    }

    #[test]
    fn invalid_rule_is_refused_without_creating_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let policies = Policies::in_folder(dir.path().into());
        let bad = policies.add(PolicyScope::User, entry(RuleKind::Allow, "Bash("));
        assert!(matches!(bad, Err(PolicyError::BadRule(_))), "{bad:?}");
        assert!(!policies.file(PolicyScope::User).exists());
    }

    #[test]
    fn invalid_policy_file_is_refused_and_unchanged() {
        let dir = tempfile::tempdir().expect("a folder");
        let policies = Policies::in_folder(dir.path().into());
        let place = PolicyScope::Workspace(Path::new("/w"));
        policies.add(place, entry(RuleKind::Deny, "Bash(rm:*)")).expect("added");
        let file = policies.file(place);
        let sound = fs::read_to_string(&file).expect("text");
        for (text, word) in [
            ("", "EOF"),
            (&sound[..sound.len() / 2], "EOF"),
            ("{\"version\":2,\"workspace\":\"/w\",\"rules\":[]}", "version"),
            ("{\"version\":1,\"workspace\":\"/v\",\"rules\":[]}", "belongs to /v"),
            ("{\"version\":1,\"workspace\":\"/w\",\"rules\":[],\"more\":1}", "unknown field"),
            (&sound.replace("Bash(rm:*)", "Bash("), "closing"),
        ] {
            fs::write(&file, text).expect("written");
            let error = policies.read(place).expect_err(text).to_string();
            assert!(error.contains(word) && error.contains(&*file.to_string_lossy()), "{error}");
            policies.add(place, entry(RuleKind::Allow, "Read")).expect_err("nothing is added to it");
            policies.remove(place, RuleKind::Deny, "Bash(rm:*)").expect_err("nor taken from it");
            assert_eq!(fs::read_to_string(&file).expect("there"), text, "it stays as it is");
        }
        fs::write(&file, &sound).expect("written");
        assert_eq!(rules_in(&policies, place), ["deny Bash(rm:*)"], "mended, it counts again");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("changed");
        let error = policies.read(place).expect_err("others may write it").to_string();
        assert!(error.contains("others may write it"), "{error}");
        fs::remove_file(&file).expect("gone");
        std::os::unix::fs::symlink("/dev/null", &file).expect("a link");
        policies.read(place).expect_err("a link is followed nowhere");
    }

    #[test]
    fn leftover_temporary_policy_file_is_ignored() {
        let dir = tempfile::tempdir().expect("a folder");
        let policies = Policies::in_folder(dir.path().into());
        fs::write(policies.file(PolicyScope::User).with_extension("json.new"), "half").expect("written");
        policies.add(PolicyScope::User, entry(RuleKind::Allow, "Read")).expect("added");
        assert_eq!(rules_in(&policies, PolicyScope::User), ["allow Read"]);
    }
}
