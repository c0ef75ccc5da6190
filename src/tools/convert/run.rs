//! Starts a conversion, sends its input, and reads a limited output within a time limit.

use std::borrow::Cow;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::child::{self, DOCUMENT_ARGUMENT, MAX_DOCUMENT_BYTES};
use crate::settings::Settings;
use base::proc;

/// Limits the number of parallel conversions, because each may use much memory.
static CONVERSION_SLOTS: Semaphore = Semaphore::const_new(4);

/// Time limit of a conversion.
const CONVERT_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum bytes of output that are read.
const MAX_OUTPUT_BYTES: u64 = 8 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) enum DocumentKind {
    /// Text in UTF-8.
    Html,
    /// A picture: checked, and made smaller if it is too large.
    Image,
    /// Pages from 1.
    Pdf { first: u32, last: u32 },
}

/// The output of a conversion. If a limit of time or memory, or a crash, ended it early, the output so far is
/// returned with `Some` reason.
#[derive(Debug)]
pub(crate) struct ConverterOutput {
    pub(crate) bytes: Vec<u8>,
    pub(crate) broken: Option<String>,
}

impl ConverterOutput {
    /// The output as text; invalid bytes are replaced.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// Converts a document. `None` if it was stopped. If the future is dropped, the process is killed.
pub(crate) async fn convert(
    settings: &Settings,
    document: DocumentKind,
    bytes: Vec<u8>,
    stop: &CancellationToken,
) -> Option<ConverterOutput> {
    let broken = |why: String| Some(ConverterOutput { bytes: Vec::new(), broken: Some(why) });
    if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
        return broken(format!("it is larger than {} MiB", MAX_DOCUMENT_BYTES >> 20));
    }
    let what = match document {
        DocumentKind::Html => "html".to_owned(),
        DocumentKind::Image => "image".to_owned(),
        DocumentKind::Pdf { first, last } => format!("pdf:{first}:{last}"),
    };
    let _slot = tokio::select! {
        () = stop.cancelled() => return None,
        slot = CONVERSION_SLOTS.acquire() => slot,
    };
    let Some(program) = &settings.converter else {
        let here = tokio::task::spawn_blocking(move || {
            let mut out = Vec::new();
            let made = child::make(&what, bytes, &mut out);
            (made, out)
        });
        return match here.await {
            Ok((made, out)) => Some(ConverterOutput { bytes: out, broken: made.err() }),
            Err(_) => broken("the document is too strange to be read".into()),
        };
    };
    let mut command = Command::new(program);
    command
        .args([DOCUMENT_ARGUMENT, &what])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = match proc::spawn(&mut command) {
        Ok(child) => child,
        Err(error) => return broken(format!("the converter could not be started: {error}")),
    };
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return broken("the converter has no pipes".into());
    };
    let feed = async move {
        // The converter may close its input early.
        let _ = stdin.write_all(&bytes).await;
        drop(stdin);
    };
    let (mut bytes, mut stderr_bytes) = (Vec::new(), Vec::new());
    let why = {
        let mut stdout = stdout.take(MAX_OUTPUT_BYTES + 1);
        let mut stderr = stderr.take(4096);
        let work = async {
            let (_, read, _) =
                tokio::join!(feed, stdout.read_to_end(&mut bytes), stderr.read_to_end(&mut stderr_bytes));
            read
        };
        tokio::select! {
            () = stop.cancelled() => return None,
            read = tokio::time::timeout(CONVERT_TIMEOUT, work) => match read {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some(format!("it took more than {} seconds", CONVERT_TIMEOUT.as_secs())),
            },
        }
    };
    let is_too_much = bytes.len() as u64 > MAX_OUTPUT_BYTES;
    bytes.truncate(MAX_OUTPUT_BYTES as usize);
    let why = match why {
        Some(why) => Some(why),
        None if is_too_much => Some("it holds too much text".into()),
        None => match tokio::time::timeout(CONVERT_TIMEOUT, child.wait()).await {
            Ok(Ok(status)) if status.success() => None,
            Ok(Ok(status)) => {
                use std::os::unix::process::ExitStatusExt as _;
                // A signal means a resource limit or a crash; otherwise use the converter's own message for
                // users.
                Some(match status.signal() {
                    Some(_) => "it needs too much memory or time, or is too deeply nested".into(),
                    None => last_message(&stderr_bytes),
                })
            }
            _ => Some("the converter does not end".into()),
        },
    };
    let _ = child.start_kill();
    Some(ConverterOutput { bytes, broken: why })
}

/// The last line of the converter's messages.
fn last_message(stderr_bytes: &[u8]) -> String {
    let stderr_text = String::from_utf8_lossy(stderr_bytes);
    let line =
        stderr_text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed without a word");
    let line = line.trim().trim_start_matches("agentd: ");
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}
