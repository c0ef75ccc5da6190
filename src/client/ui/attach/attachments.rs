//! Content that goes along with an input: mentioned files and folders, resources, and pictures from the clipboard.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::connection::input_files::mentioned_resources;
use crate::connection::mentions::{MentionedContent, mentions_of_drop, read_mentioned};
use crate::connection::remote::Machine;
use crate::failure::Failure;
use crate::ui::attach::app::{App, SecretFiles, Submission};
use crate::ui::attach::calls::EffectResult;
use api::params::{FileContent, SubmitBlock};

/// How long a program may take to print the picture of the clipboard.
const CLIPBOARD_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of a picture, as in the daemon.
const MAX_PICTURE_BYTES: u64 = 20 << 20;

/// A program that prints the picture of the clipboard, and the variable without which it cannot work.
type ClipboardProgram<'a> = (&'a str, &'a [&'a str], Option<&'a str>);

const CLIPBOARD_PROGRAMS: &[ClipboardProgram<'_>] = &[
    ("wl-paste", &["--no-newline", "--type", "image/png"], Some("WAYLAND_DISPLAY")),
    ("xclip", &["-selection", "clipboard", "-target", "image/png", "-out"], Some("DISPLAY")),
    ("pngpaste", &["-"], None),
];

/// The content of an input.
#[derive(Debug)]
pub(super) enum Attachments {
    Read(Vec<SubmitBlock>),
    /// The user must say whether the content of these files is sent.
    LikelySecrets(Vec<String>),
}

/// Reads what goes along with an input.
pub(super) async fn read(
    submission: &Submission,
    cwd: &str,
    machine: Machine,
) -> Result<Attachments, Failure> {
    let (text, folder) = (submission.draft.text.clone(), PathBuf::from(cwd));
    let mut blocks = mentioned_resources(&text);
    // On another machine, the model reads the file that the text names.
    if text.contains('@') && machine == Machine::This {
        let mentioned = tokio::task::spawn_blocking(move || read_mentioned(&text, &folder)).await;
        let mentioned = mentioned
            .map_err(|error| Failure::internal(format!("could not read the files: {error}")))?
            .map_err(Failure::usage)?;
        let is_asked = |content: &&MentionedContent| content.is_likely_secret;
        let secrets: Vec<String> =
            mentioned.iter().filter(is_asked).map(|content| content.path.clone()).collect();
        if submission.secrets == SecretFiles::Ask && !secrets.is_empty() {
            return Ok(Attachments::LikelySecrets(secrets));
        }
        let is_sent =
            |content: &MentionedContent| submission.secrets == SecretFiles::Send || !content.is_likely_secret;
        blocks.splice(0..0, mentioned.into_iter().filter(is_sent).map(|content| content.block));
    }
    let picture = |picture: &crate::ui::editor::PastedPicture| {
        SubmitBlock::Image(FileContent {
            data: Some(STANDARD.encode(&picture.data)),
            name: Some(picture.name.clone()),
            ..FileContent::default()
        })
    };
    blocks.splice(0..0, submission.draft.pictures.iter().map(picture));
    Ok(Attachments::Read(blocks))
}

/// A pasted text as it enters the input line: paths of dropped files become mentions.
pub(super) fn pasted(app: &App, text: String) -> String {
    if !app.can_attach() || app.setup.machine == Machine::Other {
        return text;
    }
    let Some(mentions) = mentions_of_drop(&text, app.session.cwd.as_ref()) else { return text };
    let before = &app.line.editor.text()[..app.line.editor.cursor()];
    let gap = if before.is_empty() || before.ends_with(char::is_whitespace) { "" } else { " " };
    format!("{gap}{mentions}")
}

pub(super) async fn clipboard_picture() -> EffectResult {
    let is_usable = |program: &&ClipboardProgram<'_>| {
        program.2.is_none_or(|variable| base::proc::variable(variable).is_some_and(|value| !value.is_empty()))
    };
    let usable: Vec<ClipboardProgram<'_>> = CLIPBOARD_PROGRAMS.iter().filter(is_usable).copied().collect();
    match picture_of(&usable).await {
        Ok(data) => EffectResult::Picture(data),
        Err(error) => EffectResult::Failed(Failure::usage(error)),
    }
}

async fn picture_of(programs: &[ClipboardProgram<'_>]) -> Result<Vec<u8>, String> {
    for (program, arguments, _) in programs {
        let work = tokio::time::timeout(CLIPBOARD_TIMEOUT, output_of(program, arguments));
        return match work.await {
            Err(_) => Err(format!("{program} did not answer in {} s", CLIPBOARD_TIMEOUT.as_secs())),
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => continue,
            Ok(Err(error)) => Err(format!("could not run {program}: {error}")),
            Ok(Ok(data)) if data.is_empty() => Err("the clipboard holds no picture".into()),
            Ok(Ok(data)) if data.len() as u64 > MAX_PICTURE_BYTES => {
                Err(format!("the picture is larger than {} MiB", MAX_PICTURE_BYTES >> 20))
            }
            Ok(Ok(data)) => Ok(data),
        };
    }
    Err("no wl-paste, xclip or pngpaste can read the clipboard here; @FILE attaches a picture".into())
}

/// What the program prints; nothing if it fails.
async fn output_of(program: &str, arguments: &[&str]) -> io::Result<Vec<u8>> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut data = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(MAX_PICTURE_BYTES + 1).read_to_end(&mut data).await?;
    }
    if data.len() as u64 > MAX_PICTURE_BYTES {
        return Ok(data);
    }
    Ok(if child.wait().await?.success() { data } else { Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::editor::Editor;

    fn submission(text: &str) -> Submission {
        let mut editor = Editor::default();
        editor.insert(text);
        Submission { draft: editor.take_input(), ..Submission::new(text.into(), None) }
    }

    #[tokio::test]
    async fn likely_secret_is_asked_about_and_then_sent_or_left_out() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in [".env", "plain.txt"] {
            std::fs::write(dir.path().join(name), "x").expect("written");
        }
        let cwd = dir.path().to_str().expect("a name");
        let mut input = submission("compare @.env with @plain.txt");
        let Ok(Attachments::LikelySecrets(asked)) = read(&input, cwd, Machine::This).await else {
            panic!("not asked")
        };
        assert_eq!(asked, [".env"]);
        for (secrets, expected) in
            [(SecretFiles::Send, vec![".env", "plain.txt"]), (SecretFiles::NameOnly, vec!["plain.txt"])]
        {
            input.secrets = secrets;
            let Ok(Attachments::Read(blocks)) = read(&input, cwd, Machine::This).await else {
                panic!("not read")
            };
            let names: Vec<&str> = blocks
                .iter()
                .map(|block| match block {
                    SubmitBlock::File(content) => content.name.as_deref().expect("a name"),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(names, expected);
        }
    }

    #[tokio::test]
    async fn long_paste_mentions_no_file_and_picture_is_sent() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("a.txt"), "x").expect("written");
        let mut editor = Editor::default();
        editor.paste(&"see @a.txt\n".repeat(20));
        editor.paste_picture(vec![1, 2, 3]);
        let mut input = submission("");
        input.draft = editor.take_input();
        assert!(input.draft.whole_text().contains("@a.txt"));
        let cwd = dir.path().to_str().expect("a name");
        let Ok(Attachments::Read(blocks)) = read(&input, cwd, Machine::This).await else {
            panic!("not read")
        };
        let picture =
            FileContent { data: Some("AQID".into()), name: Some("1".into()), ..FileContent::default() };
        assert_eq!(blocks, [SubmitBlock::Image(picture)]);
    }

    #[tokio::test]
    async fn clipboard_is_read_by_first_program_that_exists() {
        let none: ClipboardProgram<'_> = ("agentctl-no-such-program", &[], None);
        let prints: ClipboardProgram<'_> = ("printf", &["picture"], None);
        let fails: ClipboardProgram<'_> = ("false", &[], None);
        assert_eq!(picture_of(&[none, prints]).await, Ok(b"picture".to_vec()));
        assert_eq!(picture_of(&[fails, prints]).await, Err("the clipboard holds no picture".into()));
        assert!(picture_of(&[none]).await.expect_err("no program").contains("@FILE"));
    }
}
