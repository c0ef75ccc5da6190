//! What any file and any text of a model must do in the tools that change files: the laws that the
//! fuzz targets and their corpus hold us to.

use super::near::nearest;
use super::text::{self, Endings, Shown};

/// The bytes are a file; what stands before the first two bytes 0x1F are the old and the new text.
/// A file comes back byte for byte, an edit touches nothing else, and the text that is shown to a
/// model that missed is in the file.
///
/// # Panics
/// If a law is broken.
pub fn edit(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0x1f);
    let (Some(old), Some(new), Some(file)) = (parts.next(), parts.next(), parts.next()) else { return };
    let unify = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let (old, new) = (unify(old), unify(new));

    text::binary_kind(file);
    text::detect(file, false);
    let charset = text::detect(file, true);
    let Some(original) = charset.decode(file) else { return };
    assert_eq!(charset.encode(&original).as_deref(), Some(file), "{} does not come back", charset.name());

    let view = Shown::new(&original);
    let is_cr = Endings::of(&original) == Endings::Cr;
    let shown = original.replace("\r\n", "\n");
    assert_eq!(view.text, if is_cr { shown.replace('\r', "\n") } else { shown });
    let (old, new) = (view.unify(&old), view.unify(&new));
    let places: Vec<_> = view.text.match_indices(&old).map(|(at, found)| at..at + found.len()).collect();
    if old.is_empty() || places.is_empty() {
        if let Some(near) = nearest(&view.text, &old) {
            let lines: Vec<&str> = view.text.lines().skip(near.line - 1).collect();
            assert!(lines.join("\n").starts_with(&near.text), "{near:?} is not in the file");
        }
        return;
    }
    assert_eq!(view.replace(&places, &old), original, "a text replaced by itself changed the file");
    let edited = view.replace(&places, &new);
    // A carriage return that stands alone could become half of a line's end.
    if view.text.contains('\r') || new.contains('\r') {
        return;
    }
    if is_cr {
        assert_eq!(edited.replace('\r', "\n"), view.text.replace(&old, &new));
        return;
    }
    assert_eq!(edited.replace("\r\n", "\n"), view.text.replace(&old, &new));
    // Line endings of one kind stay of that kind.
    let (before, after) = (Endings::of(&original), Endings::of(&edited));
    if matches!(before, Endings::Lf | Endings::CrLf) {
        assert!(after == before || after == Endings::None, "{before:?} became {after:?}");
    }
}

/// See [`super::patch`]: a patch, 0x1F, the text of the file that it updates.
///
/// # Panics
/// If a law is broken.
pub fn patch(data: &[u8]) {
    super::patch::fuzz::patch(data);
}

/// See [`super::notebook`]: what to do, which cell, and the notebook.
///
/// # Panics
/// If a law is broken.
pub fn notebook(data: &[u8]) {
    super::notebook::fuzz::notebook(data);
}
