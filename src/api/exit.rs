//! Exit codes of `agentd`, from sysexits(3) where it has one. Scripts and service managers depend on them, and
//! so does `agentctl`, which has its own codes (`clients.md`).

/// An internal failure.
pub const INTERNAL: u8 = 4;
/// Another daemon runs already, or another program uses the socket.
pub const TAKEN: u8 = 75;
/// The configuration, a folder or a path is wrong: a restart does not help.
pub const CONFIG: u8 = 78;
