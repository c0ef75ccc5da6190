//! The process that converts one document: reads it from standard input and writes the result to standard
//! output.

use std::io::{self, Read as _, Write};

use htmd::HtmlToMarkdown;
use nix::sys::resource::{Resource, setrlimit};

use super::{image, pdf};

/// The argument of `agentd` that starts this process. Its value is the kind: `html`, `image`, or
/// `pdf:FIRST:LAST` with pages from 1.
pub const DOCUMENT_ARGUMENT: &str = "--convert-document";

/// Memory limit, in bytes of address space.
const MAX_MEMORY_BYTES: u64 = 1 << 30;
/// Limit of processor time, in seconds.
const MAX_CPU_SECONDS: u64 = 10;
/// Largest document, in bytes.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 48 << 20;
/// Stack size in bytes. The parsers recurse; this is enough for every reasonable document.
const STACK_BYTES: usize = 64 << 20;

/// Converts the document on standard input. `what` is the value of [`DOCUMENT_ARGUMENT`].
///
/// # Errors
/// The reason why it could not be converted, for users. The process may also be killed by its limits.
pub fn convert_document(what: &str) -> Result<(), String> {
    set_limits().map_err(|error| format!("the limits could not be set: {error}"))?;
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("the document could not be read: {error}"))?;
    if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
        return Err(format!("the document is larger than {} MiB", MAX_DOCUMENT_BYTES >> 20));
    }
    let what = what.to_owned();
    let work = move || {
        let mut out = io::BufWriter::new(io::stdout().lock());
        make(&what, bytes, &mut out)?;
        out.flush().map_err(|error| error.to_string())
    };
    let worker =
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).map_err(|error| error.to_string())?;
    worker.join().unwrap_or_else(|_| Err("the document is too strange to be read".into()))
}

/// Converts the document in this process. Tests call it without a converter program.
pub(super) fn make(what: &str, bytes: Vec<u8>, out: &mut dyn io::Write) -> Result<(), String> {
    if what == "html" {
        return write_markdown(&bytes, out);
    }
    if what == "image" {
        return image::write(&bytes, out);
    }
    let pages = what.strip_prefix("pdf:").and_then(|pages| pages.split_once(':'));
    let pages = pages.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match pages {
        Some((first, last)) => pdf::write(&bytes, first..=last, out),
        None => Err(format!("there is no conversion {what:?}")),
    }
}

fn set_limits() -> io::Result<()> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    setrlimit(Resource::RLIMIT_FSIZE, 0, 0)?;
    setrlimit(Resource::RLIMIT_CPU, MAX_CPU_SECONDS, MAX_CPU_SECONDS)?;
    setrlimit(Resource::RLIMIT_AS, MAX_MEMORY_BYTES, MAX_MEMORY_BYTES)?;
    Ok(())
}

/// Elements without readable text.
const SKIPPED_ELEMENTS: &[&str] =
    &["script", "style", "noscript", "svg", "iframe", "template", "head", "object", "embed", "canvas"];

/// Writes the page (UTF-8) as Markdown, its title first.
fn write_markdown(bytes: &[u8], out: &mut dyn Write) -> Result<(), String> {
    let html = String::from_utf8_lossy(bytes);
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED_ELEMENTS.to_vec()).build();
    let text = converter.convert(&html).map_err(|error| error.to_string())?;
    out.write_all(text.as_bytes()).map_err(|error| error.to_string())
}
