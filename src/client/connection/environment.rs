//! The variables of this program's environment that the commands of a new session get.

use std::ffi::OsString;

use crate::connection::remote::Machine;
use crate::failure::Failure;
use crate::terminal::escape;
use clap::Args;
use types::session_environment::{SessionEnvironment, is_allowed_name};

/// Variables in addition to those that are always sent.
#[derive(Clone, Debug, Default, Args)]
pub struct EnvironmentArgs {
    /// NAME or NAME=VALUE: a further variable for the session's commands; may be repeated
    #[arg(long, value_name = "VARIABLE")]
    pub env: Vec<String>,
}

impl EnvironmentArgs {
    /// The allowed variables of this process and those that the user named; for a daemon on another machine only those.
    /// The daemon refuses names that look like secrets or change which programs run.
    pub(crate) fn collect(&self, machine: Machine) -> Result<SessionEnvironment, Failure> {
        self.select(std::env::vars_os(), machine)
    }

    fn select(
        &self,
        own: impl IntoIterator<Item = (OsString, OsString)>,
        machine: Machine,
    ) -> Result<SessionEnvironment, Failure> {
        // Values that are no text cannot be sent.
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let own: Vec<(String, String)> = own.into_iter().filter_map(text).collect();
        let mut selected = SessionEnvironment::default();
        for named in &self.env {
            let (name, value) = match named.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => match own.iter().find(|(name, _)| name == named) {
                    Some((name, value)) => (name.as_str(), value.clone()),
                    None => {
                        let shown = escape::line(named);
                        return Err(Failure::usage(format!(
                            "--env {shown}: it is not set here; set it, or write {shown}=VALUE"
                        )));
                    }
                },
            };
            selected.0.insert(name.to_owned(), value);
        }
        let is_sent = |name: &str| machine == Machine::This && is_allowed_name(name);
        for (name, value) in own.into_iter().filter(|(name, _)| is_sent(name)) {
            selected.0.entry(name).or_insert(value);
        }
        Ok(selected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_and_named_variables_are_selected() {
        let own =
            [("PATH", "/v/bin"), ("VIRTUAL_ENV", "/v"), ("API_TOKEN", "t"), ("HOME", "/h"), ("MY", "1")];
        let own = || own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let select = |named: &[&str]| {
            let args = EnvironmentArgs { env: named.iter().map(ToString::to_string).collect() };
            args.select(own(), Machine::This)
                .map(|it| it.0.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>())
        };
        assert_eq!(select(&[]), Ok(vec!["PATH=/v/bin".into(), "VIRTUAL_ENV=/v".into()]));
        let named = ["MY", "X=a=b", "PATH=/other", "EMPTY="];
        assert_eq!(
            select(&named),
            Ok(["EMPTY=", "MY=1", "PATH=/other", "VIRTUAL_ENV=/v", "X=a=b"].map(String::from).to_vec())
        );
        let args = EnvironmentArgs { env: vec!["MY".into()] };
        let sent = args.select(own(), Machine::Other).expect("set");
        assert_eq!(sent.names().collect::<Vec<_>>(), ["MY"], "nothing else leaves this machine");
        let failure = select(&["MISSING"]).expect_err("not set");
        assert!(failure.code == 64 && failure.message.contains("MISSING=VALUE"), "{failure}");
    }
}
