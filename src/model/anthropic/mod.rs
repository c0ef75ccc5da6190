//! Anthropic Messages: serialising requests and decoding events.

mod request;
mod stream;
#[cfg(test)]
mod tests;
mod thinking;

#[cfg(test)]
pub(super) use thinking::asks_to_think;

use crate::api_row::{ApiRow, KeyHeader, VersionHeader};
use crate::settings::ProviderKind;
use types::sampling::{Sampling, Temperature};
use types::vendor::ANTHROPIC;

/// The highest temperature, in thousandths.
const MAX_TEMPERATURE: u16 = 1_000;
/// The smallest `top_p` that is accepted with thinking, in thousandths.
const MIN_TOP_P: u16 = 950;

pub(super) static ROW: ApiRow = ApiRow {
    kind: ProviderKind::Anthropic,
    name: "anthropic",
    vendor: ANTHROPIC,
    is_vendors_default: true,
    path: ("/v1", "/messages"),
    key: KeyHeader::Named("x-api-key"),
    // platform.claude.com, "Versions", 2026-11.
    version: Some(VersionHeader {
        name: "anthropic-version",
        default: "2023-06-01",
        without_sampling: "2026-10-21",
    }),
    has_max_tokens_fields: false,
    stores_conversations: false,
    sees_pictures: true,
    body: |request, settings, _, written| request::body(request, settings, written),
    output_limit: |request, settings| Some(thinking::output_limit(request, settings)),
    asks_to_think: thinking::asks_to_think,
    beta: |request, settings| thinking::sends_interleaved(request, settings).then_some(thinking::INTERLEAVED),
    sampling: limit_sampling,
    decoder: |ids| Box::new(stream::Decoder::new(ids)),
};

/// With thinking, the API accepts no temperature, and only a high `top_p` (docs.anthropic.com, "Building with extended
/// thinking", 2026-03). Newer models accept only one of the two (docs.anthropic.com, "Migrating to Claude 4", 2026-03).
fn limit_sampling(wanted: Sampling, thinks: bool) -> Sampling {
    if thinks {
        let top_p = wanted.top_p.filter(|share| share.get() >= MIN_TOP_P);
        return Sampling { temperature: None, top_p };
    }
    let temperature = wanted.temperature.and_then(|it| Temperature::new(it.get().min(MAX_TEMPERATURE)));
    Sampling { temperature, top_p: wanted.top_p.filter(|_| temperature.is_none()) }
}
