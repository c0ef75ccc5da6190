//! Parts of a model request that all adapters share: media, sampling, token counts, and the cache of serialised
//! parts.

pub(super) mod count;
pub(super) mod media;
pub(super) mod request_cache;
pub(super) mod sampling;
