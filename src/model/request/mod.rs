//! Parts of a model request that all adapters share: media, sampling, token counts, refused tools, and the cache of
//! serialised parts.

pub(super) mod count;
pub(super) mod media;
pub(super) mod refused_tools;
pub(super) mod request_cache;
pub(super) mod sampling;
