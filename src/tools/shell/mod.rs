//! Commands as processes: their environment, their output, and the end of their whole tree.

mod bash;
mod capture;
mod environment;
mod process;
mod tree;

pub(super) use bash::{DESCRIPTION, Input, prepare, run};
