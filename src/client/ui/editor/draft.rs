//! The text of the input line, with the pastes and pictures that its markers stand for.

/// A paste that the text shows as one marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paste {
    pub(super) marker: String,
    pub(super) text: String,
}

/// A picture from the clipboard. The text contains its marker, which the model sees as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedPicture {
    /// The marker, for example `[image 1: 34 KB]`.
    pub marker: String,
    /// Its name for the model, which reads `Image 1`.
    pub name: String,
    /// The file's content.
    pub data: Vec<u8>,
}

/// A text that the user sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The text with its markers. The user sees it before it is sent.
    pub text: String,
    pub(super) pastes: Vec<Paste>,
    /// The pictures whose markers the text contains.
    pub pictures: Vec<PastedPicture>,
}

impl Draft {
    /// The text with all pastes.
    pub fn whole_text(&self) -> String {
        with_pastes(&self.text, &self.pastes)
    }
}

pub(super) fn with_pastes(text: &str, pastes: &[Paste]) -> String {
    let mut text = text.to_owned();
    for paste in pastes {
        text = text.replacen(&paste.marker, &paste.text, 1);
    }
    text
}
