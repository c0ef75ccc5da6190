//! `--image` and `--file`: files that are sent with the text of a submit.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::api::params::{FileContent, SubmitBlock, SubmitInput};
use crate::client::failure::Failure;
use crate::client::terminal::escape;

/// Options for files that are sent with the input.
#[derive(Clone, Debug, Default, Args)]
pub struct GivenArgs {
    /// Show the model an image (PNG, JPEG, GIF, WebP); may be repeated
    #[arg(long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,
    /// Give the model a PDF, a text file or an image; may be repeated
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

impl GivenArgs {
    /// The input of a submit. Pictures and files come before the text, because models work better that
    /// way. Piped standard input comes after it.
    pub(in crate::client) fn input(
        &self,
        text: String,
        piped: Option<String>,
    ) -> Result<SubmitInput, Failure> {
        if self.images.is_empty() && self.files.is_empty() && piped.is_none() {
            return Ok(SubmitInput::Text(text));
        }
        let images = self.images.iter().map(|path| Ok(SubmitBlock::Image(given(path)?)));
        let files = self.files.iter().map(|path| Ok(SubmitBlock::File(given(path)?)));
        let mut blocks: Vec<SubmitBlock> = images.chain(files).collect::<Result<_, Failure>>()?;
        blocks.push(SubmitBlock::Text { text });
        blocks.extend(piped.map(|text| SubmitBlock::Text { text }));
        Ok(SubmitInput::Blocks(blocks))
    }
}

/// The daemon reads the file and has another current folder, so the path is absolute.
fn given(path: &Path) -> Result<FileContent, Failure> {
    let shown = path.display().to_string();
    let shown = escape::line(&shown);
    let whole = std::path::absolute(path).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    match whole.to_str() {
        Some(text) => Ok(FileContent { path: Some(text.into()), ..FileContent::default() }),
        None => Err(Failure::usage(format!("{shown}: the name is not UTF-8"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::client::connection::input_files::*;

    #[test]
    fn input_text_stays_plain_and_files_get_absolute_path() {
        let words = GivenArgs::default().input("hi".into(), None).unwrap();
        assert_eq!(words, SubmitInput::Text("hi".into()));
        let words = GivenArgs::default().input("hi".into(), Some("+a\n".into())).unwrap();
        let text = |text: &str| SubmitBlock::Text { text: text.into() };
        assert_eq!(words, SubmitInput::Blocks(vec![text("hi"), text("+a\n")]));
        let args = GivenArgs { images: vec!["a.png".into()], files: vec!["/x/b.pdf".into()] };
        let SubmitInput::Blocks(blocks) = args.input("hi".into(), None).unwrap() else { panic!("no blocks") };
        let here = std::env::current_dir().unwrap().join("a.png");
        let path = |path: &str| FileContent { path: Some(path.into()), ..FileContent::default() };
        assert_eq!(blocks[0], SubmitBlock::Image(path(here.to_str().unwrap())));
        assert_eq!(
            blocks[1..],
            [SubmitBlock::File(path("/x/b.pdf")), SubmitBlock::Text { text: "hi".into() }]
        );
    }
}
