//! `@file` in a text that a person typed: the content of the file or folder goes along with the text.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use api::params::{DocumentContent, FileContent, SubmitBlock};
use types::{names, secret_names};

/// Maximum bytes of text that are attached. The daemon refuses a longer text.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Bytes of the beginning of a file in which a zero byte means that it is no text.
const HEAD_BYTES: usize = 8 << 10;
/// Maximum entries in the listing of a folder.
const MAX_ENTRIES: usize = 500;
/// Maximum entries that are read of a folder and those below it.
const MAX_READ_ENTRIES: usize = 20_000;
/// Maximum bytes of a pasted text that may be the paths of dropped files.
const MAX_DROP_BYTES: usize = 8 << 10;
/// Punctuation after a mention that belongs to the sentence.
const END_MARKS: &[char] = &[',', ';', '.', ':', '!', '?', ')', ']', '}', '>', '\'', '"'];

/// A file or folder that a text mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mention {
    /// The path as it was typed.
    path: String,
    /// First and last line, from 1.
    lines: Option<(usize, usize)>,
}

/// The content of a mentioned file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MentionedContent {
    /// The path as it was typed.
    pub(crate) path: String,
    pub(crate) block: SubmitBlock,
    /// Whether the name is one of files that hold credentials.
    pub(crate) is_likely_secret: bool,
}

/// Reads the files and folders that a text mentions as `@path`, `@path#L10-20` or `@"a path"`. A word whose file does
/// not exist is no mention. Blocks on the disk.
pub(crate) fn read_mentioned(text: &str, folder: &Path) -> Result<Vec<MentionedContent>, String> {
    let mentions = find(text, |path| locate(path, folder).exists());
    mentions.iter().map(|mention| read(mention, folder)).collect()
}

/// Whether a text mentions a file or folder that exists.
pub(crate) fn has_mention(text: &str, folder: &Path) -> bool {
    !find(text, |path| locate(path, folder).exists()).is_empty()
}

/// Paths of files that were dropped on the terminal, as mentions; `None` if the pasted text is anything else. Terminals
/// paste such paths quoted, with backslashes, or as `file:` URIs.
pub(crate) fn mentions_of_drop(pasted: &str, folder: &Path) -> Option<String> {
    if pasted.len() > MAX_DROP_BYTES {
        return None;
    }
    let words = split_words(pasted)?;
    let paths = words.iter().map(|word| {
        let path = match word.strip_prefix("file://") {
            Some(rest) => percent_decoded(rest.strip_prefix("localhost").unwrap_or(rest))?,
            None => word.clone(),
        };
        let is_there = Path::new(&path).is_absolute() && Path::new(&path).exists();
        is_there.then(|| mention_of(path.strip_prefix(&format!("{}/", folder.display())).unwrap_or(&path)))
    });
    let mentions = paths.collect::<Option<Vec<_>>>().filter(|mentions| !mentions.is_empty())?;
    Some(mentions.join(" ") + " ")
}

/// A path as it is mentioned: in quotes if it contains blanks.
pub(crate) fn mention_of(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("@\"{path}\"") } else { format!("@{path}") }
}

/// The mentions of a text, each once. Slash commands, notes and shell commands have none.
fn find(text: &str, exists: impl Fn(&str) -> bool) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    if text.starts_with(['/', '#', '!']) {
        return mentions;
    }
    let mut before = ' ';
    for (index, c) in text.char_indices() {
        let is_begin = before.is_whitespace() || matches!(before, '(' | '[' | '{' | '<' | '\'' | '"');
        before = c;
        if c != '@' || !is_begin {
            continue;
        }
        let mention = parse(&text[index + 1..], &exists);
        mentions.extend(mention.filter(|mention| !mentions.contains(mention)));
    }
    mentions
}

/// The mention at the beginning of a text, without its `@`.
fn parse(rest: &str, exists: &impl Fn(&str) -> bool) -> Option<Mention> {
    if let Some(quoted) = rest.strip_prefix('"') {
        let (path, after) = quoted.split_once('"').filter(|(path, _)| !path.is_empty() && exists(path))?;
        let suffix = after.split(char::is_whitespace).next().unwrap_or_default().trim_end_matches(END_MARKS);
        return Some(Mention { path: path.to_owned(), lines: line_range(suffix) });
    }
    let mut word = rest.split(char::is_whitespace).next().unwrap_or_default();
    loop {
        if !word.is_empty() && exists(word) {
            return Some(Mention { path: word.to_owned(), lines: None });
        }
        if let Some((path, _)) = word.rsplit_once("#L").filter(|(path, _)| !path.is_empty())
            && let Some(lines) = line_range(&word[path.len()..])
            && exists(path)
        {
            return Some(Mention { path: path.to_owned(), lines: Some(lines) });
        }
        word = word.strip_suffix(END_MARKS)?;
    }
}

/// `#L10`, `#L10-20` or `#L10-L20`.
fn line_range(suffix: &str) -> Option<(usize, usize)> {
    let (first, last) = match suffix.strip_prefix("#L")?.split_once('-') {
        Some((first, last)) => (first, last.strip_prefix('L').unwrap_or(last)),
        None => (&suffix[2..], &suffix[2..]),
    };
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
    let (first, last) = (number(first)?, number(last)?);
    Some((first.min(last), first.max(last)))
}

/// The path of a file that is typed relative to a folder or to the home folder.
fn locate(path: &str, folder: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(path),
    }
}

fn home() -> Option<PathBuf> {
    base::proc::variable("HOME").map(PathBuf::from)
}

fn read(mention: &Mention, folder: &Path) -> Result<MentionedContent, String> {
    let Mention { path, lines } = mention;
    let place = locate(path, folder);
    let failed = |error: &dyn std::fmt::Display| format!("could not attach @{path}: {error}");
    let meta = std::fs::metadata(&place).map_err(|error| failed(&error))?;
    let block = match lines {
        _ if !meta.is_dir() && !meta.is_file() => return Err(failed(&"it is neither a file nor a folder")),
        Some(_) if meta.is_dir() => return Err(failed(&"it is a folder and has no lines")),
        Some((first, last)) => {
            let (text, last) = read_lines(&place, (*first, *last)).map_err(|error| failed(&error))?;
            let range = if *first == last { format!("#L{first}") } else { format!("#L{first}-{last}") };
            text_block(&format!("{path}{range}"), text)
        }
        None if meta.is_dir() => text_block(&format!("{}/", path.trim_end_matches('/')), list(&place)),
        None => match beginning_of_large_text(&place, meta.len()).map_err(|error| failed(&error))? {
            Some(text) => text_block(path, text),
            None => {
                let place = place.to_str().ok_or_else(|| failed(&"its name is not UTF-8"))?;
                let name = Some(path.clone());
                SubmitBlock::File(FileContent { path: Some(place.into()), name, ..FileContent::default() })
            }
        },
    };
    Ok(MentionedContent { path: path.clone(), block, is_likely_secret: is_likely_secret(&place) })
}

fn text_block(name: &str, text: String) -> SubmitBlock {
    SubmitBlock::Document(DocumentContent {
        path: Some(name.to_owned()),
        text: Some(text),
        ..DocumentContent::default()
    })
}

/// Lines of a text file, and the number of the last one, which the file may end before.
fn read_lines(place: &Path, (first, last): (usize, usize)) -> Result<(String, usize), String> {
    let file = File::open(place).map_err(|error| error.to_string())?;
    let mut reader = BufReader::new(file);
    let (mut text, mut number) = (String::new(), 0);
    while number < last {
        let is_before = number + 1 < first;
        let mut line = Vec::new();
        // A line may be as long as the file.
        let count = match is_before {
            true => reader.skip_until(b'\n'),
            false => reader.by_ref().take(MAX_TEXT_BYTES as u64 + 1).read_until(b'\n', &mut line),
        };
        if count.map_err(|error| error.to_string())? == 0 {
            break;
        }
        if text.len() + line.len() > MAX_TEXT_BYTES {
            return Err(format!("the lines are longer than {} KiB; name fewer", MAX_TEXT_BYTES >> 10));
        }
        number += 1;
        let line = std::str::from_utf8(&line).map_err(|_| "its lines are not UTF-8 text".to_owned())?;
        match line.strip_suffix("\r\n") {
            Some(line) => text.extend([line, "\n"]),
            None => text.push_str(line),
        }
    }
    if number < first {
        return Err(format!("it has {number} line{}", if number == 1 { "" } else { "s" }));
    }
    Ok((text, number))
}

/// The beginning of a text file that is too long to be attached; `None` for any other file, which the daemon reads.
fn beginning_of_large_text(place: &Path, bytes: u64) -> std::io::Result<Option<String>> {
    if bytes <= MAX_TEXT_BYTES as u64 {
        return Ok(None);
    }
    let mut head = Vec::new();
    File::open(place)?.take(MAX_TEXT_BYTES as u64 - 1_024).read_to_end(&mut head)?;
    let is_text = !head[..head.len().min(HEAD_BYTES)].contains(&0) && !head.starts_with(b"%PDF");
    let end = head.iter().rposition(|byte| *byte == b'\n').map_or(head.len(), |index| index + 1);
    let Some(text) = std::str::from_utf8(&head[..end]).ok().filter(|_| is_text) else { return Ok(None) };
    let lines = text.lines().count();
    Ok(Some(format!(
        "{text}[These are the first {lines} lines of a file of {bytes} bytes. Read gives the rest.]"
    )))
}

/// The files and folders below a folder, without those that git ignores. Those near the top come first if there are
/// too many.
fn list(place: &Path) -> String {
    let walk = ignore::WalkBuilder::new(place).hidden(true).max_depth(Some(8)).build();
    let entry = |entry: ignore::DirEntry| {
        let path = entry.path().strip_prefix(place).ok()?.to_str()?.to_owned();
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let path = if is_dir { path + "/" } else { path };
        (entry.depth() > 0).then_some((entry.depth(), path))
    };
    let mut entries: Vec<(usize, String)> =
        walk.filter_map(Result::ok).filter_map(entry).take(MAX_READ_ENTRIES).collect();
    entries.sort();
    let hidden = entries.len().saturating_sub(MAX_ENTRIES);
    entries.truncate(MAX_ENTRIES);
    let mut paths: Vec<String> = entries.into_iter().map(|(_, path)| path).collect();
    paths.sort();
    if hidden > 0 {
        paths.push(format!("[+ {hidden} more. Glob finds them.]"));
    }
    if paths.is_empty() { "(empty)".into() } else { paths.join("\n") }
}

/// Whether the path or the file that it leads to has a name of files with credentials.
fn is_likely_secret(place: &Path) -> bool {
    let is_secret = |place: &Path| {
        let folded = |place: &Path| -> Vec<String> {
            place
                .iter()
                .filter(|part| *part != "/")
                .map(|part| names::fold_case(&part.to_string_lossy()))
                .collect()
        };
        let parts = folded(place);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let home = home().map(|home| folded(&home.canonicalize().unwrap_or(home))).unwrap_or_default();
        let below_home = parts.strip_prefix(home.iter().map(String::as_str).collect::<Vec<_>>().as_slice());
        secret_names::is_secret(&parts, below_home.filter(|below| !home.is_empty() && !below.is_empty()))
    };
    is_secret(place) || place.canonicalize().is_ok_and(|real| is_secret(&real))
}

/// The words of a pasted text, as a shell splits them; `None` if a quote is not closed.
fn split_words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.push(chars.next()?),
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c.is_whitespace() => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
            }
            (_, c) => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    quote.is_none().then_some(words)
}

/// Replaces each `%XX` by its byte.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let known = ["a.rs", "src/b c.txt", "src", "note#L1", "x.", "ü.md"];
        let mentions = find(text, |path| known.contains(&path));
        let shown = |mention: Mention| match mention.lines {
            Some((first, last)) => format!("{} {first}-{last}", mention.path),
            None => mention.path,
        };
        mentions.into_iter().map(shown).collect()
    }

    #[test]
    fn existing_files_after_at_sign_are_mentions() {
        let check = |text: &str, expected: &[&str]| assert_eq!(found(text), expected, "{text}");
        check("see @a.rs, (@src) and @a.rs again", &["a.rs", "src"]);
        check("@a.rs#L3 @a.rs#L10-20 @a.rs#L20-L10.", &["a.rs 3-3", "a.rs 10-20"]);
        check("@\"src/b c.txt\" @\"src/b c.txt\"#L2-4, @\"src/b c.txt", &["src/b c.txt", "src/b c.txt 2-4"]);
        check("@note#L1 @x. @ü.md?", &["note#L1", "x.", "ü.md"]);
        check("@a.rs#L0 @a.rs#Lx @a.rs#L @missing @ @\"\" me@a.rs @bob", &[]);
        for text in ["/review @a.rs", "# @a.rs", "!cat @a.rs"] {
            check(text, &[]);
        }
        check("first\n@a.rs\n\"@src\"", &["a.rs", "src"]);
    }

    #[test]
    fn mentioned_file_lines_and_folder_become_blocks() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(place("src/deep")).expect("made");
        std::fs::create_dir(place("empty")).expect("made");
        std::fs::write(place("src/a.rs"), "one\ntwo\r\nthree\nfour").expect("written");
        std::fs::write(place("src/deep/b.rs"), "b").expect("written");
        let large = "0123456789\n".repeat(30_000);
        std::fs::write(place("large.log"), &large).expect("written");
        std::fs::write(place("large.bin"), vec![0; 300 << 10]).expect("written");
        let only = |text: &str| {
            let mut all = read_mentioned(text, dir.path())?;
            assert_eq!(all.len(), 1, "{text}");
            Ok::<_, String>(all.remove(0).block)
        };
        let text = |name: &str, text: &str| Ok(text_block(name, text.into()));
        assert_eq!(only("@src/a.rs#L2-3"), text("src/a.rs#L2-3", "two\nthree\n"));
        assert_eq!(only("@src/a.rs#L4-99"), text("src/a.rs#L4", "four"));
        assert_eq!(only("@src/a.rs#L5"), Err("could not attach @src/a.rs: it has 4 lines".into()));
        assert_eq!(only("@src/"), text("src/", "a.rs\ndeep/\ndeep/b.rs"));
        assert_eq!(only("@empty"), text("empty/", "(empty)"));
        assert!(only("@src#L1").unwrap_err().contains("has no lines"));
        for name in ["src/a.rs", "large.bin"] {
            let path = place(name).to_str().map(str::to_owned);
            let content = FileContent { path, name: Some(name.into()), ..FileContent::default() };
            assert_eq!(only(&format!("@{name}")), Ok(SubmitBlock::File(content)));
        }
        let Ok(SubmitBlock::Document(DocumentContent { text: Some(begin), .. })) = only("@large.log") else {
            panic!("no text")
        };
        assert!(begin.len() < MAX_TEXT_BYTES && begin.starts_with("0123456789\n"), "{}", begin.len());
        assert!(begin.contains("of a file of 330000 bytes"));
        assert_eq!(only("@large.log#L30000"), text("large.log#L30000", "0123456789\n"));
        assert!(only("@large.log#L1-30000").unwrap_err().contains("longer than 256 KiB"));
    }

    #[test]
    fn files_with_names_of_secrets_are_marked() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in [".env", "server.pem", "plain.txt", "SECRETS.JSON"] {
            std::fs::write(dir.path().join(name), "x").expect("written");
        }
        std::os::unix::fs::symlink(".env", dir.path().join("link")).expect("linked");
        let text = "@.env @server.pem @plain.txt @link @SECRETS.JSON";
        let marked: Vec<bool> =
            read_mentioned(text, dir.path()).expect("read").iter().map(|it| it.is_likely_secret).collect();
        assert_eq!(marked, [true, true, false, true, true]);
    }

    #[test]
    fn dropped_paths_become_mentions_and_other_text_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().canonicalize().expect("a folder");
        for name in ["shot.png", "my shot.png"] {
            std::fs::write(folder.join(name), "x").expect("written");
        }
        let root = folder.display();
        let check = |pasted: String, expected: Option<&str>| {
            assert_eq!(mentions_of_drop(&pasted, &folder).as_deref(), expected, "{pasted}");
        };
        check(format!("{root}/shot.png"), Some("@shot.png "));
        check(format!("'{root}/my shot.png' "), Some("@\"my shot.png\" "));
        check(format!("{root}/my\\ shot.png {root}/shot.png\n"), Some("@\"my shot.png\" @shot.png "));
        check(format!("file://{root}/my%20shot.png"), Some("@\"my shot.png\" "));
        assert_eq!(
            mentions_of_drop(&format!("{root}/shot.png"), Path::new("/other")),
            Some(format!("@{root}/shot.png "))
        );
        for text in ["", "hello", "shot.png", "it's", "/no/such/file"] {
            check(text.into(), None);
        }
        check(format!("see {root}/shot.png"), None);
    }
}
