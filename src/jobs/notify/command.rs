//! Runs the command of `[jobs.notify.NAME]` for one message.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWriteExt as _};

use tools::{ServerLaunch, Toolbox};
use types::ids::Mint;
use types::server_program::ServerProgram;

/// Time limit of a command. Its whole process tree is ended then.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
/// Variables that programs need to show something on the user's desktop, in addition to those of commands. None of them
/// holds a key.
pub const DESKTOP_VARIABLES: [&str; 5] =
    ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Runs the command with the message on its standard input. Its output is dropped. All processes that it started end
/// with it. Cancel-safe: if the future is dropped, they are killed.
///
/// # Errors
/// The command could not be started, did not end in time, or failed. The text contains no argument of it.
pub(super) async fn run_command(
    tools: &Toolbox,
    words: &[String],
    body: &str,
    home: &Path,
    mut mint: Mint,
) -> Result<(), String> {
    run_for(tools, words, body, home, &mut mint, COMMAND_TIMEOUT).await
}

async fn run_for(
    tools: &Toolbox,
    words: &[String],
    body: &str,
    home: &Path,
    mint: &mut Mint,
    timeout: Duration,
) -> Result<(), String> {
    let (program, args) = words.split_first().ok_or("the command is empty")?;
    let variable = |name: &&str| Some(((*name).to_owned(), base::proc::variable(name)?));
    let env: BTreeMap<String, String> = DESKTOP_VARIABLES.iter().filter_map(variable).collect();
    let program = ServerProgram {
        program: program.clone(),
        args: args.to_vec(),
        session_environment: None,
        env,
        cwd: home.to_owned(),
        workspace: home.to_owned(),
        sandbox: false,
        unattended: true,
    };
    let launch = ServerLaunch { program, mark: mint.call(), temp_owner: mint.session() };
    let (mut running, streams) = tools.launch_server(launch).await?;
    let tools::ServerStreams { mut stdin, stdout, stderr } = streams;
    let write = async {
        // A command that does not read its input is not an error.
        let _ = stdin.write_all(body.as_bytes()).await;
        let _ = stdin.write_all(b"\n").await;
        drop(stdin);
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = running.wait_status() => Some(ended),
        () = write => None,
        () = drain(stdout) => None,
        () = drain(stderr) => None,
        () = tokio::time::sleep(timeout) => None,
    };
    running.end().await;
    match ended {
        Some(Ok(status)) if status.success() => Ok(()),
        Some(Ok(status)) => Err(format!("the command ended with {status}")),
        Some(Err(error)) => Err(format!("the command is gone: {error}")),
        None => Err(format!("the command did not end within {} s and was killed", timeout.as_secs())),
    }
}

/// Reads a stream, so that its writer never waits. Does not end.
async fn drain(mut stream: impl AsyncRead + Unpin) {
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::Seed;

    async fn run(script: &str, timeout: Duration) -> Result<(), String> {
        let dir = tempfile::tempdir().expect("a folder");
        let tools = Toolbox::new(tools::Settings::new(dir.path().to_owned()));
        let words = ["sh", "-c", script].map(str::to_owned);
        let body = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 18));
        run_for(&tools, &words, &body, dir.path(), &mut Mint::new(1, Seed::random()), timeout).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn command_gets_message_and_reports_its_end() {
        let long = Duration::from_secs(60);
        run("test $(wc -c) -gt 200000 && test -z \"$ANTHROPIC_API_KEY$AGENTD_TEST_SECRET\"", long)
            .await
            .expect("the whole message");
        run("exec <&-; true", long).await.expect("it need not read");
        run("yes | head -c 3000000; yes | head -c 3000000 >&2", long).await.expect("its output is dropped");
        assert!(run("exit 3", long).await.is_err_and(|why| why.contains('3')));
        let dir = tempfile::tempdir().expect("a folder");
        let tools = Toolbox::new(tools::Settings::new(dir.path().to_owned()));
        let missing = ["/nonexistent/program".to_owned(), "geheim".to_owned()];
        let why = run_command(&tools, &missing, "", dir.path(), Mint::new(1, Seed::random())).await;
        assert!(why.is_err_and(|why| why.contains("/nonexistent/program") && !why.contains("geheim")));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn process_tree_ends_with_its_command() {
        let dir = tempfile::tempdir().expect("a folder");
        let note = |name: &str| dir.path().join(name).display().to_string();
        let (one, two) = (note("one"), note("two"));
        let child =
            |file: &str| format!("setsid sh -c 'echo $$ > {file}.new; mv {file}.new {file}; sleep 600' &");
        let wait = |file: &str| format!("until test -e {file}; do sleep 0.01; done");
        run(&format!("{} {}", child(&one), wait(&one)), Duration::from_secs(60)).await.expect("it ended");
        let late = run(&format!("{} {}; sleep 600", child(&two), wait(&two)), Duration::from_secs(2)).await;
        assert!(late.is_err_and(|why| why.contains("2 s")));
        for file in [one, two] {
            let pid: i32 =
                std::fs::read_to_string(&file).expect("a process").trim().parse().expect("a number");
            let is_dead = base::proc::read_process(pid).map_or(true, |process| process.is_dead);
            assert!(is_dead, "{file}: {pid} lives");
        }
    }
}
