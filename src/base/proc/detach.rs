//! Starts a program that outlives its starter and keeps none of its descriptors.

use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::libc;

/// Makes a command start in a process session of its own, so that no terminal signal reaches it, and with the
/// descriptors 0 to 2 alone. Otherwise it would keep a lock of `flock -n 9`, or the writing end of `3>&1`, for as long
/// as it runs. It still inherits the environment and the working folder, unless the command sets them.
pub fn detach(command: &mut Command) {
    let inherited = open_descriptors();
    #[expect(unsafe_code, reason = "only pre_exec reaches the child before it becomes the program")]
    // SAFETY: the closure makes async-signal-safe calls only (setsid, close_range, fcntl). It does not allocate,
    // lock, or change data that other code uses.
    unsafe {
        command.pre_exec(move || {
            nix::unistd::setsid()?;
            close_on_exec(&inherited);
            Ok(())
        });
    }
}

/// The descriptors above 2 that are open now, for kernels without `close_range`.
fn open_descriptors() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|number: &RawFd| *number > 2).collect()
}

/// Marks descriptors as closed on exec. They stay open until then, because the standard library reports a failed
/// exec through one of them.
fn close_on_exec(inherited: &[RawFd]) {
    #[expect(unsafe_code, reason = "called after a fork; no library wraps close_range")]
    // SAFETY: all arguments are numbers.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 {
            return;
        }
        for number in inherited {
            // A number that is closed by now is no error.
            let _ = libc::fcntl(*number, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::process::Stdio;

    /// A descriptor that programs inherit, as those that a shell opens with `9>lock`.
    fn inheritable(file: File) -> OwnedFd {
        let fd = OwnedFd::from(file);
        nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).expect("set");
        fd
    }

    #[test]
    fn detached_program_has_own_session_and_no_inherited_descriptor() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("lock");
        let _lock = inheritable(File::create(&path).expect("made"));
        let script = "ls -l /proc/self/fd; echo; cut -d' ' -f6 /proc/$$/stat; echo $$";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        let output = |command: &mut Command| {
            String::from_utf8(command.output().expect("started").stdout).expect("text")
        };
        let name = path.display().to_string();
        assert!(output(&mut command).contains(&name), "the shell inherits it otherwise");
        detach(&mut command);
        let text = output(&mut command);
        assert!(!text.contains(&name), "{text}");
        let ids: Vec<&str> = text.lines().rev().take(2).collect();
        assert_eq!(ids[0], ids[1], "the leader of its own session: {text}");
    }

    #[test]
    fn detached_program_that_does_not_exist_is_an_error() {
        let mut command = Command::new("/nonexistent/program");
        detach(&mut command);
        assert_eq!(command.spawn().expect_err("no program").kind(), io::ErrorKind::NotFound);
    }
}
