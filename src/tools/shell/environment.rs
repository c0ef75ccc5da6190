//! The environment that commands see: a short list of names, from the client that created the session or from the
//! daemon, and never a secret unless the settings contain its full name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::context::SessionContext;
use crate::settings::Settings;
use types::session_environment::{
    SSH_AGENT, SessionEnvironment, changes_programs, is_allowed_name, is_own_name, looks_secret, refusal,
};

/// The search path without `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Names that come from the daemon if a client sends an environment without them.
const FALLBACK_NAMES: &[&str] = &["PATH", "USER", "LOGNAME"];

/// The environment of a session's commands. Reads the disk if the client's part is not in memory.
pub(super) fn of_session(settings: &Settings, session: &SessionContext) -> Vec<(OsString, OsString)> {
    let sent = session.environment.as_ref().and_then(|source| source.variables());
    let rules = EnvironmentRules { listed: &settings.config.env, is_attended: !session.unattended };
    rules.select(std::env::vars_os(), sent.as_ref(), &settings.home)
}

/// The environment of programs that the user configured, such as hooks and servers, with what was sent for their
/// session.
pub(super) fn of_program(
    settings: &Settings,
    sent: Option<&SessionEnvironment>,
) -> Vec<(OsString, OsString)> {
    let rules = EnvironmentRules { listed: &settings.config.env, is_attended: false };
    rules.select(std::env::vars_os(), sent, &settings.home)
}

struct EnvironmentRules<'a> {
    /// `[tools] env`
    listed: &'a [String],
    is_attended: bool,
}

impl EnvironmentRules<'_> {
    /// `own` is the daemon's environment. If a client has `sent` one, the daemon adds only what the settings list.
    fn select(
        &self,
        own: impl IntoIterator<Item = (OsString, OsString)>,
        sent: Option<&SessionEnvironment>,
        home: &Path,
    ) -> Vec<(OsString, OsString)> {
        // The settings may have changed since the client sent its variables.
        let accepted = sent.into_iter().flat_map(|sent| &sent.0);
        let accepted = accepted.filter(|(name, _)| refusal(name, self.listed, self.is_attended).is_none());
        let mut variables: Vec<(OsString, OsString)> =
            accepted.map(|(name, value)| (name.into(), value.into())).collect();
        for (name, value) in own {
            let is_known = variables.iter().any(|(known, _)| *known == name);
            let is_wanted = match sent {
                None => true,
                Some(_) => FALLBACK_NAMES.iter().any(|fallback| name == *fallback) || self.is_listed(&name),
            };
            if !is_known && is_wanted && self.is_passed(&name) {
                variables.push((name, value));
            }
        }
        if !variables.iter().any(|(name, _)| name == "PATH") {
            variables.push(("PATH".into(), DEFAULT_PATH.into()));
        }
        variables.push(("HOME".into(), home.into()));
        // Disable colours, pagers and cursor control, because there is no terminal.
        variables.push(("TERM".into(), "dumb".into()));
        variables
    }

    fn is_listed(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        self.is_listed_in_full(name) || self.is_listed_by_prefix(name)
    }

    fn is_listed_in_full(&self, name: &str) -> bool {
        self.listed.iter().any(|listed| listed == name)
    }

    fn is_listed_by_prefix(&self, name: &str) -> bool {
        self.listed.iter().filter_map(|listed| listed.strip_suffix('*')).any(|part| name.starts_with(part))
    }

    /// Whether a variable of the daemon passes.
    fn is_passed(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        if is_own_name(name) || name == SSH_AGENT && !self.is_attended {
            return false;
        }
        if self.is_listed_in_full(name) {
            return true;
        }
        is_allowed_name(name)
            || self.is_listed_by_prefix(name) && !looks_secret(name) && !changes_programs(name)
    }
}

/// Finds the programs that a command of the session would start.
#[derive(Clone, Debug, Default)]
pub struct ProgramSearch {
    /// The folders of `PATH`, in order.
    folders: Vec<PathBuf>,
    /// The folders of the workspace.
    roots: Vec<PathBuf>,
}

impl ProgramSearch {
    /// May block on the disk.
    pub(crate) fn new(settings: &Settings, session: &SessionContext) -> Self {
        let variables = of_session(settings, session);
        let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
        Self { folders: search_folders(path.unwrap_or_default()), roots: session.roots().cloned().collect() }
    }

    /// Whether the program with this name lies inside the workspace: everything that can write there decides what it
    /// does. A name with a folder is not searched. A command may change its folder, so a relative entry of the search
    /// path may mean any folder of the workspace. Blocks on the disk.
    #[must_use]
    pub fn is_in_workspace(&self, name: &str) -> bool {
        !name.contains('/')
            && self.search(name).unwrap_or_else(|| self.folders.iter().any(|it| !it.is_absolute()))
    }

    /// Like [`Self::is_in_workspace`] for a word that is perhaps no program: relative entries do not count.
    #[must_use]
    pub fn may_be_in_workspace(&self, word: &str) -> bool {
        !word.contains('/') && self.search(word).unwrap_or(false)
    }

    /// Whether the program lies in the workspace; `None` if it does not exist, or a relative entry comes first.
    fn search(&self, name: &str) -> Option<bool> {
        let is_inside = |path: &Path| self.roots.iter().any(|root| path.starts_with(root));
        let is_linked_inside = |path: &Path| path.canonicalize().is_ok_and(|path| is_inside(&path));
        let is_program = |path: &Path| {
            path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        for folder in &self.folders {
            if !folder.is_absolute() {
                return None;
            }
            let program = folder.join(name);
            if is_program(&program) {
                return Some(is_inside(&program) || is_linked_inside(&program) || is_linked_inside(folder));
            }
        }
        None
    }
}

fn search_folders(path: &OsStr) -> Vec<PathBuf> {
    path.as_bytes().split(|byte| *byte == b':').map(|part| PathBuf::from(OsStr::from_bytes(part))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, listed: &[&str], expected: bool) {
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        let rules = EnvironmentRules { listed: &listed, is_attended: true };
        assert_eq!(rules.is_passed(OsStr::new(name)), expected, "{name} with {listed:?}");
    }

    #[test]
    fn environment_passes_listed_names_and_explicit_secrets() {
        check("PATH", &[], true);
        check("LC_ALL", &[], true);
        check("MY_VAR", &[], false);
        check("ANTHROPIC_API_KEY", &[], false);
        check("XDG_RUNTIME_DIR", &[], false);
        check("LD_PRELOAD", &[], false);
        check("LD_LIBRARY_PATH", &[], false);
        check("BASH_ENV", &[], false);
        check("MY_VAR", &["MY_VAR"], true);
        check("MY_VAR", &["MY_*"], true);
        check("MY_TOKEN", &["MY_*"], false);
        check("LD_PRELOAD", &["*"], false);
        check("ANYTHING_PASSWORD", &["*"], false);
        check("MY_TOKEN", &["MY_TOKEN"], true);
        check("AGENTD_SOCKET", &["AGENTD_*"], false);
        check("LC_SECRET", &[], false);
        check("SSH_AUTH_SOCK", &[], false);
        check("SSH_AUTH_SOCK", &["SSH_AUTH_SOCK"], true);
    }

    type Variables<'a> = &'a [(&'a str, &'a str)];

    fn select(
        own: Variables<'_>,
        sent: Option<Variables<'_>>,
        listed: &[&str],
        is_attended: bool,
    ) -> Vec<(String, String)> {
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        let own = own.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let sent = sent.map(|sent| SessionEnvironment(sent.iter().map(text).collect()));
        let rules = EnvironmentRules { listed: &listed, is_attended };
        let selected = rules.select(own, sent.as_ref(), Path::new("/home/u"));
        let text = |text: OsString| text.into_string().expect("text");
        selected.into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    fn value<'v>(variables: &'v [(String, String)], name: &str) -> Vec<&'v str> {
        variables.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    #[test]
    fn environment_sets_own_home_and_terminal() {
        let own = [("HOME", "/root"), ("TERM", "xterm"), ("OPENAI_API_KEY", "canary")];
        let variables = select(&own, None, &[], true);
        assert_eq!(value(&variables, "HOME"), ["/home/u"]);
        assert_eq!(value(&variables, "TERM"), ["dumb"]);
        assert_eq!(value(&variables, "PATH"), [DEFAULT_PATH]);
        assert!(!variables.iter().any(|(_, value)| value == "canary"));
    }

    #[test]
    fn sent_environment_replaces_that_of_daemon_except_listed_names() {
        let own = [
            ("PATH", "/daemon"),
            ("VIRTUAL_ENV", "/a/.venv"),
            ("USER", "u"),
            ("EXTRA", "daemon"),
            ("BOTH", "daemon"),
            ("SSH_AUTH_SOCK", "/agent"),
        ];
        let listed = ["EXTRA", "BOTH", "SSH_AUTH_SOCK"];
        let sent =
            [("PATH", "/b/.venv/bin:/usr/bin"), ("BOTH", "client"), ("MY", "1"), ("LD_PRELOAD", "x.so")];
        let variables = select(&own, Some(&sent), &listed, true);
        assert_eq!(value(&variables, "PATH"), ["/b/.venv/bin:/usr/bin"]);
        assert_eq!(value(&variables, "VIRTUAL_ENV"), [""; 0], "of another project");
        assert_eq!(value(&variables, "USER"), ["u"]);
        assert_eq!(value(&variables, "EXTRA"), ["daemon"]);
        assert_eq!(value(&variables, "BOTH"), ["client"]);
        assert_eq!(value(&variables, "MY"), ["1"]);
        assert_eq!(value(&variables, "LD_PRELOAD"), [""; 0]);
        assert_eq!(value(&variables, "SSH_AUTH_SOCK"), ["/agent"]);
        assert_eq!(value(&select(&own, Some(&sent), &listed, false), "SSH_AUTH_SOCK"), [""; 0], "unattended");
        assert_eq!(value(&select(&own, Some(&[]), &[], true), "PATH"), ["/daemon"]);
        assert_eq!(value(&select(&own, None, &[], true), "VIRTUAL_ENV"), ["/a/.venv"]);
    }

    #[test]
    fn programs_inside_workspace_are_found_by_search_path_and_links() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        let (workspace, outside) = (root.join("ws"), root.join("out"));
        let make = |path: PathBuf, mode: u32| {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, "#!/bin/sh\n").expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        };
        make(workspace.join("bin/ls"), 0o755);
        make(workspace.join("bin/cat"), 0o644);
        make(outside.join("cat"), 0o755);
        make(outside.join("wc"), 0o755);
        make(workspace.join("tool"), 0o755);
        std::os::unix::fs::symlink(workspace.join("tool"), outside.join("head")).expect("linked");
        std::os::unix::fs::symlink(workspace.join("bin"), root.join("alias")).expect("linked");
        let found = |path: &str, name: &str| {
            let path = path
                .replace("WS", &workspace.display().to_string())
                .replace("OUT", &outside.display().to_string());
            let path = path.replace("ROOT", &root.display().to_string());
            let search =
                ProgramSearch { folders: search_folders(OsStr::new(&path)), roots: vec![workspace.clone()] };
            search.is_in_workspace(name)
        };
        assert!(found("WS/bin:OUT", "ls"));
        assert!(!found("WS/bin:OUT", "cat"), "not executable there");
        assert!(!found("OUT:WS/bin", "wc"));
        assert!(found("OUT", "head"), "a link into the workspace");
        assert!(found("ROOT/alias:OUT", "ls"), "a folder that is a link");
        assert!(
            found(":OUT", "wc") && found("OUT:.", "ls") && found("node_modules/.bin:OUT", "wc"),
            "relative"
        );
        assert!(!found("OUT:.", "wc"), "found before");
        assert!(!found("OUT", "missing") && !found("WS/bin", "WS/bin/ls"));
    }
}
