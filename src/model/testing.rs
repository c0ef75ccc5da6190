//! Test support shared by the adapters and the fuzz targets.

#[cfg(test)]
use proptest::prelude::*;

use super::api::AnswerReader;
use crate::settings::Api;
use crate::stream::assembly::{CallIds, read_input};
#[cfg(test)]
use types::model::FaultKind;
use types::model::{Delta, ModelFault, ModelReply, ReplyBlock};

/// Reads a stream that arrives in these pieces.
pub(super) fn read_pieces(api: Api, pieces: &[&[u8]]) -> (Vec<Delta>, Result<ModelReply, ModelFault>) {
    let mut reader = AnswerReader::new(api, CallIds::for_recording(0));
    let mut out = Vec::new();
    for piece in pieces {
        if let Err(fault) = reader.feed(piece, &mut out) {
            return (out, Err(fault));
        }
    }
    let outcome = reader.end(&mut out);
    (out, outcome)
}

/// Reads a stream that arrives at once.
#[cfg(test)]
pub(super) fn read(api: Api, stream: &str) -> (Vec<Delta>, Result<ModelReply, ModelFault>) {
    read_pieces(api, &[stream.as_bytes()])
}

/// Reads an answer in one piece.
#[cfg(test)]
pub(super) fn read_whole(api: Api, body: &str) -> (Vec<Delta>, Result<ModelReply, ModelFault>) {
    let mut out = Vec::new();
    let outcome = AnswerReader::new(api, CallIds::for_recording(0)).whole(body.as_bytes(), &mut out);
    (out, outcome)
}

/// Checks the guarantees on deltas: blocks in order, nothing empty, and together they equal the reply.
pub(super) fn assert_deltas_tell_the_reply(deltas: &[Delta], reply: &ModelReply) {
    let mut reported_blocks: Vec<ReplyBlock> = Vec::new();
    let mut open: Option<u32> = None;
    let mut texts: Vec<String> = Vec::new();
    for delta in deltas {
        match delta {
            Delta::BlockStarted { index, .. } => {
                assert_eq!(open, None, "two blocks are open: {deltas:?}");
                assert_eq!(*index as usize, texts.len(), "a gap between blocks: {deltas:?}");
                open = Some(*index);
                texts.push(String::new());
            }
            Delta::Text { index, text: piece }
            | Delta::Thinking { index, text: piece }
            | Delta::ToolInput { index, json: piece } => {
                assert_eq!(open, Some(*index), "a piece outside its block: {deltas:?}");
                assert!(!piece.is_empty(), "an empty piece: {deltas:?}");
                texts[*index as usize].push_str(piece);
            }
            Delta::ThinkingSealed { .. } | Delta::CallCompleted { .. } => {}
            Delta::BlockCompleted { index } => {
                assert_eq!(open.take(), Some(*index), "closed twice: {deltas:?}");
                reported_blocks.push(reply.content[*index as usize].clone());
            }
            Delta::Silence { .. } => panic!("an adapter's reader knows no time"),
        }
    }
    assert_eq!(open, None, "a block stays open: {deltas:?}");
    assert_eq!(reported_blocks, reply.content);
    for (text, block) in texts.iter().zip(&reply.content) {
        match block {
            ReplyBlock::Text(whole) | ReplyBlock::Thinking { text: whole, .. } => assert_eq!(text, whole),
            ReplyBlock::RedactedThinking(_) => assert_eq!(text, ""),
            ReplyBlock::ToolCall { input: Ok(input), .. } => {
                assert_eq!(read_input(text.clone()).as_ref(), Ok(input));
            }
            ReplyBlock::ToolCall { input: Err((raw, _)), .. } => assert_eq!(text, raw),
        }
    }
}

/// Checks that an answer truncated after any byte is reported as interrupted or is complete: no partial answer,
/// and so no partial call.
#[cfg(test)]
pub(super) fn assert_every_cut_is_told(api: Api, stream: &str) {
    let (_, whole) = read(api, stream);
    let whole = whole.expect("an answer");
    let bytes = stream.as_bytes();
    let mut cuts = 0;
    for end in 0..bytes.len() {
        match read_pieces(api, &[&bytes[..end]]).1 {
            Ok(reply) => {
                assert_eq!(
                    reply.content, whole.content,
                    "{api:?}: a part was taken as the whole, cut at {end}"
                );
                assert_eq!(reply.stop_reason, whole.stop_reason, "{api:?}: cut at {end}");
            }
            Err(fault) => {
                assert_eq!(fault.kind, FaultKind::Interrupted, "{api:?}: cut at {end}: {fault:?}");
                cuts += 1;
            }
        }
    }
    assert!(cuts * 10 > bytes.len() * 6, "{api:?}: only {cuts} of {} cuts were told", bytes.len());
}

/// Checks that a stream split at these positions gives the same answer. One delta may become several, so their
/// joined content is compared.
#[cfg(test)]
pub(super) fn assert_any_split_reads_alike(api: Api, stream: &str, cuts: &[prop::sample::Index]) {
    let bytes = stream.as_bytes();
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
    let (whole_deltas, whole) = read(api, stream);
    let (deltas, reply) = read_pieces(api, &pieces);
    assert_eq!(deltas, whole_deltas);
    assert_eq!(reply, whole);
    if let Ok(reply) = reply {
        assert_deltas_tell_the_reply(&deltas, &reply);
    }
}
