//! The answers to permission requests and questions. A request has choices, and a choice becomes the parameters of
//! `session.approve` or `session.answer`. Front ends only show them: the screen of `attach`, the lines of `--plain`, the
//! editor protocol. Pure.

pub(super) mod permission;
pub(super) mod policy;
pub(super) mod question;
