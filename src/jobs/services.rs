//! What the work of attempts needs.

use session::Registry;
use store::Store;

/// What the work of attempts needs.
#[derive(Clone)]
pub(crate) struct Services {
    pub registry: Registry,
    pub store: Store,
}
