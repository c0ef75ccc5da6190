//! The decisions for each kind of input. [`plan`] holds `Engine::decide` and the builder of a plan; each other
//! file adds the decisions about one kind of input to that builder.

pub(super) mod abort;
pub(super) mod approval;
pub(super) mod background;
pub(super) mod backoff;
pub(super) mod fallback;
pub(super) mod model_reply;
pub(super) mod output_limit;
pub(super) mod plan;
pub(super) mod question;
pub(super) mod recover;
pub(super) mod retry;
pub(super) mod submit;
pub(super) mod title;
pub(super) mod tool_calls;
pub(super) mod unsandboxed_retry;
pub(super) mod update;
