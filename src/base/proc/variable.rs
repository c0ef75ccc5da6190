//! Variables of this process's environment.

use nix::unistd::{User, getuid};

/// A variable that is set, not empty, and text. Without `HOME`, as under `env -i` or in some containers, it is the
/// home folder of the user database.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    if name != "HOME" {
        return value;
    }
    value.or_else(|| {
        let home = User::from_uid(getuid()).ok().flatten()?.dir;
        home.into_os_string().into_string().ok().filter(|home| home.starts_with('/'))
    })
}
