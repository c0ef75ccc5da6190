//! `[jobs]`: what a single file cannot tell.

use crate::config::{Config, ConfigError};

/// Checks the merged settings of jobs.
///
/// # Errors
/// A value cannot work. The error names file, line and key, but neither address nor secret.
pub(super) fn check_jobs(config: &Config) -> Result<(), ConfigError> {
    config.jobs.check().map_err(|problem| {
        let path: Vec<&str> = problem.path.iter().map(String::as_str).collect();
        config.key_error(&path, format!("{}: {}", path.join("."), problem.message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(), &str>) {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).expect("written");
        let got = Config::load(&|_| None, Some(file.clone())).and_then(|config| check_jobs(&config));
        match (got, expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(expected)) => {
                let shown = error.to_string().replace(&format!("{}:", file.display()), "");
                assert!(shown.starts_with(expected), "{text}: {shown}");
                assert!(!shown.contains("geheim"), "{shown}");
            }
            (got, expected) => panic!("{text}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn invalid_table_of_jobs_is_refused_with_file_and_line() {
        check("[jobs]\nconcurrent = 4\nkeep = \"30d\"\nusd_per_day = 20.0", Ok(()));
        for (text, expected) in [
            ("[jobs]\nconcurrent = 0", "2: jobs.concurrent: "),
            ("[jobs]\nusd_per_day = -1.0", "2: jobs.usd_per_day: "),
            ("[jobs]\nkeep = \"0s\"", "2: jobs.keep: must be at least 1ms"),
            ("[jobs]\nkeep = \"on\"", "2: jobs.keep: expected a duration"),
            ("[jobs]\nkeep_worktrees = 7", "2: jobs.keep_worktrees: "),
            ("[jobs]\nconcurent = 1", "2: unknown field `concurent`"),
            ("[jobs.notify.x]\nurll = \"geheim\"", "2: unknown field `urll`"),
            ("[jobs.notify.x]\ncommand = [\"a\"]\ninclude = [\"log\"]", "3: jobs.notify.x.include"),
            ("[jobs.notify.x]\ninclude = []", "1: jobs.notify.x: set url or command"),
            ("[jobs.notify.\"a b\"]\ncommand = [\"a\"]", "1: jobs.notify.a b: a name has letters"),
            (
                "[jobs.notify.x]\nurl = \"https://h/geheim\"\ncommand = [\"geheim\"]",
                "3: jobs.notify.x.command: set either url or command",
            ),
            ("[jobs.notify.x]\ncommand = [\" \"]", "2: jobs.notify.x.command: the first word"),
            (
                "[jobs.notify.x]\ncommand = [\"a\"]\nsecret_env = \"GEHEIM\"",
                "3: jobs.notify.x.secret_env: only a url has a signature",
            ),
            ("[jobs.notify.x]\nurl = \"ftp://geheim\"", "2: jobs.notify.x.url: expected an address"),
            ("[jobs.notify.x]\nurl = \"https://h/geheim\"", "1: jobs.notify.x: a url needs secret_env"),
            (
                "[jobs.notify.x]\nurl = \"https://h/\"\nsecret_env = \"whsec_geheim\"",
                "3: jobs.notify.x.secret_env: expected the name",
            ),
            (
                "[jobs.notify.x]\nurl = \"https://h/\"\nsecret_env = \"A\"\nsecret_file = \"f\"",
                "4: jobs.notify.x.secret_file: set either",
            ),
            ("[jobs.notify.x]\nsecret_file = \"credential:a/b\"", "2: jobs.notify.x.secret_file: "),
        ] {
            check(text, Err(expected));
        }
    }

    #[test]
    fn secret_file_resolves_against_folder_of_configuration() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("config.toml");
        let load = |secret: &str| {
            let text = format!("[jobs.notify.x]\nurl = \"https://h/x\"\nsecret_file = {secret:?}");
            std::fs::write(&file, text).expect("written");
            let config = Config::load(&|_| None, Some(file.clone())).expect("right");
            check_jobs(&config).expect("right");
            config.jobs.notify["x"].secret_file.clone().expect("a file")
        };
        assert_eq!(load("keys/hook"), dir.path().join("keys/hook"));
        assert_eq!(load("credential:hook").to_str(), Some("credential:hook"));
    }
}
