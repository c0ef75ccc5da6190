//! Paths in a configuration file. Relative paths start at the file's folder, and paths with `~/` at the
//! home folder.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::ConfigError;
use super::source::{self, Source};
use api::endpoint::{self, Env};
use model::CREDENTIAL_PREFIX;

/// Keys of `[daemon]` that are paths.
const DAEMON_PATH_KEYS: [&str; 2] = ["socket", "data_dir"];
/// Keys of `[providers.NAME]` that are paths.
const PROVIDER_PATH_KEYS: [&str; 3] = ["cassette", "record", "api_key_file"];
/// Keys of `[jobs.notify.NAME]` that are paths.
const NOTIFY_PATH_KEYS: [&str; 1] = ["secret_file"];
/// Keys of files that may be credentials of systemd.
const CREDENTIAL_KEYS: [&str; 2] = ["api_key_file", "secret_file"];

/// Makes every path in `table`, which was read from `source`, absolute.
///
/// # Errors
/// A path is empty, or it starts with `~/` and `HOME` is not set.
pub(super) fn resolve(table: &mut Table, source: &Source, env: Env<'_>) -> Result<(), ConfigError> {
    let file = std::path::absolute(&source.file).unwrap_or_else(|_| source.file.clone());
    let folder = file.parent().unwrap_or(Path::new("/"));
    let each = |table: &mut Table, above: &[&str], keys: &[&str]| {
        for key in keys {
            let Some(Value::String(text)) = table.get_mut(*key) else { continue };
            let path = [above, &[*key]].concat();
            let wrong = |why: String| {
                source::key_error(std::slice::from_ref(source), &path, format!("{}: {why}", path.join(".")))
            };
            if CREDENTIAL_KEYS.contains(key) && is_credential(text).map_err(wrong)? {
                continue;
            }
            let absolute_path = absolute(text, folder, env).map_err(wrong)?;
            // Both parts are valid UTF-8, so the result is valid UTF-8 too.
            *text = absolute_path.to_string_lossy().into_owned();
        }
        Ok(())
    };
    if let Some(Value::Table(daemon)) = table.get_mut("daemon") {
        each(daemon, &["daemon"], &DAEMON_PATH_KEYS)?;
    }
    if let Some(Value::Table(providers)) = table.get_mut("providers") {
        for (name, provider) in providers.iter_mut() {
            if let Value::Table(provider) = provider {
                each(provider, &["providers", name], &PROVIDER_PATH_KEYS)?;
            }
        }
    }
    if let Some(Value::Table(jobs)) = table.get_mut("jobs")
        && let Some(Value::Table(targets)) = jobs.get_mut("notify")
    {
        for (name, target) in targets.iter_mut() {
            if let Value::Table(target) = target {
                each(target, &["jobs", "notify", name], &NOTIFY_PATH_KEYS)?;
            }
        }
    }
    if let Some(Value::Table(sandbox)) = table.get_mut("sandbox")
        && let Some(Value::Array(list)) = sandbox.get_mut("writable")
    {
        for item in list {
            let Value::String(text) = item else { continue };
            let path = ["sandbox", "writable"];
            let wrong = |why: String| {
                source::key_error(std::slice::from_ref(source), &path, format!("sandbox.writable: {why}"))
            };
            *text = absolute(text, folder, env).map_err(wrong)?.to_string_lossy().into_owned();
        }
    }
    Ok(())
}

/// Whether a key file is a systemd credential. Its path is not resolved, because systemd chooses its location.
fn is_credential(text: &str) -> Result<bool, String> {
    let Some(name) = text.strip_prefix(CREDENTIAL_PREFIX) else { return Ok(false) };
    if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | "..") {
        return Err(format!("{name:?} is not a credential name: write {CREDENTIAL_PREFIX}NAME"));
    }
    Ok(true)
}

fn absolute(text: &str, folder: &Path, env: Env<'_>) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("the path is empty".into());
    }
    match text.strip_prefix("~/") {
        Some(rest) => {
            Ok(endpoint::home(env).map_err(|_| format!("{text} needs HOME, which is not set"))?.join(rest))
        }
        None => Ok(folder.join(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, home: Option<&str>, expected: Result<&str, &str>) {
        let env = |name: &str| home.filter(|_| name == "HOME").map(String::from);
        let got = absolute(text, Path::new("/etc/agentd"), &env);
        match expected {
            Ok(path) => assert_eq!(got.as_deref(), Ok(Path::new(path)), "{text}"),
            Err(word) => assert!(got.as_ref().is_err_and(|why| why.contains(word)), "{text}: {got:?}"),
        }
    }

    #[test]
    fn credential_reference_is_name_without_path() {
        assert_eq!(is_credential("credential:anthropic"), Ok(true));
        assert_eq!(is_credential("keys/credential:x"), Ok(false));
        for wrong in ["credential:", "credential:..", "credential:a/b"] {
            assert!(is_credential(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn paths_resolve_against_file_folder_or_home() {
        check("a/b", None, Ok("/etc/agentd/a/b"));
        check("../b", None, Ok("/etc/agentd/../b"));
        check("/b", None, Ok("/b"));
        check("~/b", Some("/h"), Ok("/h/b"));
        check("~b", Some("/h"), Ok("/etc/agentd/~b"));
        check("~/b", None, Err("HOME"));
        check("", Some("/h"), Err("empty"));
    }
}
