//! Messages about jobs to webhooks and commands of the user: which are owed, when they are tried, and how they are sent.
//! `message` and `policy` are pure; `deliver` is the task that owns all tries.

mod command;
mod deliver;
mod http;
mod message;
mod policy;
mod signature;
mod target;

pub use command::DESKTOP_VARIABLES;
pub(crate) use deliver::{DeliveryHost, run};
pub use http::{PostError, Poster, Webhook};
pub(crate) use message::owed;
pub(crate) use target::is_name;
pub use target::{IncludedPart, NotifyTarget, SettingsProblem};
