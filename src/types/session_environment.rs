//! Variables of the environment that a client sends for the commands of a session.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names and values. They are in no event, export or log: `Debug` shows the names only.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SessionEnvironment(pub BTreeMap<String, String>);

impl SessionEnvironment {
    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}

impl fmt::Debug for SessionEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Names that commands get from the client, or else from the daemon, if they are set.
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
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "SDKMAN_DIR",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "POETRY_ACTIVE",
    "PIPENV_ACTIVE",
    "UV_PROJECT_ENVIRONMENT",
    "RBENV_ROOT",
    "RBENV_VERSION",
    "GEM_HOME",
    "GEM_PATH",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ANDROID_NDK_HOME",
    "DOTNET_ROOT",
    "FLUTTER_ROOT",
    "PUB_CACHE",
    "HOMEBREW_PREFIX",
    "HOMEBREW_CELLAR",
    "HOMEBREW_REPOSITORY",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "IN_NIX_SHELL",
    "PKG_CONFIG_PATH",
];

/// Beginnings of such names: the locale, and managers of versions with variables for each one.
const ALLOWED_PREFIXES: &[&str] = &["LC_", "CONDA_", "NVM_", "FNM_", "ASDF_"];

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

/// Names that change which program or code a command runs: what is loaded into each process, what shells and
/// interpreters run first, and the options of git, node and others.
const CODE_NAMES: &[&str] = &[
    "ENV",
    "BASH_ENV",
    "BASHOPTS",
    "SHELLOPTS",
    "PROMPT_COMMAND",
    "PS0",
    "PS4",
    "IFS",
    "CDPATH",
    "GLOBIGNORE",
    "ZDOTDIR",
    "INPUTRC",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "PYTHONEXECUTABLE",
    "PYTHONPLATLIBDIR",
    "PERL5OPT",
    "PERL5LIB",
    "PERLLIB",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "MAVEN_OPTS",
    "GRADLE_OPTS",
    "GOFLAGS",
    "GOTOOLCHAIN",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "MAKEFLAGS",
    "MAKEFILES",
    "GCONV_PATH",
    "LOCPATH",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "R_PROFILE",
    "R_PROFILE_USER",
    "R_ENVIRON",
    "AWKPATH",
    "AWKLIBPATH",
    "GREP_OPTIONS",
    "TAR_OPTIONS",
    "RIPGREP_CONFIG_PATH",
    "LESS",
    "LESSOPEN",
    "LESSCLOSE",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "VIMINIT",
    "EXINIT",
    "SUDO_ASKPASS",
    "SSH_ASKPASS",
    "FZF_DEFAULT_COMMAND",
    "FZF_DEFAULT_OPTS",
    "DOTNET_STARTUP_HOOKS",
    "CORECLR_PROFILER_PATH",
];

/// Beginnings of such names.
const CODE_PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "GIT_",
    "BASH_FUNC_",
    "NPM_CONFIG_",
    "CARGO_BUILD_",
    "CARGO_PROFILE_",
    "CORECLR_",
    "COR_",
    "LUA_INIT_",
];

/// Names that the daemon sets for every command, by its own rules.
const OWN_NAMES: &[&str] = &["HOME", "TERM"];

/// The socket of the user's SSH agent, which signs for the user.
pub const SSH_AGENT: &str = "SSH_AUTH_SOCK";

/// Maximum number of variables, and bytes of all of them.
const MAX_VARIABLES: usize = 512;
const MAX_BYTES: usize = 128 << 10;

/// Whether a name passes without being asked for.
#[must_use]
pub fn is_allowed_name(name: &str) -> bool {
    let is_listed =
        ALLOWED_NAMES.contains(&name) || ALLOWED_PREFIXES.iter().any(|part| name.starts_with(part));
    is_listed && !looks_secret(name) && !changes_programs(name)
}

/// Whether the daemon itself sets the variable for every command.
#[must_use]
pub fn is_own_name(name: &str) -> bool {
    OWN_NAMES.contains(&name) || name.starts_with("AGENTD_")
}

/// Whether a name looks like that of a secret.
#[must_use]
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// Whether the variable changes which program or code commands run.
#[must_use]
pub fn changes_programs(name: &str) -> bool {
    // Some programs read their names in either case.
    let name = name.to_ascii_uppercase();
    let is_target = name.starts_with("CARGO_TARGET_") && name != "CARGO_TARGET_DIR";
    is_target
        || CODE_NAMES.contains(&name.as_str())
        || CODE_PREFIXES.iter().any(|part| name.starts_with(part))
}

/// Checks the variables that a client sends. `listed` are the names of `[tools] env`, which the user allowed.
///
/// # Errors
/// Some are refused: the text names each with the reason, and no value.
pub fn check(environment: &SessionEnvironment, listed: &[String], is_attended: bool) -> Result<(), String> {
    let count = environment.0.len();
    let bytes: usize = environment.0.iter().map(|(name, value)| name.len() + value.len()).sum();
    if count > MAX_VARIABLES || bytes > MAX_BYTES {
        return Err(format!(
            "{count} variables of {bytes} bytes are too many; {MAX_VARIABLES} of {MAX_BYTES} bytes at most"
        ));
    }
    let refused: Vec<String> = environment
        .0
        .iter()
        .filter_map(|(name, value)| {
            let why = match refusal(name, listed, is_attended) {
                None if value.contains('\0') => "its value holds a NUL",
                why => why?,
            };
            Some(format!("{} ({why})", name.escape_debug()))
        })
        .collect();
    if refused.is_empty() { Ok(()) } else { Err(format!("refused: {}", refused.join(", "))) }
}

/// Why commands do not get a variable from a client; `None` if they do.
#[must_use]
pub fn refusal(name: &str, listed: &[String], is_attended: bool) -> Option<&'static str> {
    let is_word = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
    };
    let is_listed = listed.iter().any(|listed| listed == name);
    if !is_word(name) {
        Some("no name of a variable")
    } else if is_own_name(name) {
        Some("the daemon sets it")
    } else if name == SSH_AGENT && !(is_listed && is_attended) {
        Some("needs `[tools] env` and a session with a user")
    } else if is_listed {
        None
    } else if changes_programs(name) {
        Some("it changes which programs run")
    } else if looks_secret(name) {
        Some("it looks like a secret; list it in `[tools] env`")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(names: &[&str]) -> SessionEnvironment {
        SessionEnvironment(names.iter().map(|name| ((*name).to_owned(), "hidden-value".to_owned())).collect())
    }

    #[test]
    fn clients_send_versions_and_locale_but_no_secrets() {
        let allowed =
            ["PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "NVM_BIN", "JAVA_HOME", "GOPATH", "LC_ALL", "LANG"];
        for name in allowed {
            assert!(is_allowed_name(name), "{name}");
        }
        let others =
            ["HOME", "MY_VAR", "CONDA_TOKEN", "LC_SECRET", "LD_LIBRARY_PATH", "PYTHONPATH", "GIT_DIR", "ENV"];
        for name in others {
            assert!(!is_allowed_name(name), "{name}");
        }
    }

    #[test]
    fn refused_variables_are_named_with_reason_and_without_value() {
        let refused = [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "BASH_ENV",
            "ENV",
            "GIT_SSH_COMMAND",
            "NODE_OPTIONS",
            "PYTHONSTARTUP",
            "BASH_FUNC_ls",
            "npm_config_script_shell",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            "RIPGREP_CONFIG_PATH",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "SSH_AUTH_SOCK",
            "HOME",
            "AGENTD_SOCKET",
            "1A",
            "A B",
            "",
        ];
        for name in refused {
            let text = check(&environment(&["PATH", name]), &[], true).expect_err(name);
            assert!(text.contains(name) && !text.contains(" PATH (") || name.is_empty(), "{text}");
            assert!(!text.contains("hidden-value"), "{text}");
        }
        assert_eq!(check(&environment(&["PATH", "MY_VAR", "CARGO_TARGET_DIR", "CC"]), &[], true), Ok(()));
        let all = check(&environment(&["LD_PRELOAD", "MY_TOKEN"]), &[], true).expect_err("both");
        assert!(all.contains("LD_PRELOAD") && all.contains("MY_TOKEN"), "{all}");
        let listed = ["MY_TOKEN".to_owned(), SSH_AGENT.to_owned()];
        assert_eq!(check(&environment(&["MY_TOKEN", SSH_AGENT]), &listed, true), Ok(()));
        assert!(check(&environment(&[SSH_AGENT]), &listed, false).is_err(), "unattended");
        let long = SessionEnvironment([("A".to_owned(), "x".repeat(MAX_BYTES))].into());
        assert!(check(&long, &[], true).is_err());
    }

    #[test]
    fn debug_output_shows_names_only() {
        assert_eq!(format!("{:?}", environment(&["B", "A"])), r#"{"A", "B"}"#);
    }
}
