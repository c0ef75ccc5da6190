//! Estimates of the tokens of a model call whose provider reported none, or not all.

use crate::decide::plan::PlanBuilder;
use types::blob::AttachmentKind;
use types::message::Block;
use types::model::{ModelReply, ModelRequest};
use types::usage::{ModelSnapshot, Usage};

/// The usage of an answer and its cost.
pub(super) struct ReplyCost {
    pub usage: Usage,
    /// In millionths of a dollar; `None` if unknown.
    pub cost_usd_micros: Option<u64>,
    pub is_estimated: bool,
}

impl PlanBuilder<'_> {
    /// Some servers report no usage, which differs from zero usage. A cached answer has no usage. `received` is the
    /// number of bytes of the answer, and `cost_usd_micros` the cost of the reported usage.
    pub(super) fn reply_cost(
        &self,
        reply: &ModelReply,
        received: usize,
        cost_usd_micros: Option<u64>,
        model_snapshot: &ModelSnapshot,
    ) -> ReplyCost {
        let is_estimated = reply.usage.all_tokens() == 0 && !reply.cache_hit;
        let request = if is_estimated { self.build_request().ok() } else { None };
        match request {
            Some(request) => {
                let usage = estimate(&request, received, model_snapshot);
                ReplyCost { usage, cost_usd_micros: model_snapshot.cost_usd_micros(&usage), is_estimated }
            }
            None => ReplyCost { usage: reply.usage, cost_usd_micros, is_estimated },
        }
    }
}

/// An upper estimate of the tokens that the attempt cost. It assumes one token for two bytes, while providers count
/// one for three to four bytes of most text. The answer has at most the requested limit, or the model's limit.
#[must_use]
pub fn estimate(request: &ModelRequest, received: usize, model_snapshot: &ModelSnapshot) -> Usage {
    let mut sent = ByteCounter(request.system.len());
    // This cannot fail: it writes plain data with string keys to a counter.
    let _ = serde_json::to_writer(&mut sent, &request.messages);
    let _ = serde_json::to_writer(&mut sent, &request.tools);
    let shown =
        request.messages.iter().flat_map(|message| message.content.iter().flat_map(Block::media_refs));
    let shown: u64 = shown.map(|(kind, blob)| media_tokens(kind, blob.bytes)).sum();
    let tokens = |bytes: usize| bytes.div_ceil(2) as u64;
    let most = request.max_output_tokens.or(model_snapshot.max_output_tokens).map_or(u64::MAX, u64::from);
    let output_tokens = tokens(received.max(1)).min(most);
    Usage { input_tokens: tokens(sent.0) + shown, output_tokens, ..Usage::default() }
}

/// An upper estimate of the tokens of a picture or a document. Vendors count at most about 1,600 tokens for a
/// picture of the size that is sent. They count about 3,000 per page of a document, for at most a hundred pages.
fn media_tokens(kind: AttachmentKind, bytes: u64) -> u64 {
    match kind {
        AttachmentKind::Image => 3_000,
        AttachmentKind::Document => (bytes / 2).min(300_000),
    }
}

/// The usage to book for an attempt. A provider reports the input at the beginning and the output at
/// the end. So the reported input count is exact, and the output count so far is a lower bound.
#[must_use]
pub fn settle(estimate: Usage, reported: Option<&Usage>) -> Usage {
    let Some(reported) = reported else { return estimate };
    let has_input = Usage { output_tokens: 0, ..*reported }.all_tokens() > 0;
    let input = if has_input { *reported } else { estimate };
    Usage {
        output_tokens: reported.output_tokens.max(estimate.output_tokens),
        reasoning_tokens: reported.reasoning_tokens,
        web_search_requests: reported.web_search_requests,
        service_tier: reported.service_tier,
        ..input
    }
}

/// Counts the bytes that are written to it.
struct ByteCounter(usize);

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::decide::usage_estimate::*;

    #[test]
    fn estimate_of_output_never_exceeds_the_output_limit() {
        let request = |max_output_tokens| ModelRequest {
            max_output_tokens,
            ..ModelRequest::new("p/m".parse().expect("a model"))
        };
        let model_snapshot =
            |max_output_tokens| ModelSnapshot { max_output_tokens, ..ModelSnapshot::default() };
        for (requested_limit, most, received, expected) in [
            (None, None, 1_000, 500),
            (Some(700), None, 1_000, 500),
            (Some(100), None, 1_000, 100),
            (Some(100), Some(64), 1_000, 100),
            (None, Some(64), 1_000, 64),
            (Some(100), None, 0, 1),
        ] {
            let usage = estimate(&request(requested_limit), received, &model_snapshot(most));
            assert_eq!(usage.output_tokens, expected, "{requested_limit:?} {most:?} {received}");
        }
        // Usage that the provider reported is exact.
        let reported = Usage { output_tokens: 120, ..Usage::default() };
        let usage = settle(estimate(&request(Some(100)), 1_000, &model_snapshot(None)), Some(&reported));
        assert_eq!(usage.output_tokens, 120);
    }
}
