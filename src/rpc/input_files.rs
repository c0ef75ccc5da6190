//! Converts the blocks of a submit: reads files, decodes content and resizes images. It checks all limits
//! before the session receives the input.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::api::params::{Given, SubmitBlock, SubmitInput};
use crate::api::{Code, Fault};
use crate::rpc::context::RpcContext;
use crate::rpc::convert;
use crate::session::{GiftSource, IngestedFile, InputFile, SubmittedInput};
use crate::types::ids::SessionId;
use crate::types::message::InputBlock;

/// Maximum number of images and files in one submit.
const MAX_FILES: usize = 20;
/// Maximum total bytes of their stored content.
const MOST_BYTES: u64 = 20 << 20;

pub(super) async fn ingest(
    ctx: &RpcContext,
    session_id: SessionId,
    input: SubmitInput,
) -> Result<SubmittedInput, Fault> {
    let given = match input {
        SubmitInput::Text(text) => {
            return Ok(SubmittedInput { blocks: vec![InputBlock::Text { text }], blobs: Vec::new() });
        }
        SubmitInput::Blocks(blocks) => blocks,
    };
    let count = given.iter().filter(|block| !matches!(block, SubmitBlock::Text { .. })).count();
    if count > MAX_FILES {
        let why = format!("input: {count} images and files; at most {MAX_FILES} are taken at once");
        return Err(Fault::new(Code::InvalidParams, why).with("path", "input").with("most", MAX_FILES));
    }
    let tools = ctx.registry.shared().components().tools.clone();
    let (mut blocks, mut blobs, mut bytes) = (Vec::with_capacity(given.len()), Vec::new(), 0);
    for (index, block) in given.into_iter().enumerate() {
        let (given, picture) = match block {
            SubmitBlock::Text { text } => {
                blocks.push(InputBlock::Text { text });
                continue;
            }
            SubmitBlock::Image(given) => (given, true),
            SubmitBlock::File(given) => (given, false),
        };
        let (field, gift) = input_file(ctx, session_id, index, given, picture).await?;
        // One after the other, so that memory holds only one file plus the stored content of the others.
        let IngestedFile { block, blob } = tools.take_in(gift).await.map_err(|refusal| {
            Fault::new(Code::InvalidParams, format!("{field}: {}", refusal.text))
                .with("path", field.as_str())
                .with("code", refusal.code)
        })?;
        bytes += blob.len();
        if bytes > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            let why = format!("{field}: with this one there are more than {most} MiB of images and files");
            return Err(Fault::new(Code::InvalidParams, why).with("path", field).with("most", MOST_BYTES));
        }
        blocks.push(block);
        blobs.push(blob);
    }
    Ok(SubmittedInput { blocks, blobs })
}

/// The file to ingest, and the name of its parameter.
async fn input_file(
    ctx: &RpcContext,
    session_id: SessionId,
    index: usize,
    given: Given,
    picture: bool,
) -> Result<(String, InputFile), Fault> {
    let bad = |field: &str, why: &str| {
        let path = format!("input[{index}]{field}");
        Fault::new(Code::InvalidParams, format!("{path}: {why}")).with("path", path)
    };
    let Given { path, data, name, .. } = given;
    match (path, data) {
        (Some(path), None) => {
            if path.is_empty() || path.contains('\0') {
                return Err(bad(".path", "it is no name of a file"));
            }
            let name = name.or_else(|| Some(path.clone()));
            let mut file = std::path::PathBuf::from(&path);
            if file.is_relative() {
                let view = ctx.registry.view(session_id).await.map_err(convert::fault)?;
                file = std::path::Path::new(&view.cwd).join(file);
            }
            Ok((format!("input[{index}].path"), InputFile { source: GiftSource::File(file), name, picture }))
        }
        (None, Some(data)) => {
            let data: Vec<u8> = data.into_bytes().into_iter().filter(|b| !b.is_ascii_whitespace()).collect();
            let bytes =
                STANDARD.decode(data).map_err(|error| bad(".data", &format!("no base64: {error}")))?;
            Ok((
                format!("input[{index}].data"),
                InputFile { source: GiftSource::Bytes(bytes), name, picture },
            ))
        }
        (Some(_), Some(_)) => Err(bad("", "give path or data, not both")),
        (None, None) => Err(bad("", "it needs path (a file) or data (base64)")),
    }
}
