//! Properties of the tools that change files, for any file and any text of a model. The fuzz targets and their
//! corpus check them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use crate::files::did_you_mean::find_nearest;
use crate::files::read;
use crate::fs::jail::Jail;
use crate::fs::resolve::is_other_tilde;
use crate::fs::text;
use crate::fs::text::{LineEndings, ShownText};
use crate::sensitivity::{Access, SensitivePaths, sensitivity};
use base::sync::lock;
use types::invisible_chars::{is_invisible, is_joiner_at};
use types::names;
use types::tool::PathSensitivity;

/// The bytes are a file; the text before the first two bytes 0x1F is the old and the new text. Decoding and
/// encoding returns the same bytes. An edit changes nothing else. The text that is shown after a failed match
/// is in the file.
///
/// # Panics
/// If a property does not hold.
pub fn edit(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0x1f);
    let (Some(old), Some(new), Some(file)) = (parts.next(), parts.next(), parts.next()) else { return };
    let unify = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let (old, new) = (unify(old), unify(new));

    let _kind = text::binary_kind(file);
    let _charset = text::detect(file, text::Extent::Beginning);
    let charset = text::detect(file, text::Extent::Whole);
    let Some(original) = charset.decode(file) else { return };
    assert_eq!(charset.encode(&original).as_deref(), Some(file), "{} does not come back", charset.name());

    let view = ShownText::new(&original);
    let is_cr = LineEndings::detect(&original) == LineEndings::Cr;
    let shown = original.replace("\r\n", "\n");
    assert_eq!(view.text, if is_cr { shown.replace('\r', "\n") } else { shown });
    let (old, new) = (view.unify(&old), view.unify(&new));
    let places: Vec<_> = view.text.match_indices(&old).map(|(at, found)| at..at + found.len()).collect();
    if old.is_empty() || places.is_empty() {
        if let Some(near) = find_nearest(&view.text, &old) {
            let lines: Vec<&str> = view.text.lines().skip(near.line - 1).collect();
            assert!(lines.join("\n").starts_with(&near.text), "{near:?} is not in the file");
        }
        return;
    }
    assert_eq!(view.replace(&places, &old), original, "a text replaced by itself changed the file");
    let edited = view.replace(&places, &new);
    // A single carriage return could become half of a line ending.
    if view.text.contains('\r') || new.contains('\r') {
        return;
    }
    if is_cr {
        assert_eq!(edited.replace('\r', "\n"), view.text.replace(&old, &new));
        return;
    }
    assert_eq!(edited.replace("\r\n", "\n"), view.text.replace(&old, &new));
    // If all line endings are of one kind, they stay of that kind.
    let (before, after) = (LineEndings::detect(&original), LineEndings::detect(&edited));
    if matches!(before, LineEndings::Lf | LineEndings::CrLf) {
        assert!(after == before || after == LineEndings::None, "{before:?} became {after:?}");
    }
}

/// The first byte selects an encoding and the second the size of the pieces in which the file arrives. The
/// third and fourth select the requested lines; the rest is the file. Read shows the same text for every piece
/// size, and shows the lines of the text. Encoding and decoding return the same text.
///
/// # Panics
/// If a property does not hold.
pub fn encoding(data: &[u8]) {
    use encoding_rs as e;
    const ENCODINGS: [&encoding_rs::Encoding; 14] = [
        e::UTF_8,
        e::UTF_16LE,
        e::UTF_16BE,
        e::GBK,
        e::GB18030,
        e::BIG5,
        e::SHIFT_JIS,
        e::EUC_JP,
        e::EUC_KR,
        e::WINDOWS_1252,
        e::WINDOWS_1251,
        e::KOI8_R,
        e::MACINTOSH,
        e::ISO_8859_2,
    ];
    let [which, cut, first, limit, file @ ..] = data else { return };
    let (first, limit) = (u64::from(*first).max(1), u64::from(*limit).max(1));

    let show = |size: usize| read::shown_text(file, &mut file.chunks(size.max(1)), first, limit);
    let whole = show(file.len());
    assert_eq!(show(usize::from(*cut)), whole, "cut at {cut}");
    let (charset, text) = text::text_of(file);
    assert_eq!(charset, text::detect(file, text::Extent::Whole));
    if let (Some((excerpt, total)), Some(text)) = (&whole, &text) {
        let feed = if file.contains(&b'\r') && !file.contains(&b'\n') { '\r' } else { '\n' };
        let lines: Vec<&str> = text.split_inclusive(feed).collect();
        assert_eq!(*total, lines.len() as u64);
        let wanted = lines.iter().enumerate().skip(first as usize - 1).take(limit as usize);
        let slow: String = wanted
            .map(|(at, line)| {
                let line =
                    line.strip_suffix(feed).map_or(*line, |line| line.strip_suffix('\r').unwrap_or(line));
                format!("{:>6}\t{line}\n", at + 1)
            })
            .collect();
        // Longer lines and answers are truncated with a note.
        if lines.iter().all(|line| line.len() < 2_000) && slow.len() < 100_000 {
            assert_eq!(*excerpt, slow);
        }
    }

    for charset in
        [charset, text::Charset { encoding: ENCODINGS[usize::from(*which) % ENCODINGS.len()], bom: 0 }]
    {
        if let Some(text) = charset.decode(file) {
            assert_eq!(charset.encode(&text).as_deref(), Some(file), "{} does not come back", charset.name());
        }
        let text = String::from_utf8_lossy(file);
        if let Some(written) = charset.encode(&text) {
            assert_eq!(charset.decode(&written).as_deref(), Some(&*text), "{}", charset.name());
        }
    }
}

/// See [`crate::files::patch`]: a patch, 0x1F, the text of the file that it updates.
///
/// # Panics
/// If a property does not hold.
pub fn patch(data: &[u8]) {
    crate::files::patch::fuzz::patch(data);
}

/// See [`super::convert`]: the bytes are a picture.
///
/// # Panics
/// If a property does not hold.
pub fn picture(data: &[u8]) {
    super::convert::fuzz::picture(data);
}

/// See [`crate::files::notebook`]: the operation, the cell, and the notebook.
///
/// # Panics
/// If a property does not hold.
pub fn notebook(data: &[u8]) {
    crate::files::notebook::fuzz::notebook(data);
}

/// The text before the first byte 0x1F is the target of a link in the workspace, the rest a path. An accepted
/// path is absolute, free of links and readable. The kernel would open the same object. Case folding of its
/// names never makes the path less sensitive.
///
/// # Panics
/// If a property does not hold, or the folder for the test cannot be created.
pub fn path(data: &[u8]) {
    static SHARED_FOLDER: OnceLock<Mutex<tempfile::TempDir>> = OnceLock::new();
    let shared = SHARED_FOLDER.get_or_init(|| Mutex::new(path_shared().expect("a folder")));
    let shared = lock(shared);
    let root = shared.path().canonicalize().expect("its path");
    let (target, text) = match data.iter().position(|byte| *byte == 0x1f) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (&b"d"[..], data),
    };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let workspace = root.join("ws");
    let link = workspace.join("l");
    let _ = fs::remove_file(&link);
    let target: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(target);
    let _ = symlink(target, &link);

    let jail = Jail::open(std::slice::from_ref(&workspace), &root.join("home"), &[]);
    let places = SensitivePaths::new(&root.join("home"), &[]);
    for access in [Access::Read, Access::Edit] {
        let Ok(held) = jail.decide(text, &workspace, access) else { continue };
        let path = &held.path;
        assert!(path.is_absolute(), "{path:?}");
        assert!(path.iter().all(|part| part != "." && part != ".."), "{path:?}");
        let hides =
            |path: &str| path.char_indices().any(|(index, c)| is_invisible(c) && !is_joiner_at(path, index));
        assert!(path.to_str().is_some_and(|path| !hides(path)), "{path:?}");
        let is_inside = path.starts_with(&workspace) && !is_other_tilde(text);
        assert_eq!(held.in_workspace, is_inside, "{path:?}");
        let is_free_of_links = path.ancestors().all(|part| !part.is_symlink());
        assert!(is_free_of_links, "{path:?}");
        // The path as the kernel resolves it.
        let written = match text.strip_prefix('~') {
            Some("") => root.join("home"),
            Some(rest) if rest.starts_with('/') => root.join("home").join(rest.trim_start_matches('/')),
            _ => workspace.join(text),
        };
        if let Ok(real) = fs::canonicalize(&written) {
            assert_eq!(*path, real, "{text:?} leads elsewhere");
        }
        // The opened object is the one at the path.
        if let Ok((_, meta)) = held.open() {
            let now = fs::symlink_metadata(path).expect("it was just opened");
            assert_eq!(
                crate::file_identity::FileIdentity::from_metadata(&meta),
                crate::file_identity::FileIdentity::from_metadata(&now),
                "{path:?}"
            );
        }
        let folded: PathBuf = path.iter().map(|part| fold_case(Path::new(part))).collect();
        let (plain, folded) = (sensitivity(path, access, &places), sensitivity(&folded, access, &places));
        assert_eq!(plain, folded, "{path:?}");
        assert!(
            plain == PathSensitivity::Ordinary || held.sensitivity != PathSensitivity::Ordinary,
            "{path:?}"
        );
    }
}

fn fold_case(part: &Path) -> String {
    if part == Path::new("/") { "/".into() } else { names::fold_case(&part.to_string_lossy()) }
}

fn path_shared() -> std::io::Result<tempfile::TempDir> {
    let dir = tempfile::tempdir()?;
    for file in ["ws/a", "ws/d/b", "ws/.git/config", "ws/.agentd/policy.toml", "home/.bashrc", "out/s"] {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap_or(dir.path()))?;
        fs::write(path, file)?;
    }
    symlink("../out", dir.path().join("ws/o"))?;
    symlink("d", dir.path().join("ws/e"))?;
    Ok(dir)
}
