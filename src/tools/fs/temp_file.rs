//! The temporary file that replaces a file in one step.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::UnlinkatFlags;

use crate::error::ToolError;
use crate::file_errors;
use base::open;
use types::ids::CallId;

/// Prefix of the names of temporary files; the call id follows.
const TEMP_PREFIX: &str = ".agentd-tmp-";

/// Removes the temporary file on every exit. After a rename, no temporary file exists.
pub(super) struct TempGuard<'a> {
    pub(super) folder: BorrowedFd<'a>,
    pub(super) name: &'a str,
}

impl Drop for TempGuard<'_> {
    fn drop(&mut self) {
        let _ = nix::unistd::unlinkat(self.folder, self.name, UnlinkatFlags::NoRemoveDir);
    }
}

/// The name of a call's temporary file. It contains the call id, so that exactly this file can be removed after
/// a crash.
pub(super) fn temp_name(call_id: CallId) -> String {
    format!("{TEMP_PREFIX}{call_id}")
}

pub(super) fn create_temp(
    folder: BorrowedFd<'_>,
    path: &Path,
    call_id: CallId,
    mode: u32,
) -> Result<(String, File), ToolError> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
    let name = temp_name(call_id);
    match open::open_below(folder, Path::new(&name), flags, Mode::from_bits_truncate(mode)) {
        Ok(fd) => Ok((name, File::from(fd))),
        Err(e) => Err(file_errors::open_error(path, e)),
    }
}
