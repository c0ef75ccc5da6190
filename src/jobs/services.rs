//! What the work of attempts needs.

use session::Registry;
use store::Store;
use types::event::Origin;

/// The client name under which the daemon acts for jobs.
pub(crate) const DAEMON_CLIENT: &str = "agentd jobs";

/// What the work of attempts needs.
#[derive(Clone)]
pub(crate) struct Services {
    pub registry: Registry,
    pub store: Store,
}

pub(crate) fn daemon_origin() -> Origin {
    Origin { client: DAEMON_CLIENT.into(), ..Origin::default() }
}
