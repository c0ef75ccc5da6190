//! Substitutes `${VAR}` and `${VAR:-default}` in a server's configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{ServerConfig, TransportKind};
use types::session_environment::SessionEnvironment;

/// Time limit of a call without a configured one.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// A configuration without variables. It may hold secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ResolvedConfig {
    pub endpoint: Endpoint,
    pub timeout: Duration,
    pub sandbox: bool,
    pub elicitation: bool,
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
    let text = |text: &String| substitute(text, lookup);
    let map = |map: &BTreeMap<String, String>| -> Result<BTreeMap<String, String>, String> {
        map.iter().map(|(name, value)| Ok((name.clone(), text(value)?))).collect()
    };
    let endpoint = match config.transport()? {
        TransportKind::Stdio | TransportKind::Sse => {
            let cwd = match &config.cwd {
                Some(cwd) => workspace.join(text(&cwd.to_string_lossy().into_owned())?),
                None => workspace.to_owned(),
            };
            Endpoint::Stdio {
                program: text(&config.command.clone().unwrap_or_default())?,
                args: config.args.iter().map(text).collect::<Result<_, _>>()?,
                env: map(&config.env)?,
                cwd,
            }
        }
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
    Ok(ResolvedConfig {
        endpoint,
        timeout: config.timeout.map_or(CALL_TIMEOUT, |span| span.0).max(Duration::from_millis(1)),
        sandbox: config.sandbox,
        elicitation: config.elicitation,
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
}

/// Replaces the variables of a text. `$` without `{` stays.
fn substitute(text: &str, lookup: &VariableLookup<'_>) -> Result<String, String> {
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
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_name {
            match (lookup(name)?.filter(|value| !value.is_empty() || default.is_none()), default) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(default)) => out.push_str(default),
                (None, None) => {
                    return Err(format!(
                        "the variable {name} is not set; set it before the daemon starts, or write \
                         ${{{name}:-default}}"
                    ));
                }
            }
        } else {
            out.push_str(&rest[at..=at + end]);
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    Ok(out)
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
        let got = substitute(text, &lookup);
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
}
