//! Parts of a streamed answer that all adapters share: server-sent events, assembly of blocks, time
//! limits, faults.

pub(super) mod assembly;
pub(super) mod decode;
pub(super) mod fault;
pub(super) mod overflow;
pub(super) mod split_chars;
pub(super) mod sse;
pub(super) mod text;
pub(super) mod timeouts;
