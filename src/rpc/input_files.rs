//! Converts the blocks of a submit: reads files, decodes content and resizes images. It checks all limits
//! before the session receives the input.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::context::RpcContext;
use crate::convert;
use api::params::{DocumentContent, FileContent, ResourceLink, SubmitBlock, SubmitInput};
use api::{Code, Fault};
use session::{IngestedFile, InputFile, InputSource, SubmittedInput};
use types::blob::{Blob, BlobRef, Document};
use types::ids::SessionId;
use types::message::InputBlock;

/// Maximum number of images and files in one submit.
const MAX_FILES: usize = 20;
/// Maximum total bytes of the stored content of these files.
const MAX_TOTAL_BYTES: u64 = 20 << 20;
/// Maximum bytes of the text of a document.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Maximum bytes of the name of a document, which may be a path.
const MAX_PATH_BYTES: usize = 4_096;
/// Maximum bytes of the URI of a resource.
const MAX_URI_BYTES: usize = 2_000;
/// Maximum bytes of the name of a resource.
const MAX_NAME_BYTES: usize = 200;

pub(super) async fn ingest(
    ctx: &RpcContext,
    session_id: SessionId,
    input: SubmitInput,
) -> Result<SubmittedInput, Fault> {
    let submitted_blocks = match input {
        SubmitInput::Text(text) => {
            return Ok(SubmittedInput { blocks: vec![InputBlock::Text { text }], blobs: Vec::new() });
        }
        SubmitInput::Blocks(blocks) => blocks,
    };
    let count = submitted_blocks.iter().filter(|block| !matches!(block, SubmitBlock::Text { .. })).count();
    if count > MAX_FILES {
        let why = format!("input: {count} images and files; at most {MAX_FILES} are taken at once");
        return Err(Fault::new(Code::InvalidParams, why).with("path", "input").with("most", MAX_FILES));
    }
    let tools = ctx.registry.shared().components().tools.clone();
    let (mut blocks, mut blobs, mut bytes) = (Vec::with_capacity(submitted_blocks.len()), Vec::new(), 0);
    for (index, block) in submitted_blocks.into_iter().enumerate() {
        let (field, files, is_document) = match block {
            SubmitBlock::Text { text } => {
                blocks.push(InputBlock::Text { text });
                continue;
            }
            SubmitBlock::Image(content) => input_file(ctx, session_id, index, content).await?.into_image(),
            SubmitBlock::File(content) => input_file(ctx, session_id, index, content).await?.into_file(),
            SubmitBlock::Document(DocumentContent {
                text: Some(text),
                path,
                data: None,
                name,
                unsaved,
                ..
            }) => {
                let field = format!("input[{index}].text");
                let IngestedFile { block, blob } = text_document(&field, text, name.or(path), unsaved)?;
                bytes += blob.len();
                check_total(&field, bytes)?;
                blocks.push(block);
                blobs.push(blob);
                continue;
            }
            SubmitBlock::Document(content) => {
                let content = located_document(index, content)?;
                input_file(ctx, session_id, index, content).await?.into_document()
            }
            SubmitBlock::ResourceLink(ResourceLink { uri, name, server: Some(server) }) => {
                read_server_resource(ctx, session_id, index, (&server, &uri, name)).await?
            }
            SubmitBlock::ResourceLink(link) => match resource(index, link)? {
                Resource::File(content) => input_file(ctx, session_id, index, content).await?.into_file(),
                Resource::Reference(text) => {
                    blocks.push(InputBlock::Text { text });
                    continue;
                }
            },
        };
        for file in files {
            // Ingest one file after the other, so that memory holds only one file and the stored
            // content of the earlier ones.
            let IngestedFile { block, blob } = tools.ingest_file(file).await.map_err(|refusal| {
                Fault::new(Code::InvalidParams, format!("{field}: {}", refusal.text))
                    .with("path", field.as_str())
                    .with("code", refusal.code)
            })?;
            if is_document && matches!(block, InputBlock::Image(_)) {
                let why = format!("{field}: it is an image; send it as an image block");
                return Err(Fault::new(Code::InvalidParams, why).with("path", field));
            }
            bytes += blob.len();
            check_total(&field, bytes)?;
            blocks.push(block);
            blobs.push(blob);
        }
    }
    Ok(SubmittedInput { blocks, blobs })
}

fn check_total(field: &str, bytes: u64) -> Result<(), Fault> {
    if bytes <= MAX_TOTAL_BYTES {
        return Ok(());
    }
    let most = MAX_TOTAL_BYTES >> 20;
    let why = format!("{field}: with this one there are more than {most} MiB of images and files");
    Err(Fault::new(Code::InvalidParams, why).with("path", field).with("most", MAX_TOTAL_BYTES))
}

/// A document whose text the client sends. No file is read.
fn text_document(
    field: &str,
    text: String,
    name: Option<String>,
    unsaved: bool,
) -> Result<IngestedFile, Fault> {
    let refused = |why: String| Fault::new(Code::InvalidParams, why).with("path", field);
    if text.len() > MAX_TEXT_BYTES {
        let most = MAX_TEXT_BYTES >> 10;
        return Err(refused(format!("{field}: it is longer than {most} KiB; send the part that matters")));
    }
    if name.as_ref().is_some_and(|name| name.len() > MAX_PATH_BYTES || name.contains(char::is_control)) {
        return Err(refused(format!("{field}: its name is not one line of at most {MAX_PATH_BYTES} bytes")));
    }
    let blob = Blob::text(&text);
    let document = Document { blob: BlobRef::from(&blob), name, text, unsaved };
    Ok(IngestedFile { block: InputBlock::Document(document), blob })
}

/// The location of a document that is a file or bytes.
fn located_document(index: usize, content: DocumentContent) -> Result<FileContent, Fault> {
    let DocumentContent { path, data, text, unsaved, media_type, name } = content;
    let bad = |field: &str, why: &str| {
        let path = format!("input[{index}].{field}");
        Err(Fault::new(Code::InvalidParams, format!("{path}: {why}")).with("path", path))
    };
    if text.is_some() {
        return bad("text", "give text or data, not both");
    }
    if unsaved {
        return bad("unsaved", "only a document with text can be unsaved");
    }
    Ok(FileContent { path, data, media_type, name })
}

/// The name of a parameter, the files to ingest, and whether only documents are accepted.
type BlockFiles = (String, Vec<InputFile>, bool);

/// The file of one block, with the name of its parameter.
struct NamedFile(String, InputFile);

impl NamedFile {
    fn into_image(mut self) -> BlockFiles {
        self.1.picture = true;
        self.into_file()
    }

    fn into_file(self) -> BlockFiles {
        (self.0, vec![self.1], false)
    }

    fn into_document(self) -> BlockFiles {
        (self.0, vec![self.1], true)
    }
}

/// The content of a resource of an MCP server.
async fn read_server_resource(
    ctx: &RpcContext,
    session_id: SessionId,
    index: usize,
    (server, uri, name): (&str, &str, Option<String>),
) -> Result<BlockFiles, Fault> {
    let field = format!("input[{index}].uri");
    let bad =
        |why: String| Fault::new(Code::InvalidParams, format!("{field}: {why}")).with("path", field.as_str());
    if uri.is_empty() || uri.len() > MAX_URI_BYTES || uri.contains(char::is_control) {
        return Err(bad(format!("expected the URI of a resource, at most {MAX_URI_BYTES} bytes")));
    }
    let mut files = ctx.registry.read_mcp_resource(session_id, server, uri).await.map_err(bad)?;
    if let (Some(name), [file]) = (name, files.as_mut_slice()) {
        if name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
            return Err(bad(format!("expected a name of one line of at most {MAX_NAME_BYTES} bytes")));
        }
        file.name = Some(name);
    }
    Ok((field, files, false))
}

/// The content or the text to which a resource link is converted.
#[derive(Debug, PartialEq, Eq)]
enum Resource {
    File(FileContent),
    /// A text for the model that names the resource.
    Reference(String),
}

fn resource(index: usize, link: ResourceLink) -> Result<Resource, Fault> {
    let bad = |field: &str, why: &str| {
        let path = format!("input[{index}].{field}");
        Fault::new(Code::InvalidParams, format!("{path}: {why}")).with("path", path)
    };
    let ResourceLink { uri, name, .. } = link;
    let is_plain = |text: &str| !text.chars().any(|c| c.is_control() || c.is_whitespace());
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    if !is_scheme || !is_plain(&uri) || uri.len() > MAX_URI_BYTES {
        return Err(bad("uri", "expected a URI like file:///path or https://host/path"));
    }
    if name.as_ref().is_some_and(|name| name.len() > MAX_NAME_BYTES || name.contains(char::is_control)) {
        return Err(bad("name", "expected one line of at most 200 bytes"));
    }
    if !scheme.eq_ignore_ascii_case("file") {
        let name = name.map_or(String::new(), |name| format!(" {name}"));
        return Ok(Resource::Reference(format!("[resource{name}: {uri}]")));
    }
    let rest = &uri["file:".len()..];
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    if !path.starts_with('/') {
        return Err(bad("uri", "a file URI names an absolute path of this machine: file:///path"));
    }
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let path = percent_decoded(path).ok_or_else(|| bad("uri", "the path is not UTF-8 with %XX escapes"))?;
    Ok(Resource::File(FileContent { path: Some(path), name, ..FileContent::default() }))
}

/// Replaces each `%XX` by its byte. `None` if an escape is incomplete or the result is not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The file to ingest, with the name of its parameter.
async fn input_file(
    ctx: &RpcContext,
    session_id: SessionId,
    index: usize,
    content: FileContent,
) -> Result<NamedFile, Fault> {
    let bad = |field: &str, why: &str| {
        let path = format!("input[{index}]{field}");
        Fault::new(Code::InvalidParams, format!("{path}: {why}")).with("path", path)
    };
    let FileContent { path, data, name, .. } = content;
    match (path, data) {
        (Some(path), None) => {
            if path.is_empty() || path.contains('\0') {
                return Err(bad(".path", "it is not a file name"));
            }
            let name = name.or_else(|| Some(path.clone()));
            let mut file = std::path::PathBuf::from(&path);
            if file.is_relative() {
                let view = ctx.registry.view(session_id).await.map_err(convert::fault)?;
                file = std::path::Path::new(&view.cwd).join(file);
            }
            let file = InputFile { source: InputSource::File(file), name, picture: false };
            Ok(NamedFile(format!("input[{index}].path"), file))
        }
        (None, Some(data)) => {
            let data: Vec<u8> = data.into_bytes().into_iter().filter(|b| !b.is_ascii_whitespace()).collect();
            let bytes =
                STANDARD.decode(data).map_err(|error| bad(".data", &format!("no base64: {error}")))?;
            let file = InputFile { source: InputSource::Bytes(bytes), name, picture: false };
            Ok(NamedFile(format!("input[{index}].data"), file))
        }
        (Some(_), Some(_)) => Err(bad("", "give path or data, not both")),
        (None, None) => Err(bad("", "it needs path (a file) or data (base64)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource_of(uri: &str) -> Result<Resource, Fault> {
        resource(0, ResourceLink { uri: uri.into(), name: Some("n".into()), server: None })
    }

    #[test]
    fn file_uri_becomes_path_and_other_uri_a_reference() {
        let file = |path: &str| {
            Resource::File(FileContent {
                path: Some(path.into()),
                name: Some("n".into()),
                ..FileContent::default()
            })
        };
        assert_eq!(resource_of("file:///a%20b/c.txt#L1").ok(), Some(file("/a b/c.txt")));
        assert_eq!(resource_of("file://localhost/a").ok(), Some(file("/a")));
        assert_eq!(
            resource_of("https://h/x").ok(),
            Some(Resource::Reference("[resource n: https://h/x]".into()))
        );
        for uri in
            ["", "x", "file://host/a", "file:a", "file:///%zz", "file:///%f", "https://a b", "file:///%ff"]
        {
            assert!(resource_of(uri).is_err(), "{uri}");
        }
    }
}
