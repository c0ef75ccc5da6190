//! The part of the daemon's environment that commands see: a short list, and never a secret unless the settings
//! contain its full name.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Names that pass if they are set.
const ALLOWED_NAMES: &[&str] = &[
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "EDITOR",
    "VISUAL",
    "CI",
    "NO_COLOR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PNPM_HOME",
    "BUN_INSTALL",
    "ANDROID_HOME",
    "HOMEBREW_PREFIX",
    "NIX_PATH",
    "NIX_PROFILES",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
];

/// Parts of names that look like secrets.
const SECRET_PARTS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "PWD_",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "PRIVATE",
    "SESSION_ID",
    "DSN",
];

/// The environment of a command. `own` is the daemon's; `extra` are configured names.
pub(super) fn scrub(
    own: impl IntoIterator<Item = (OsString, OsString)>,
    extra: &[String],
    home: &Path,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> =
        own.into_iter().filter(|(name, _)| is_passed(name, extra)).collect();
    if !variables.iter().any(|(name, _)| name == "PATH") {
        variables.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
    }
    variables.push(("HOME".into(), home.into()));
    // Disable colours, pagers and cursor control, because there is no terminal.
    variables.push(("TERM".into(), "dumb".into()));
    variables
}

fn is_passed(name: &OsStr, extra: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    if name == "HOME" || name == "TERM" || name.starts_with("AGENTD_") {
        return false;
    }
    if extra.iter().any(|listed| listed == name) {
        return true;
    }
    let by_prefix =
        extra.iter().filter_map(|listed| listed.strip_suffix('*')).any(|part| name.starts_with(part));
    (by_prefix || ALLOWED_NAMES.contains(&name) || name.starts_with("LC_")) && !looks_secret(name)
}

fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, extra: &[&str], expected: bool) {
        let extra: Vec<String> = extra.iter().map(ToString::to_string).collect();
        assert_eq!(is_passed(OsStr::new(name), &extra), expected, "{name} with {extra:?}");
    }

    #[test]
    fn environment_passes_listed_names_and_explicit_secrets() {
        check("PATH", &[], true);
        check("LC_ALL", &[], true);
        check("MY_VAR", &[], false);
        check("ANTHROPIC_API_KEY", &[], false);
        check("XDG_RUNTIME_DIR", &[], false);
        check("LD_PRELOAD", &[], false);
        check("BASH_ENV", &[], false);
        check("MY_VAR", &["MY_VAR"], true);
        check("MY_VAR", &["MY_*"], true);
        check("MY_TOKEN", &["MY_*"], false);
        check("ANYTHING_PASSWORD", &["*"], false);
        check("MY_TOKEN", &["MY_TOKEN"], true);
        check("AGENTD_SOCKET", &["AGENTD_*"], false);
        check("LC_SECRET", &[], false);
    }

    #[test]
    fn environment_sets_own_home_and_terminal() {
        let own = [("HOME", "/root"), ("TERM", "xterm"), ("OPENAI_API_KEY", "canary")];
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let variables = scrub(own, &[], Path::new("/home/u"));
        let of = |name: &str| {
            variables.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of("HOME"), ["/home/u"]);
        assert_eq!(of("TERM"), ["dumb"]);
        assert_eq!(of("PATH").len(), 1);
        assert!(!variables.iter().any(|(_, value)| value == "canary"));
    }
}
