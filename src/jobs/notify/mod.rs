//! Notifications about jobs: which are owed, when they are tried, and how they are sent.

mod http;
mod target;

pub use http::{PostError, Poster, Webhook};
pub(crate) use target::is_name;
pub use target::{IncludedPart, NotifyTarget, SettingsProblem};
