//! Starts a child directly in a cgroup: clone(2) with `CLONE_INTO_CGROUP`, Linux 5.7.
//!
//! A process that is *moved* into a cgroup by a write to `cgroup.procs` waits until every processor has
//! passed a quiescent state, about 10 ms. No process of the machine can start another one meanwhile. A child
//! that starts in the cgroup does not wait. `std::process` cannot start a child in a cgroup. So this file
//! repeats the steps that `std::process` makes between fork and exec, and no others.
//!
//! Until the exec, the child uses the daemon's memory and the starting thread is suspended, as with vfork(2).
//! Copying the memory map of a daemon, and page faults in all its threads afterwards, would cost more than all
//! other steps.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, PipeReader, Read as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitStatus;
use std::ptr;

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Command;

use crate::proc::owned;

/// A child that this file started. It is killed if it is dropped before its end was awaited.
#[derive(Debug)]
pub struct CgroupChild {
    life: ChildLife,
    /// Start time of the child in clock ticks since boot, if it could be read.
    pub(super) started: Option<u64>,
    /// Readable once the child has ended, pidfd_open(2).
    end: AsyncFd<OwnedFd>,
}

impl CgroupChild {
    /// Process id of the child.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.life.pid
    }

    /// Waits until the child has ended. Cancel-safe; later calls return the same status.
    ///
    /// # Errors
    /// The kernel does not know the child.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.life.poll_exit_status()? {
                return Ok(status);
            }
            self.end.readable().await?.clear_ready();
        }
    }
}

/// A child whose exit status this file collects.
#[derive(Debug)]
struct ChildLife {
    pid: i32,
    status: Option<ExitStatus>,
}

impl ChildLife {
    fn poll_exit_status(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = owned::take_exit_status(self.pid, libc::WNOHANG)?;
        }
        Ok(self.status)
    }
}

impl Drop for ChildLife {
    fn drop(&mut self) {
        if self.status.is_none() {
            // The process id cannot be reused until the status is collected.
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
            owned::reap_later(self.pid);
        }
    }
}

/// Starts a command in the cgroup of the given folder, or in the daemon's own cgroup without one. Uses the
/// command's program (an absolute path), arguments, current folder and explicit variables; other settings are
/// ignored. The child gets no input, and `output` as its standard output and error. `prepare` runs in the
/// child. Returns `None`, without any effect, if this kernel does not support the call. Must be called inside a
/// runtime; blocks until the exec.
///
/// # Errors
/// Errors of `prepare` or of the kernel at the start.
///
/// # Safety
/// `prepare` runs in another process that shares the daemon's memory with its threads, or in a copy of it. It
/// may make async-signal-safe calls only, signal-safety(7). It must not allocate, take a lock, or change data
/// that other code uses.
#[expect(unsafe_code, reason = "the caller answers for what runs in the child")]
pub unsafe fn spawn_inside(
    command: &Command,
    output: BorrowedFd<'_>,
    cgroup: Option<BorrowedFd<'_>>,
    prepare: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<Option<CgroupChild>> {
    let command = command.as_std();
    let Ok(program) = to_c_string(command.get_program()) else { return Ok(None) };
    if !program.as_bytes().starts_with(b"/") {
        return Ok(None);
    }
    let args: Vec<CString> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(to_c_string)
        .collect::<Result<_, _>>()?;
    let mut variables = Vec::new();
    for (name, value) in command.get_envs() {
        let Some(value) = value else { continue };
        variables.push(to_c_string(&[name, OsStr::new("="), value].into_iter().collect::<OsString>())?);
    }
    let folder = command.get_current_dir().map(|folder| to_c_string(folder.as_os_str())).transpose()?;
    let [argv, envp] = [&args, &variables].map(|list| {
        list.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect::<Vec<*const libc::c_char>>()
    });

    let input = std::fs::File::open("/dev/null")?;
    let (failed, failure) = io::pipe()?;
    let streams = [input.as_raw_fd(), output.as_raw_fd(), output.as_raw_fd()];
    if streams.iter().chain([&failure.as_raw_fd()]).any(|number| *number <= 2) {
        return Ok(None);
    }

    // Held until the child is recorded, as in `spawn`.
    let _starting = owned::lock_for_start();
    let mut end: RawFd = -1;
    let mut how = CloneArgs {
        flags: CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
        pidfd: (&raw mut end) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    if let Some(cgroup) = cgroup {
        how.flags |= CLONE_INTO_CGROUP;
        how.cgroup = u64::try_from(cgroup.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?;
    }
    let mut setup = ChildSetup {
        program: &program,
        argv: &argv,
        envp: &envp,
        folder: folder.as_deref(),
        streams,
        failure: failure.as_raw_fd(),
        prepare,
    };
    // SAFETY: the arguments match the kernel's structure, whose size is passed. `end` lives until the call
    // returns, and the setup until the child has executed the program or has ended.
    let pid = unsafe { start(&mut how, &mut setup) };
    let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) else { return Ok(None) };
    // SAFETY: the call succeeded, so this is a new descriptor without another owner.
    let end = unsafe { OwnedFd::from_raw_fd(end) };
    let started = owned::record_child(pid);
    let mut life = ChildLife { pid, status: None };
    drop(failure);
    if let Err(error) = wait_for_exec(failed) {
        // The child is ending, and nothing can stop that.
        life.status = owned::take_exit_status(pid, 0)?;
        return Err(error);
    }
    // SAFETY: the wrapper owns its descriptor, and no other code closes or replaces the descriptor.
    let end = unsafe { AsyncFd::register_with_interest(end, Interest::READABLE)? };
    Ok(Some(CgroupChild { life, started, end }))
}

/// Waits until the child has executed the program. Returns the error if that fails.
fn wait_for_exec(mut failed: PipeReader) -> io::Result<()> {
    let mut error = [0; size_of::<i32>()];
    match failed.read_exact(&mut error) {
        Ok(()) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error))),
        // The pipe was closed by exec.
        Err(_) => Ok(()),
    }
}

/// Data of the child, prepared before it starts.
struct ChildSetup<'a> {
    program: &'a CStr,
    argv: &'a [*const libc::c_char],
    envp: &'a [*const libc::c_char],
    folder: Option<&'a CStr>,
    streams: [RawFd; 3],
    failure: RawFd,
    prepare: &'a mut dyn FnMut() -> io::Result<()>,
}

/// Size of the child's stack in bytes. A small stack is enough, because the child's calls are few and
/// shallow.
#[cfg(target_arch = "x86_64")]
const STACK_BYTES: usize = 128 << 10;

/// Starts the child on this process's memory and returns its process id, or a negative error. Returns when
/// the child has executed the program or has ended.
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "a child that uses our memory needs a stack of its own, which no library gives it"
)]
unsafe fn start(how: &mut CloneArgs, setup: &mut ChildSetup<'_>) -> i64 {
    // The kernel's ABI requires alignment for calls: u128 has 16 bytes.
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
    how.flags |= CLONE_VM | CLONE_VFORK;
    how.stack = stack.as_mut_ptr() as u64;
    how.stack_size = STACK_BYTES as u64;
    let mut result: i64 = libc::SYS_clone3;
    // SAFETY: in this thread this is one system call, which returns when the child no longer uses the shared
    // memory (CLONE_VFORK). The child returns from it with zero on the new stack and calls `run`, which never
    // returns, so it never uses this frame. Registers that a system call changes are listed.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") result,
            in("rdi") ptr::from_mut(how),
            in("rsi") size_of::<CloneArgs>(),
            in("r12") run as extern "C" fn(*mut ChildSetup<'static>) -> !,
            in("r13") ptr::from_mut(setup),
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    drop(stack);
    result
}

/// Starts the child with a copy of this process's memory, on processors without the assembly code above.
#[cfg(not(target_arch = "x86_64"))]
#[expect(unsafe_code, reason = "no library has this call")]
unsafe fn start(how: &mut CloneArgs, setup: &mut ChildSetup<'_>) -> i64 {
    // SAFETY: without CLONE_VM, the child has its own memory and stack, as after fork(2).
    let pid = unsafe { libc::syscall(libc::SYS_clone3, ptr::from_mut(how), size_of::<CloneArgs>()) };
    if pid == 0 {
        run(ptr::from_mut(setup).cast());
    }
    pid
}

/// Runs in the child and never returns.
extern "C" fn run(setup: *mut ChildSetup<'static>) -> ! {
    #[expect(unsafe_code, reason = "what a child does before it is another program")]
    // SAFETY: this is the child, which has one thread. The setup outlives it, and the thread that lent it is
    // suspended. All data was prepared before, nothing is allocated or freed, every call is async-signal-safe,
    // and the function never returns.
    unsafe {
        let setup = &mut *setup;
        let error = exec_program(setup);
        let _ = libc::write(setup.failure, (&raw const error).cast(), size_of_val(&error));
        libc::_exit(1);
    }
}

/// Executes the program in the child. Returns the error number if that fails.
#[expect(unsafe_code, reason = "the library's wrappers allocate")]
unsafe fn exec_program(setup: &mut ChildSetup<'_>) -> i32 {
    let ChildSetup { program, argv, envp, folder, streams, prepare, .. } = setup;
    let last = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    // SAFETY: descriptors are open, strings end with NUL and lists with a null pointer; all of them live in the
    // caller's frame. The signal set is initialised before its use.
    unsafe {
        for (number, from) in (0..).zip(*streams) {
            if libc::dup2(from, number) == -1 {
                return last();
            }
        }
        if let Some(folder) = folder
            && libc::chdir(folder.as_ptr()) == -1
        {
            return last();
        }
        // The child must not inherit blocked and ignored signals. Exec resets handlers by itself.
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        if let Err(error) = prepare() {
            return error.raw_os_error().unwrap_or(libc::EINVAL);
        }
        libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr());
    }
    last()
}

fn to_c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL within"))
}

#[cfg(target_arch = "x86_64")]
const CLONE_VM: u64 = 0x100;
const CLONE_PIDFD: u64 = 0x1000;
#[cfg(target_arch = "x86_64")]
const CLONE_VFORK: u64 = 0x4000;
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// `struct clone_args` of clone(2), third version.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

#[cfg(test)]
mod tests {
    use crate::proc::spawn_in_cgroup::*;
    use nix::sys::signal::SigSet;
    use std::os::fd::AsFd as _;
    use std::os::unix::process::ExitStatusExt as _;
    use std::time::Duration;

    /// Starts a child; the pipe has what it writes.
    fn start_with_output(
        command: &Command,
        prepare: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Option<(CgroupChild, PipeReader)>> {
        let (reader, output) = io::pipe()?;
        #[expect(unsafe_code, reason = "what is tested")]
        // SAFETY: the tests' closures do nothing, or make one system call.
        let child = unsafe { spawn_inside(command, output.as_fd(), None, prepare)? };
        Ok(child.map(|child| (child, reader)))
    }

    fn start(
        command: &Command,
        prepare: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Option<CgroupChild>> {
        Ok(start_with_output(command, prepare)?.map(|(child, _)| child))
    }

    fn bash(script: &str) -> Command {
        let mut command = Command::new("/bin/bash");
        command.arg("-c").arg(script).env_clear().env("A", "b c").current_dir("/tmp");
        command
    }

    #[tokio::test]
    async fn spawned_child_has_only_configured_environment() {
        // Let the shell itself read its signal masks, because other programs install their own handlers.
        let script = "echo \"$A $HOME $PWD $0\"; cat; while read -r name value; do case $name in \
                      SigBlk:|SigIgn:) echo $value >&2;; esac; done </proc/self/status; exit 7";
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGUSR1);
        blocked.thread_block().unwrap();
        let Some((mut child, mut reader)) = start_with_output(&bash(script), &mut || Ok(())).unwrap() else {
            crate::skip_test!("no clone3 here");
            return;
        };
        let mut output = String::new();
        reader.read_to_string(&mut output).unwrap();
        let (first, err) = output.split_once('\n').unwrap();
        assert_eq!(first, "b c  /tmp /bin/bash", "both streams are in one pipe, in order");
        let signals: Vec<u64> = err.lines().map(|line| u64::from_str_radix(line, 16).unwrap()).collect();
        let [held, ignored] = signals[..] else { panic!("{err}") };
        assert_eq!(held, 0, "none is blocked");
        assert_eq!(ignored >> (libc::SIGPIPE - 1) & 1, 0, "this process ignores it, others do not");
        assert_eq!(child.wait().await.unwrap().code(), Some(7));
        assert_eq!(child.wait().await.unwrap().code(), Some(7), "known later, too");
    }

    #[tokio::test]
    async fn failed_exec_returns_its_error() {
        let missing = start(&Command::new("/no/such/program"), &mut || Ok(()));
        assert!(!matches!(missing, Ok(Some(_))));
        let Err(error) = missing else {
            crate::skip_test!("no clone3 here");
            return;
        };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let mut refuse = || Err(io::Error::from_raw_os_error(libc::EXDEV));
        assert_eq!(start(&bash("true"), &mut refuse).unwrap_err().raw_os_error(), Some(libc::EXDEV));
        assert!(start(&bash("true"), &mut || Ok(())).unwrap().is_some());
        assert!(start(&Command::new("bash"), &mut || Ok(())).unwrap().is_none(), "only absolute paths");
    }

    #[tokio::test]
    async fn dropped_child_is_killed_and_reaped() {
        let Some(child) = start(&bash("exec sleep 1000"), &mut || Ok(())).unwrap() else {
            crate::skip_test!("no clone3 here");
            return;
        };
        let pid = child.id();
        drop(child);
        let child_end = async {
            while crate::proc::read_process(pid).is_ok() {
                owned::reap_pending();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), child_end).await.expect("it is gone, and no zombie");
    }

    #[tokio::test]
    async fn child_exit_status_reports_signal() {
        let Some(mut child) = start(&bash("kill -KILL $$"), &mut || Ok(())).unwrap() else {
            crate::skip_test!("no clone3 here");
            return;
        };
        let status = tokio::time::timeout(Duration::from_secs(20), child.wait()).await.expect("in time");
        assert_eq!(status.unwrap().signal(), Some(libc::SIGKILL));
    }
}
