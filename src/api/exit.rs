//! Exit codes of `agentd`, by sysexits(3) where it has one. Scripts, service managers and `agentctl`
//! rely on them; `agentctl` has its own (`clients.md`).

/// Something failed inside.
pub const INTERNAL: u8 = 4;
/// Another daemon is there already, or another program has the socket.
pub const TAKEN: u8 = 75;
/// The configuration, a folder or a place is wrong: starting again does not help.
pub const CONFIG: u8 = 78;
