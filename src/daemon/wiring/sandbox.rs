//! Sandbox, limits and protected paths from the configuration.

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::DaemonError;
use crate::paths::DaemonPaths;
use crate::wiring::HostFacts;

pub(super) fn web_allowed_private(config: &Config) -> Result<tools::AddressRanges, DaemonError> {
    tools::AddressRanges::parse(&config.tools.web_allowed_private).map_err(|error| {
        config
            .key_error(&["tools", "web_allowed_private"], format!("[tools] web_allowed_private: {error}"))
            .into()
    })
}

pub(super) fn check_web_proxy(config: &Config) -> Result<(), DaemonError> {
    match &config.tools.web_proxy {
        Some(proxy) if !["http://", "https://"].iter().any(|scheme| proxy.starts_with(scheme)) => {
            // Do not repeat the value: it may contain a password.
            let why = "[tools] web_proxy: expected a url like http://proxy.example:3128";
            Err(config.key_error(&["tools", "web_proxy"], why.to_owned()).into())
        }
        _ => Ok(()),
    }
}

/// The paths that no tool may write: the daemon's folders and the configuration files.
pub(super) fn protected_paths(places: &DaemonPaths, config_files: &[PathBuf]) -> Vec<PathBuf> {
    let mut protected = vec![places.config_dir.clone(), places.data_dir.clone()];
    protected.extend_from_slice(config_files);
    if let Some(folder) = places.socket.parent() {
        protected.push(folder.to_path_buf());
    }
    // Resolve links, because calls are judged by the file itself and not by its spelling.
    protected.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect()
}

pub(super) fn sandbox(config: &Config, places: &DaemonPaths, instance: &str) -> tools::SandboxSettings {
    let mut hidden = protected_paths(places, &config.files);
    // A folder in which the user works cannot be hidden, but the socket in the folder can.
    if let Some(folder) = places.socket.parent()
        && places.home.starts_with(folder)
    {
        hidden.retain(|path| path != folder);
        hidden.push(places.socket.clone());
    }
    let files = config.providers.values().filter(|provider| provider.credential().is_none());
    hidden.extend(files.filter_map(|provider| provider.api_key_file.clone()));
    // systemd stores credentials in this folder, which need not exist.
    hidden.extend(std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from).filter(|it| it.is_absolute()));
    // The sockets of signing agents and other services of the user's login session, if they are not in
    // `/run/user`.
    for name in ["SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"] {
        let place = std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let holds_more = |place: &Path| {
            let real = place.canonicalize().unwrap_or_else(|_| place.to_owned());
            places.home.starts_with(&real) || Path::new("/tmp").starts_with(real)
        };
        hidden.extend(place.filter(|place| !holds_more(place)));
    }
    let uid = nix::unistd::geteuid();
    tools::SandboxSettings {
        hidden,
        daemon_files: [&places.config_dir, &places.data_dir]
            .into_iter()
            .chain(&config.files)
            .cloned()
            .collect(),
        // The path is the same at every start, so that the next daemon finds the folder.
        temp: std::env::temp_dir().join(format!("agentd-{uid}-{}", instance.get(..12).unwrap_or("none"))),
        ..config.sandbox.clone()
    }
}

/// Reports a sandbox that would refuse every command as an error of the configuration file.
pub(super) fn check_sandbox(
    config: &Config,
    sandbox: &tools::SandboxSettings,
    host: &HostFacts,
) -> Result<(), DaemonError> {
    let Some(here) = host.sandboxes else { return Ok(()) };
    sandbox.check(here).map_err(|why| {
        let key = if why.contains("network") { "network" } else { "level" };
        config.key_error(&["sandbox", key], why).into()
    })
}

pub(super) fn check_bypass(config: &Config, is_root: bool) -> Result<(), String> {
    if !config.permissions.allow_bypass {
        return Err("bypass is not allowed here: set [permissions] allow_bypass = true".into());
    }
    if is_root && !config.permissions.allow_bypass_as_root {
        return Err("bypass is not allowed for root without a sandbox: set [permissions] \
                    allow_bypass_as_root = true if you mean it"
            .into());
    }
    Ok(())
}
