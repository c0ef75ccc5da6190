//! Substitutes variables in a server's configuration: `${VAR}`, `${VAR:-default}`, and those of other programs, such as
//! `${env:VAR}` and `${workspaceFolder}`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{ServerConfig, TransportKind};
use types::config_values::ConfigDuration;
use types::session_environment::SessionEnvironment;

/// Time limit of a call without a configured one.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);
/// Time limit of a start without a configured one.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
/// Variables that other programs ask their users for, or take from their own settings.
const FOREIGN_VARIABLES: [&str; 4] = ["input:", "command:", "config:", "promptString:"];

/// A configuration without variables. It may hold secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ResolvedConfig {
    pub endpoint: Endpoint,
    pub timeout: Duration,
    pub startup_timeout: Duration,
    pub roots: bool,
    pub sandbox: bool,
    pub elicitation: bool,
    pub sampling: bool,
    /// The workspace: the default folder of a program, and the root that a server receives.
    pub workspace: PathBuf,
    /// The environment of the session's commands, if a program is started; `None` for the daemon's.
    pub session_environment: Option<SessionEnvironment>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Endpoint {
    Stdio { program: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: PathBuf },
    Http { url: String, headers: BTreeMap<String, String>, headers_command: Option<String> },
}

/// Looks up variables of the daemon's environment. The error says why a variable may not be used.
pub(super) type VariableLookup<'a> = dyn Fn(&str) -> Result<Option<String>, String> + 'a;

/// Replaces the variables of a configuration.
pub(super) fn resolve(
    config: &ServerConfig,
    workspace: &Path,
    lookup: &VariableLookup<'_>,
) -> Result<ResolvedConfig, String> {
    let base = config.folder.as_deref().unwrap_or(workspace);
    let cwd = match &config.cwd {
        Some(cwd) => {
            let places = Places { base, cwd: base };
            base.join(substitute(&cwd.to_string_lossy(), places, lookup)?)
        }
        None => base.to_owned(),
    };
    let places = Places { base, cwd: &cwd };
    let text = |text: &String| substitute(text, places, lookup);
    let map = |map: &BTreeMap<String, String>| -> Result<BTreeMap<String, String>, String> {
        map.iter().map(|(name, value)| Ok((name.clone(), text(value)?))).collect()
    };
    let endpoint = match config.transport()? {
        TransportKind::Stdio | TransportKind::Sse => Endpoint::Stdio {
            program: text(&config.command.clone().unwrap_or_default())?,
            args: config.args.iter().map(text).collect::<Result<_, _>>()?,
            env: map(&config.env)?,
            cwd: cwd.clone(),
        },
        TransportKind::Http => {
            let url = text(&config.url.clone().unwrap_or_default())?;
            if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
                return Err("`url` must begin with http:// or https://".into());
            }
            Endpoint::Http {
                url,
                headers: map(&config.headers)?,
                headers_command: config.headers_command.clone(),
            }
        }
    };
    let limit = |configured: Option<ConfigDuration>, usual| {
        configured.map_or(usual, |span| span.0).max(Duration::from_millis(1))
    };
    Ok(ResolvedConfig {
        endpoint,
        timeout: limit(config.timeout, CALL_TIMEOUT),
        startup_timeout: limit(config.startup_timeout, STARTUP_TIMEOUT),
        roots: config.roots,
        sandbox: config.sandbox,
        elicitation: config.elicitation,
        sampling: config.sampling,
        workspace: workspace.to_owned(),
        session_environment: None,
    })
}

impl ResolvedConfig {
    /// Whether a program of the user is started for this server.
    pub fn starts_program(&self) -> bool {
        match &self.endpoint {
            Endpoint::Stdio { .. } => true,
            Endpoint::Http { headers_command, .. } => headers_command.is_some(),
        }
    }

    /// Existing folders outside of the workspace that the program's arguments name, if the server receives the workspace
    /// as its root.
    pub fn folders_outside_root(&self) -> Vec<String> {
        let Endpoint::Stdio { args, cwd, .. } = &self.endpoint else { return Vec::new() };
        let is_outside = |arg: &&String| {
            let names_path = !arg.starts_with('-') && arg.contains('/');
            let folder = names_path.then(|| cwd.join(arg)).filter(|folder| folder.is_dir());
            let folder = folder.map(|folder| folder.canonicalize().unwrap_or(folder));
            folder.is_some_and(|folder| !folder.starts_with(&self.workspace))
        };
        match self.roots {
            true => args.iter().filter(is_outside).cloned().collect(),
            false => Vec::new(),
        }
    }
}

/// The folders that variables mean.
#[derive(Clone, Copy)]
struct Places<'p> {
    /// The folder of the configuration.
    base: &'p Path,
    /// The folder in which the program starts.
    cwd: &'p Path,
}

impl Places<'_> {
    /// The value of a variable that is not looked up in the environment.
    fn value(self, name: &str) -> Option<String> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        match name {
            "PWD" | "cwd" => Some(shown(self.cwd)),
            "workspaceFolder" | "workspaceRoot" | "CLAUDE_PROJECT_DIR" => Some(shown(self.base)),
            "workspaceFolderBasename" => {
                self.base.file_name().map(|name| name.to_string_lossy().into_owned())
            }
            "pathSeparator" | "/" => Some("/".into()),
            // A name of one of several folders.
            _ if name.starts_with("workspaceFolder:") => Some(shown(self.base)),
            _ => None,
        }
    }
}

/// Replaces the variables of a text. `$` without `{` stays.
fn substitute(text: &str, places: Places<'_>, lookup: &VariableLookup<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('}') else {
            rest = &rest[at..];
            break;
        };
        let inner = &rest[at + 2..at + end];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        match variable(name, places, lookup)? {
            Variable::None => out.push_str(&rest[at..=at + end]),
            Variable::Set(value) => out.push_str(default.filter(|_| value.is_empty()).unwrap_or(&value)),
            Variable::Unset(name) => out.push_str(default.ok_or_else(|| {
                format!(
                    "the variable {name} is not set; set it before the daemon starts, or write ${{{inner}:-default}}"
                )
            })?),
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The meaning of the text between `${` and `}`.
enum Variable<'n> {
    Set(String),
    Unset(&'n str),
    /// It is no variable.
    None,
}

fn variable<'n>(
    name: &'n str,
    places: Places<'_>,
    lookup: &VariableLookup<'_>,
) -> Result<Variable<'n>, String> {
    if FOREIGN_VARIABLES.iter().any(|begin| name.starts_with(begin)) {
        return Err(format!(
            "${{{name}}} is asked of the user by another program, or taken from its settings; write ${{NAME}} for a \
             variable of the environment"
        ));
    }
    let name = name.strip_prefix("env:").unwrap_or(name);
    if let Some(value) = places.value(name) {
        return Ok(Variable::Set(value));
    }
    let name = if name == "userHome" { "HOME" } else { name };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Ok(Variable::None);
    }
    Ok(lookup(name)?.map_or(Variable::Unset(name), Variable::Set))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let lookup = |name: &str| match name {
            "SET" => Ok(Some("value".to_owned())),
            "EMPTY" => Ok(Some(String::new())),
            "KEY" => Err("it is a provider's key".to_owned()),
            _ => Ok(None),
        };
        let places = Places { base: Path::new("/w/project"), cwd: Path::new("/w/project/sub") };
        let got = substitute(text, places, &lookup);
        match (&got, expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected, "{text}"),
            (Err(got), Err(part)) => assert!(got.contains(part), "{text}: {got}"),
            _ => panic!("{text}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn variables_are_replaced_by_values_or_defaults() {
        check("plain $HOME", Ok("plain $HOME"));
        check("a ${SET} b ${SET}", Ok("a value b value"));
        check("${UNSET:-other}", Ok("other"));
        check("${SET:-other}", Ok("value"));
        check("${EMPTY:-other}", Ok("other"));
        check("${EMPTY}", Ok(""));
        check("${UNSET:-}", Ok(""));
        check("${UNSET}", Err("UNSET is not set"));
        check("${KEY}", Err("provider"));
        check("${not a name} ${", Ok("${not a name} ${"));
        check("${UNSET:-http://h:1/${SET}", Ok("http://h:1/${SET"));
    }

    #[test]
    fn variables_of_other_programs_use_same_look_up() {
        check("${env:SET}/x", Ok("value/x"));
        check("${env:UNSET:-other}", Ok("other"));
        check("${env:UNSET}", Err("UNSET is not set"));
        check("${env:KEY}", Err("provider"));
        check("${PWD} ${env:PWD}", Ok("/w/project/sub /w/project/sub"));
        check("${workspaceFolder}${/}a${pathSeparator}b", Ok("/w/project/a/b"));
        check(
            "${workspaceRoot} ${workspaceFolder:main} ${CLAUDE_PROJECT_DIR}",
            Ok("/w/project /w/project /w/project"),
        );
        check("${workspaceFolderBasename}", Ok("project"));
        check("${userHome}", Err("HOME is not set"));
        for foreign in ["${input:token}", "${command:pick}", "${config:a.b}"] {
            check(foreign, Err(foreign));
        }
    }

    #[test]
    fn relative_paths_start_in_folder_of_configuration() {
        let config = ServerConfig {
            command: Some("${PWD}/run".into()),
            cwd: Some("${workspaceFolder}/tools".into()),
            folder: Some("/w".into()),
            ..ServerConfig::default()
        };
        let resolved = resolve(&config, Path::new("/w/sub"), &|_| Ok(None)).expect("resolved");
        let Endpoint::Stdio { program, cwd, .. } = resolved.endpoint else { panic!("a program") };
        assert_eq!((program.as_str(), cwd.as_path()), ("/w/tools/run", Path::new("/w/tools")));
        assert_eq!(resolved.workspace, Path::new("/w/sub"));
        assert_eq!((resolved.startup_timeout, resolved.roots), (Duration::from_secs(60), true));
    }

    #[test]
    fn folders_outside_of_root_are_found_unless_roots_are_off() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a path");
        let (inside, outside) = (root.join("project/in"), root.join("out"));
        for folder in [&inside, &outside] {
            std::fs::create_dir_all(folder).expect("made");
        }
        let workspace = root.join("project");
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let config = |roots| ServerConfig {
            command: Some("server".into()),
            args: ["-y", "@scope/server", "in/", "../out", "/no/such", &shown(&inside), &shown(&outside)]
                .map(str::to_owned)
                .into(),
            roots,
            ..ServerConfig::default()
        };
        let found = |roots| {
            resolve(&config(roots), &workspace, &|_| Ok(None)).expect("resolved").folders_outside_root()
        };
        assert_eq!(found(true), ["../out".to_owned(), shown(&outside)]);
        assert_eq!(found(false), Vec::<String>::new());
    }
}
