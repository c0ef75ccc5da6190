//! The methods about the protocol itself.

use super::{READS, methods};
use crate::params as p;

methods! {
    /// Returns the OpenRPC document of this daemon.
    Discover = "rpc.discover", p::NoParams => p::OpenRpcDocument, READS.for_tools();
}
