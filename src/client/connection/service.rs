//! The systemd service that runs a daemon. Its environment is that of its unit, and systemd starts it again.

use std::process::Stdio;
use std::time::Duration;

use crate::failure::Failure;
use crate::terminal::escape;

/// How long systemd may take to start the daemon.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A service of the system or of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    unit: String,
    is_user: bool,
}

impl Service {
    /// The service to which a process belongs, if it is one of agentd: a daemon that `agentctl` started inside
    /// another service is none.
    pub(crate) fn find(pid: u32) -> Option<Self> {
        let cgroups = base::proc::cgroups(i32::try_from(pid).ok()?).ok()?;
        cgroups.lines().find_map(Self::in_cgroup)
    }

    /// Reads one line of `/proc/PID/cgroup`. The daemon may be in a cgroup below that of its unit.
    fn in_cgroup(line: &str) -> Option<Self> {
        let is_unit = |part: &&str| part.starts_with("agentd") && part.ends_with(".service");
        let unit = line.split('/').find(is_unit)?.to_owned();
        Some(Self { unit, is_user: line.contains("/user@") })
    }

    /// The arguments of systemctl for this service.
    fn arguments<'a>(&'a self, verb: &'a str) -> Vec<&'a str> {
        let scope = if self.is_user { "--user" } else { "--system" };
        vec![scope, "--no-ask-password", verb, &self.unit]
    }

    pub(crate) fn log_command(&self) -> String {
        let unit = escape::line(&self.unit);
        if self.is_user { format!("journalctl --user -u {unit}") } else { format!("journalctl -u {unit}") }
    }

    /// Starts the service and waits until its daemon is ready.
    pub(crate) async fn start(&self) -> Result<(), Failure> {
        let mut command = tokio::process::Command::new("systemctl");
        command.args(self.arguments("start")).stdin(Stdio::null()).kill_on_drop(true);
        let error = match tokio::time::timeout(START_TIMEOUT, command.output()).await {
            Ok(Ok(output)) if output.status.success() => return Ok(()),
            Ok(Ok(output)) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it was not ready within {} s", START_TIMEOUT.as_secs()),
        };
        Err(Failure::unreachable(format!(
            "the daemon is stopped, and `systemctl {}` failed: {}",
            escape::line(&self.arguments("start").join(" ")),
            escape::line(&error)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_is_read_from_cgroup_of_unit_or_below_it() {
        let found = |line: &str| Service::in_cgroup(line).map(|it| it.arguments("start").join(" "));
        for (line, expected) in [
            (
                "0::/user.slice/user-7.slice/user@7.service/agentd.slice/agentd.service/agentd-self",
                Some("--user --no-ask-password start agentd.service"),
            ),
            ("0::/system.slice/agentd.service", Some("--system --no-ask-password start agentd.service")),
            (
                "1:name=systemd:/system.slice/agentd.service",
                Some("--system --no-ask-password start agentd.service"),
            ),
            ("0::/user.slice/user-7.slice/session-2.scope", None),
            ("0::/user.slice/user-7.slice/user@7.service/app.slice/editor.service", None),
            ("0::/agentd.slice", None),
        ] {
            assert_eq!(found(line).as_deref(), expected, "{line}");
        }
    }
}
