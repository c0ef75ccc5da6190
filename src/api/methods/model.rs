//! The methods about models.

use super::{READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Models to choose from, with what is known of them: capabilities, prices and where those come from.
    /// What is not known is null.
    List = "model.list", p::ModelListParams => p::ModelListReply, READS;
    /// Try the address and the key of each provider, in parallel and for at most 10 seconds. It spends no
    /// tokens.
    Check = "model.check", p::ModelCheckParams => p::ModelCheckReply,
        READS.waits().errors(&[Code::InvalidParams]);
    /// The cost ledger: tokens, calls and money by session and model, with the sum. Deleted sessions stay in
    /// it.
    Usage = "model.usage", p::ModelUsageParams => p::ModelUsageReply, READS;
}
