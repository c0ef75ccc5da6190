//! Decides which daemon a command uses: `-H` or `--socket`, else `AGENTD_HOST`, else `AGENTD_SOCKET`, else the host of
//! `agentctl host use`, else the daemon of this machine.

use std::path::PathBuf;

use crate::connection::host_list::{DEFAULT_HOST, HostList, host_file};
use crate::connection::ssh::SshHost;
use crate::failure::Failure;
use crate::terminal::escape;
use api::endpoint::Env;

/// The variable that names the host.
pub(crate) const HOST_VARIABLE: &str = "AGENTD_HOST";

/// The daemon that commands use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostTarget {
    /// The daemon of this machine, at its usual socket.
    Default,
    Socket(PathBuf),
    /// Another machine.
    Ssh(SshHost),
}

/// What decided about the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostSource {
    Option,
    Variable,
    SocketVariable,
    Current,
    Nothing,
}

impl HostSource {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Option => "the option -H or --socket",
            Self::Variable => "the variable AGENTD_HOST",
            Self::SocketVariable => "the variable AGENTD_SOCKET",
            Self::Current => "`agentctl host use`",
            Self::Nothing => "nothing names another one",
        }
    }
}

/// The daemon in force, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostChoice {
    /// As the user wrote it: a name or an address.
    pub(crate) name: String,
    pub(crate) target: HostTarget,
    pub(crate) source: HostSource,
}

impl HostChoice {
    fn new(name: &str, target: HostTarget, source: HostSource) -> Self {
        Self { name: name.to_owned(), target, source }
    }
}

/// Chooses the daemon. Commands of a session use their own daemon unless they name another one: the variable and the
/// chosen host are for the user's own commands.
pub(crate) fn choose(
    env: Env<'_>,
    host: Option<&str>,
    socket: Option<PathBuf>,
) -> Result<HostChoice, Failure> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(path) = socket {
        if host.is_some() {
            return Err(Failure::usage("-H and --socket both name a daemon; give one of them"));
        }
        let name = path.display().to_string();
        return Ok(HostChoice::new(&name, HostTarget::Socket(path), HostSource::Option));
    }
    if let Some(value) = host {
        return Ok(HostChoice::new(value, target(env, "-H", value)?, HostSource::Option));
    }
    let is_within_a_session = set("AGENTD_CALL").is_some();
    if let Some(value) = set(HOST_VARIABLE).filter(|_| !is_within_a_session) {
        return Ok(HostChoice::new(&value, target(env, HOST_VARIABLE, &value)?, HostSource::Variable));
    }
    if let Some(path) = set("AGENTD_SOCKET") {
        return Ok(HostChoice::new(
            &path,
            HostTarget::Socket(path.clone().into()),
            HostSource::SocketVariable,
        ));
    }
    // Without a home folder there is no list; explicitly given paths may be enough.
    let file = host_file(env).ok().filter(|_| !is_within_a_session);
    let current = file.map(|file| HostList::load(&file)).transpose()?.and_then(|list| list.current);
    match current {
        Some(name) => {
            Ok(HostChoice::new(&name, target(env, "agentctl host use", &name)?, HostSource::Current))
        }
        None => Ok(HostChoice::new(DEFAULT_HOST, HostTarget::Default, HostSource::Nothing)),
    }
}

/// The daemon that a value names: `ssh://…`, `unix://PATH`, a path, `default`, or the name of a host.
fn target(env: Env<'_>, origin: &str, value: &str) -> Result<HostTarget, Failure> {
    if value == DEFAULT_HOST {
        return Ok(HostTarget::Default);
    }
    let wrong = |error: String| Failure::usage(format!("{origin} {}: {error}", escape::line(value)));
    if value.contains('/') {
        return parse_address(value).map_err(wrong);
    }
    let list = HostList::load(&host_file(env)?)?;
    match list.hosts.get(value) {
        Some(address) => parse_address(address).map_err(wrong),
        None => Err(wrong(
            "no host has this name; `agentctl host list` shows them, and an address begins with ssh://"
                .into(),
        )),
    }
}

/// Parses `ssh://…`, `unix://PATH` or a path.
pub(crate) fn parse_address(address: &str) -> Result<HostTarget, String> {
    let path = match address.split_once("://") {
        Some(("ssh", _)) => return SshHost::parse(address).map(HostTarget::Ssh),
        Some(("unix", path)) => path,
        Some(_) => return Err("an address is ssh://[USER@]HOST[:PORT], or the path of a socket".into()),
        None => address,
    };
    if !path.contains('/') {
        return Err("an address is ssh://[USER@]HOST[:PORT], or the path of a socket".into());
    }
    Ok(HostTarget::Socket(path.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(variables: &[(&str, &str)], host: Option<&str>) -> Result<HostChoice, Failure> {
        let env =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        choose(&env, host, None)
    }

    #[test]
    fn option_precedes_variable_and_chosen_host() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = dir.path().display().to_string();
        let hosts =
            [("build".to_owned(), "ssh://build".to_owned()), ("lab".to_owned(), "/lab.sock".to_owned())];
        let list = HostList { current: Some("build".into()), hosts: hosts.into() };
        list.save(&dir.path().join("agentd/hosts.toml")).expect("saved");
        let all = [
            ("XDG_CONFIG_HOME", config.as_str()),
            ("AGENTD_SOCKET", "/s"),
            (HOST_VARIABLE, "ssh://other"),
            ("AGENTD_CALL", "call_1"),
        ];
        let ssh = |url: &str| HostTarget::Ssh(SshHost::parse(url).expect("an address"));
        let check = |variables: &[(&str, &str)], host, target, source| {
            let chosen = choice(variables, host).expect("a choice");
            assert_eq!((chosen.target, chosen.source), (target, source), "{variables:?} {host:?}");
        };
        check(&all[..3], Some("lab"), HostTarget::Socket("/lab.sock".into()), HostSource::Option);
        check(&all[..3], Some("default"), HostTarget::Default, HostSource::Option);
        check(&all[..3], Some("unix:///u.sock"), HostTarget::Socket("/u.sock".into()), HostSource::Option);
        check(&all[..3], None, ssh("ssh://other"), HostSource::Variable);
        check(&all[..2], None, HostTarget::Socket("/s".into()), HostSource::SocketVariable);
        check(&all[..1], None, ssh("ssh://build"), HostSource::Current);
        // A command of a session uses its own daemon.
        check(&all, None, HostTarget::Socket("/s".into()), HostSource::SocketVariable);
        check(&[all[0], all[3]], None, HostTarget::Default, HostSource::Nothing);
        check(&[], None, HostTarget::Default, HostSource::Nothing);
    }

    #[test]
    fn unknown_names_and_wrong_addresses_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let config = dir.path().display().to_string();
        for host in ["nowhere", "tcp://host:1", "ssh://-oProxyCommand=x/", "unix://x", "ssh://a;b", ""] {
            let failure = choice(&[("XDG_CONFIG_HOME", &config)], Some(host)).expect_err(host);
            assert_eq!(failure.code, 64, "{failure}");
            assert!(failure.message.starts_with("-H "), "{failure}");
        }
        let env = |_: &str| None;
        assert!(choose(&env, Some("/a"), Some("/b".into())).is_err(), "two daemons are named");
    }
}
