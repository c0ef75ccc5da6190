//! `agentctl backup FILE`: a copy of the daemon's database, made while the daemon runs.

use api::methods;
use std::path::Path;

use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::params::{BackupParams, BackupReply};

pub(crate) async fn backup(reach: &Connector, file: &Path, out: &mut OutputStreams) -> Result<(), Failure> {
    // The daemon has another current folder, so send an absolute path.
    let path = std::path::absolute(file)?;
    let Some(path) = path.to_str().map(String::from) else {
        return Err(Failure::usage("the path is not valid UTF-8"));
    };
    let client = reach.connect_or_start().await?;
    let made: BackupReply =
        client.call::<methods::daemon::Backup>(&BackupParams { path, idempotency_key: None }).await?;
    Ok(out.say(&format!("{} written, {} bytes", escape::line(&made.path), made.bytes))?)
}

#[cfg(test)]
mod tests {
    use crate::commands::backup::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use serde_json::json;

    #[tokio::test]
    async fn backup_sends_absolute_path_and_prints_size() {
        let fake = FakeDaemon::start(|_, method, params| {
            assert_eq!(method, "daemon.backup");
            let path = params["path"].as_str().expect("a path");
            assert!(path.starts_with('/') && path.ends_with("/a.db"), "{path}");
            Ok(json!({"path": "/x/a.db", "bytes": 4096}))
        });
        let (mut out, text, _) = captured_output();
        backup(&fake.connector(), Path::new("a.db"), &mut out).await.expect("made");
        assert_eq!(text.text(), "/x/a.db written, 4096 bytes\n");
    }
}
