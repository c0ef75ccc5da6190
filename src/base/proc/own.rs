//! What this process is to others.

use std::io;
use std::path::PathBuf;

/// The program of this process, also if its file was replaced or removed since.
#[must_use]
pub fn own_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Sets the name of this process, as [`super::name`] reads it. No process below it can change it. prctl(2) would name the
/// thread only.
///
/// # Errors
/// The kernel refuses it.
pub fn set_own_name(name: &str) -> io::Result<()> {
    std::fs::write("/proc/self/comm", name)
}

/// Prevents that other processes of the user read the memory and the environment of this one, or trace it.
///
/// # Errors
/// The kernel refuses it.
pub fn refuse_inspection() -> io::Result<()> {
    Ok(nix::sys::prctl::set_dumpable(false)?)
}
