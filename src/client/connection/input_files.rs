//! `--image`, `--file`, `--resource` and `@SERVER:URI`: parts that are sent with the text of a submit.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::connection::mentions;
use crate::connection::remote::Machine;
use crate::failure::Failure;
use crate::terminal::confirm::confirm;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::params::{FileContent, ResourceLink, SubmitBlock, SubmitInput};

/// Options for files that are sent with the input.
#[derive(Clone, Debug, Default, Args)]
pub struct InputFileArgs {
    /// Show the model an image (PNG, JPEG, GIF, WebP); may be repeated
    #[arg(long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,
    /// Give the model a PDF, a text file or an image; may be repeated
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Give the model a resource of an MCP server; `@SERVER:URI` in the text does the same
    #[arg(long = "resource", value_name = "SERVER:URI")]
    pub resources: Vec<String>,
}

impl InputFileArgs {
    /// The input of a submit. Pictures and files come before the text, because models work better that
    /// way. Piped standard input comes after it.
    pub(crate) fn input(
        &self,
        text: String,
        piped: Option<String>,
        mentioned: Vec<SubmitBlock>,
        machine: Machine,
    ) -> Result<SubmitInput, Failure> {
        let resources = self.resources.iter().map(|resource| {
            parse_link(resource.strip_prefix('@').unwrap_or(resource)).ok_or_else(|| {
                let shown = escape::line(resource);
                Failure::usage(format!("{shown}: expected SERVER:URI, for example docs:file:///intro.md"))
            })
        });
        let resources = resources.collect::<Result<Vec<_>, _>>()?;
        let images =
            self.images.iter().map(|path| Ok(SubmitBlock::Image(file_content("--image", path, machine)?)));
        let files =
            self.files.iter().map(|path| Ok(SubmitBlock::File(file_content("--file", path, machine)?)));
        let mut blocks: Vec<SubmitBlock> = images.chain(files).collect::<Result<_, Failure>>()?;
        let resources = resources.into_iter().map(SubmitBlock::ResourceLink);
        blocks.extend(mentioned);
        for link in resources {
            if !blocks.contains(&link) {
                blocks.push(link);
            }
        }
        Ok(with_attachments(std::iter::once(text).chain(piped).collect(), blocks))
    }
}

/// An input of texts with attached content, which comes first.
pub(crate) fn with_attachments(mut texts: Vec<String>, mut attached: Vec<SubmitBlock>) -> SubmitInput {
    if attached.is_empty() && texts.len() == 1 {
        return SubmitInput::Text(texts.remove(0));
    }
    attached.extend(texts.into_iter().map(|text| SubmitBlock::Text { text }));
    SubmitInput::Blocks(attached)
}

/// The files, folders and resources that an argument mentions. Files are attached only if a person typed the text at
/// this terminal, because a script may pass a text of others. Asks before the content of a likely secret is sent. For a
/// daemon on another machine they name files of that machine, and the text stays as it is.
pub(crate) fn mentioned_in_argument(
    text: &str,
    (folder, machine): (&Path, Machine),
    out: &mut OutputStreams,
) -> Result<Vec<SubmitBlock>, Failure> {
    let resources = mentioned_resources(text);
    if machine == Machine::Other {
        return Ok(resources);
    }
    if !std::io::stdin().is_terminal() {
        if mentions::has_mention(text, folder) {
            out.note("files named with @ are attached only to text that is typed at a terminal; --file attaches one")?;
        }
        return Ok(resources);
    }
    let mentioned = mentions::read_mentioned(text, folder).map_err(Failure::usage)?;
    for content in mentioned.iter().filter(|content| content.is_likely_secret) {
        let path = escape::line(&content.path);
        confirm(&format!("{path} probably holds secrets. Send its content to the model?"), "--file")?;
    }
    Ok(mentioned.into_iter().map(|content| content.block).chain(resources).collect())
}

/// The resources that a text mentions as `@SERVER:URI`.
pub(crate) fn mentioned_resources(text: &str) -> Vec<SubmitBlock> {
    find_mentions(text).into_iter().map(SubmitBlock::ResourceLink).collect()
}

/// The resources that a text mentions as `@SERVER:URI`. The URI needs `://`, so that other words with `@`
/// stay text. Commands and notes have none, because they must stay a single text.
fn find_mentions(text: &str) -> Vec<ResourceLink> {
    let mut links: Vec<ResourceLink> = Vec::new();
    if text.starts_with(['/', '#']) {
        return links;
    }
    for word in text.split_whitespace() {
        let Some(mention) = word.strip_prefix('@').filter(|rest| rest.contains("://")) else { continue };
        let mention = mention.trim_end_matches([',', ';', '.', ')', '!', '?']);
        links.extend(parse_link(mention).filter(|link| !links.contains(link)));
    }
    links
}

/// Parses `SERVER:URI` as a reference to a resource.
fn parse_link(text: &str) -> Option<ResourceLink> {
    let (server, uri) = text.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_right = !server.is_empty() && server.chars().all(is_name) && uri.contains(':');
    is_right.then(|| ResourceLink { uri: uri.to_owned(), name: None, server: Some(server.to_owned()) })
}

/// A file by its absolute path, because the daemon reads the file and has another current folder. On another machine
/// only the daemon can look it up.
fn file_content(option: &str, path: &Path, machine: Machine) -> Result<FileContent, Failure> {
    let shown = path.display().to_string();
    let wrong =
        |error: &dyn std::fmt::Display| Failure::usage(format!("{option} {}: {error}", escape::line(&shown)));
    let whole = std::path::absolute(path).map_err(|error| wrong(&error))?;
    if machine == Machine::This {
        let meta = std::fs::metadata(&whole).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => wrong(&"there is no such file"),
            _ => wrong(&error),
        })?;
        if !meta.is_file() {
            return Err(wrong(&"it is not a file"));
        }
    }
    match whole.to_str() {
        Some(text) => Ok(FileContent { path: Some(text.into()), ..FileContent::default() }),
        None => Err(wrong(&"the name is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use crate::connection::input_files::*;

    #[test]
    fn input_text_stays_plain_and_files_get_absolute_path() {
        let input = InputFileArgs::default().input("hi".into(), None, Vec::new(), Machine::This).unwrap();
        assert_eq!(input, SubmitInput::Text("hi".into()));
        let input = InputFileArgs::default()
            .input("hi".into(), Some("+a\n".into()), Vec::new(), Machine::This)
            .unwrap();
        let text = |text: &str| SubmitBlock::Text { text: text.into() };
        assert_eq!(input, SubmitInput::Blocks(vec![text("hi"), text("+a\n")]));
        let dir = tempfile::tempdir().unwrap();
        let (image, pdf) = (dir.path().join("a.png"), dir.path().join("b.pdf"));
        std::fs::write(&image, "").unwrap();
        std::fs::write(&pdf, "").unwrap();
        let args = InputFileArgs {
            images: vec![image.clone()],
            files: vec![pdf.clone()],
            resources: vec!["docs:memo://1".into()],
        };
        let SubmitInput::Blocks(blocks) = args.input("hi".into(), None, Vec::new(), Machine::This).unwrap()
        else {
            panic!("no blocks")
        };
        let path = |path: &str| FileContent { path: Some(path.into()), ..FileContent::default() };
        assert_eq!(blocks[0], SubmitBlock::Image(path(image.to_str().unwrap())));
        assert_eq!(
            blocks[1..],
            [
                SubmitBlock::File(path(pdf.to_str().unwrap())),
                SubmitBlock::ResourceLink(resource("docs", "memo://1")),
                SubmitBlock::Text { text: "hi".into() }
            ]
        );
        let wrong = InputFileArgs { resources: vec!["docs".into()], ..InputFileArgs::default() };
        assert!(wrong.input("hi".into(), None, Vec::new(), Machine::This).is_err());
        for missing in [dir.path().join("none.png"), dir.path().to_owned()] {
            let wrong = InputFileArgs { images: vec![missing], ..InputFileArgs::default() };
            let failure = wrong.input("hi".into(), None, Vec::new(), Machine::This).unwrap_err();
            assert!(failure.code == 64 && failure.message.starts_with("--image "), "{failure}");
            assert!(
                wrong.input("hi".into(), None, Vec::new(), Machine::Other).is_ok(),
                "only the server knows"
            );
        }
    }

    fn resource(server: &str, uri: &str) -> ResourceLink {
        ResourceLink { uri: uri.into(), name: None, server: Some(server.into()) }
    }

    #[test]
    fn resources_that_text_mentions_are_attached_once() {
        let found = find_mentions(
            "compare @docs:memo://1, with @docs:memo://1 and @a.b:file:///x.md. Ask @bob: why?",
        );
        assert_eq!(found, [resource("docs", "memo://1"), resource("a.b", "file:///x.md")]);
        assert!(find_mentions("/explain @docs:memo://1").is_empty());
        assert!(find_mentions("mail me@example.com or see @https://x").is_empty());
    }
}
