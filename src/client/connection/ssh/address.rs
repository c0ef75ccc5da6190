//! `ssh://[USER@]HOST[:PORT][/SOCKET]`. The parts become arguments of ssh and, for the socket, words of the remote
//! shell, so only plain characters are accepted.

use std::fmt;

/// The beginning of an address that ssh reaches.
pub(crate) const SCHEME: &str = "ssh://";

/// Maximum bytes of a name in an address.
const MAX_NAME_BYTES: usize = 253;

/// A machine with a daemon that ssh reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshHost {
    user: Option<String>,
    /// A name, an alias of the user's ssh configuration, or an address; an IPv6 address without brackets.
    host: String,
    port: Option<u16>,
    /// The path of the daemon's socket there; `None` for the one that `agentctl` finds there.
    socket: Option<String>,
}

impl SshHost {
    /// Parses an address.
    ///
    /// # Errors
    /// The text, for users, says which part is not accepted and why.
    pub fn parse(url: &str) -> Result<Self, String> {
        let rest = url.strip_prefix(SCHEME).ok_or("an address begins with ssh://")?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        if let Some(user) = user {
            check_user(user)?;
        }
        let (host, port) = split_port(place)?;
        check_host(host, place.starts_with('['))?;
        let port = port.map(parse_port).transpose()?;
        let socket = Some(path).filter(|path| !path.is_empty() && *path != "/");
        if let Some(socket) = socket {
            check_socket(socket)?;
        }
        Ok(Self {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
            socket: socket.map(str::to_owned),
        })
    }

    /// `USER@HOST` or `HOST`, as ssh takes it.
    #[must_use]
    pub fn destination(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.host),
            None => self.host.clone(),
        }
    }

    /// The port, if the address names one; otherwise ssh decides.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The path of the daemon's socket, if the address names one.
    #[must_use]
    pub fn socket(&self) -> Option<&str> {
        self.socket.as_deref()
    }

    /// A name for files about this machine: it has no slash.
    pub(crate) fn file_name(&self) -> String {
        match self.port {
            Some(port) => format!("{}-{port}", self.destination()),
            None => self.destination(),
        }
    }

    /// The command that a user types to run `agentctl` on that machine, for messages.
    pub(crate) fn command_there(&self, words: &str) -> String {
        let port = self.port.map_or_else(String::new, |port| format!("-p {port} "));
        format!("ssh -t {port}{} agentctl {words}", self.destination())
    }
}

impl fmt::Display for SshHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(self.socket.as_deref().unwrap_or_default())
    }
}

fn check_user(user: &str) -> Result<(), String> {
    if user.contains(':') {
        return Err("an address holds no password; ssh asks for it, or uses a key".into());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
    match user.is_empty()
        || user.starts_with('-')
        || user.len() > MAX_NAME_BYTES
        || !user.chars().all(is_plain)
    {
        true => {
            Err("the user must be of letters, digits and _ . - +, and not begin with -; for another one, \
                     give the host an alias in ~/.ssh/config"
                .into())
        }
        false => Ok(()),
    }
}

/// The host, and the text after it that should be a port.
fn split_port(place: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(rest) = place.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or("the bracket of the address is not closed")?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if after.is_empty() => Ok((host, None)),
            None => Err("only a port may follow the bracket".into()),
        };
    }
    Ok(match place.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (place, None),
    })
}

fn check_host(host: &str, is_ipv6: bool) -> Result<(), String> {
    if is_ipv6 {
        let address = host.split_once('%').map_or(host, |(address, _)| address);
        let zone_is_plain = host[address.len()..].chars().skip(1).all(|c| c.is_ascii_alphanumeric());
        return match address.parse::<std::net::Ipv6Addr>().is_ok() && zone_is_plain {
            true => Ok(()),
            false => Err("an address in brackets must be one of IPv6".into()),
        };
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    match host.is_empty()
        || host.starts_with('-')
        || host.len() > MAX_NAME_BYTES
        || !host.chars().all(is_plain)
    {
        true => Err("the host must be of letters, digits and _ . -, and not begin with -".into()),
        false => Ok(()),
    }
}

fn parse_port(port: &str) -> Result<u16, String> {
    // `u16` would accept a sign.
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse::<u16>().ok().filter(|port| is_number && *port > 0);
    port.ok_or_else(|| "the port must be a number from 1 to 65535".into())
}

fn check_socket(socket: &str) -> Result<(), String> {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.' | '-' | '+' | '@' | ',');
    match socket.chars().all(is_plain) {
        true => Ok(()),
        false => Err("the path of the socket must be of letters, digits and / _ . - + @ ,".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_parts_are_read_and_written_again() {
        let check = |url: &str, destination: &str, port: Option<u16>, socket: Option<&str>| {
            let host = SshHost::parse(url).expect(url);
            assert_eq!(
                (host.destination().as_str(), host.port(), host.socket()),
                (destination, port, socket)
            );
            assert_eq!(host.to_string(), url);
            assert!(!host.file_name().contains('/'));
        };
        check("ssh://build", "build", None, None);
        check("ssh://ann@build.example.com:2222", "ann@build.example.com", Some(2222), None);
        check("ssh://ann@10.0.0.7/run/user/1000/a.sock", "ann@10.0.0.7", None, Some("/run/user/1000/a.sock"));
        check("ssh://ann@[fe80::1%eth0]:22", "ann@fe80::1%eth0", Some(22), None);
        assert_eq!(SshHost::parse("ssh://build/"), SshHost::parse("ssh://build"));
    }

    #[test]
    fn address_that_ssh_or_a_shell_could_misread_is_refused() {
        for url in [
            "ssh://-oProxyCommand=touch%20x",
            "ssh://-oProxyCommand=x@host",
            "ssh://user@-host",
            "ssh://",
            "ssh://@host",
            "ssh://user@",
            "ssh://user:secret@host",
            "ssh://a b",
            "ssh://host;id",
            "ssh://$(id)",
            "ssh://`id`@host",
            "ssh://host\n",
            "ssh://host\0",
            "ssh://höst",
            "ssh://host:",
            "ssh://host:0",
            "ssh://host:+22",
            "ssh://host:65536",
            "ssh://host:22:23",
            "ssh://[::1",
            "ssh://[::1]x",
            "ssh://[::1%a;b]",
            "ssh://[-o]",
            "ssh://host/a b",
            "ssh://host/$(id)",
            "ssh://host/a'b",
            "ssh://host/a?b#c",
            "SSH://host",
            "host",
        ] {
            assert!(SshHost::parse(url).is_err(), "{url:?}");
        }
        assert!(SshHost::parse(&format!("ssh://{}", "a".repeat(254))).is_err());
        let message = SshHost::parse("ssh://user:hunter2@host").expect_err("a password");
        assert!(!message.contains("hunter2"), "{message}");
    }
}
