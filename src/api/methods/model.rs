//! The methods about models.

use super::{READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Returns the models with their capabilities and prices, and the origin of these. Unknown values are null.
    List = "model.list", p::ModelListParams => p::ModelListReply, READS;
    /// Tries the address and the key of each provider, in parallel and for at most 10 seconds, and returns the results.
    /// It spends no tokens.
    Check = "model.check", p::ModelCheckParams => p::ModelCheckReply,
        READS.waits().errors(&[Code::InvalidParams]);
    /// Returns tokens, calls and money from the cost ledger, by session and model, with their sum. Deleted sessions
    /// stay in the ledger.
    Usage = "model.usage", p::ModelUsageParams => p::ModelUsageReply, READS;
}
