//! Starts one command in its sandbox. All data is prepared before the fork. The child then makes enforcing
//! calls only, in this order: session, cgroup, limits, mounts, no new privileges, capabilities, Landlock,
//! seccomp.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::resource::setrlimit;
use seccompiler::BpfProgram;
use tokio::process::Command;

use crate::shell::cgroup::CallCgroup;
use crate::shell::limits::Rlimit;
use crate::shell::sandbox::bwrap;
use crate::shell::sandbox::cache::{self, PlaceholderCache};
use crate::shell::sandbox::landlock::{self, NonFileAccess};
use crate::shell::sandbox::layout::FsPolicy;
use crate::shell::sandbox::level::AvailableLevels;
use crate::shell::sandbox::level::{CallSandbox, Level};
use crate::shell::sandbox::placeholders::{Placeholders, existing_paths, notes_path};
use crate::shell::sandbox::readonly_mounts::{MountKind, ReadonlyMounts};
use crate::shell::sandbox::seccomp;
use crate::shell::sandbox::seccomp::FilterOptions;
use crate::shell::sandbox::sockets::socket_covers;
use crate::shell::sandbox::temp::{self, EmptySources};
use base::open;
use base::proc;
use types::ids::SessionId;

/// Lowest number of a descriptor that a command inherits, above those that scripts and shells use.
const MIN_INHERITED_FD: RawFd = 300;
/// Lowest number if the limit of descriptors is too low for the first one.
const MIN_INHERITED_FD_FALLBACK: RawFd = 20;
/// Increases the chance that the kernel kills commands first when memory runs out, of 1000, proc(5).
const OOM_SCORE: &[u8] = b"500";
/// Capabilities that root keeps at level 2: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID,
/// capabilities(7).
const KEPT_CAPABILITIES: u64 = 0b1111_1011;
const LAST_CAPABILITY: u64 = 63;

/// The sandbox of a command; keep it until the command has ended.
#[derive(Debug)]
pub(crate) struct CommandSandbox {
    /// Arguments in front of the command: bubblewrap with its options.
    wrapper: Vec<OsString>,
    variables: Vec<(&'static str, PathBuf)>,
    held: Arc<ChildRestrictions>,
    placed: Placeholders,
}

/// Restrictions that the child enforces after the fork.
#[derive(Debug, Default)]
struct ChildRestrictions {
    rules: Option<Arc<OwnedFd>>,
    filter: Option<BpfProgram>,
    guards: ReadonlyMounts,
    /// The descriptor from which bubblewrap reads the filter.
    filter_fd: Option<OwnedFd>,
    new_privileges: bool,
}

impl CommandSandbox {
    /// A sandbox without restrictions.
    pub(crate) fn unrestricted() -> Self {
        let held = ChildRestrictions { new_privileges: true, ..ChildRestrictions::default() };
        Self {
            wrapper: Vec::new(),
            variables: Vec::new(),
            held: Arc::new(held),
            placed: Placeholders::default(),
        }
    }

    /// Creates the sandbox for one policy at level 2 or 3, for a command that starts in `cwd`. `root` is the
    /// folder for temporary files of all sessions. Creates placeholders for missing guarded paths; most exist
    /// already. Blocks on the disk.
    ///
    /// # Errors
    /// The sandbox could not be created.
    pub(crate) fn new(
        choice: CallSandbox,
        layout: &FsPolicy,
        root: &Path,
        here: &AvailableLevels,
        cwd: &Path,
    ) -> io::Result<Self> {
        // A folder without a repository may get one: at level 2, the command that creates it is judged like any
        // other. At level 3, where no request is made, it is denied. A placeholder for `.agentd` would block
        // `git stash -u` and `git clone URL .`. A new `.agentd` has no effect before the user trusts it.
        let is_kept = |path: &&PathBuf| match choice.level {
            Level::Bubblewrap => true,
            _ => choice.guards && !path.ends_with(".git") && !path.ends_with(".agentd"),
        };
        let absent: Vec<PathBuf> = layout.absent.iter().filter(is_kept).cloned().collect();
        let placed = Placeholders::new(&absent, notes_path(&layout.temp).as_deref())?;
        let absent = existing_paths(&absent);
        let filter = seccomp_filter(choice, here.abi)?;
        let (mut held, mut wrapper) = if choice.level == Level::Bubblewrap {
            ChildRestrictions::for_bubblewrap(choice, layout, &absent, root, here)?
        } else {
            (ChildRestrictions::for_landlock(choice, layout, &absent, root, here)?, Vec::new())
        };
        let temp = if choice.level == Level::Bubblewrap {
            let fd = readable_descriptor(&seccomp::bytes(&filter))?;
            wrapper.extend(["--chdir".into(), cwd.into()]);
            wrapper.extend(["--seccomp".into(), fd.as_raw_fd().to_string().into(), "--".into()]);
            wrapper.extend(bwrap::FIRST_PROCESS.iter().map(OsString::from));
            held.filter_fd = Some(fd);
            bwrap::temp_folder_inside(layout)
        } else {
            held.filter = Some(filter);
            layout.temp.as_path()
        };
        Ok(Self { wrapper, variables: variables(temp, choice), held: Arc::new(held), placed })
    }

    /// Call it when the command has ended. The session's next command may reuse the placeholders.
    pub(crate) fn release(self, placeholder_cache: &PlaceholderCache, session: SessionId) {
        placeholder_cache.store_placeholders(session, self.placed);
    }

    /// Variables that override those of the environment.
    pub(crate) fn variables(&self) -> &[(&'static str, PathBuf)] {
        &self.variables
    }

    /// The command that runs `program` in the sandbox; the caller adds arguments and other settings.
    pub(crate) fn command(&self, program: &str) -> Command {
        match self.wrapper.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        }
    }

    /// Starts a command with its sandbox and limits in its cgroup; `channel` stays open. Both streams of the command
    /// go to `output`, so that a reader gets them in the order of their writes.
    ///
    /// # Errors
    /// The command could not be started, or the sandbox could not be enforced.
    pub(crate) fn spawn(
        &self,
        mut command: Command,
        limits: Vec<Rlimit>,
        cgroup: Option<&CallCgroup>,
        channel: RawFd,
        output: PipeWriter,
    ) -> io::Result<proc::Child> {
        let mut enforce = self.child_setup(limits.clone(), None, Some(channel));
        #[expect(unsafe_code, reason = "what is enforced is enforced in the child")]
        // SAFETY: see `child_setup` for the calls that it makes in the child.
        let child = unsafe {
            proc::spawn_inside(&command, output.as_fd(), cgroup.map(CallCgroup::folder), &mut enforce)?
        };
        if let Some(child) = child {
            return Ok(proc::Child::Inside(child));
        }
        let entrance = cgroup.and_then(|cgroup| cgroup.open_procs_file().ok());
        let entrance_fd = entrance.as_ref().map(|file| file.as_raw_fd());
        self.enforce_in(&mut command, limits, entrance_fd, Some(channel));
        command.stdout(output.try_clone()?).stderr(output);
        proc::spawn(&mut command).map(proc::Child::Usual)
    }

    /// Makes the child enforce the sandbox and limits in the cgroup of `entrance`; `channel` stays open.
    pub(crate) fn enforce_in(
        &self,
        command: &mut Command,
        limits: Vec<Rlimit>,
        entrance: Option<RawFd>,
        channel: Option<RawFd>,
    ) {
        let enforce = self.child_setup(limits, entrance, channel);
        #[expect(unsafe_code, reason = "only pre_exec reaches the child before it becomes the command")]
        // SAFETY: see `child_setup` for the calls that it makes in the child.
        unsafe {
            command.pre_exec(enforce);
        }
    }

    /// The steps of the child before exec. Between fork and exec it makes only async-signal-safe calls: setsid,
    /// open, write, setrlimit, close_range, fcntl, getcwd, setns, unshare, mount, mount_setattr, chdir, prctl,
    /// capset, landlock_restrict_self, seccomp. It does not allocate or lock, and writes only its own
    /// variables, because it may share the daemon's memory. The calls change the state of the child alone. The
    /// descriptors are open in the child: they are copies of the daemon's, which stay open until the child has
    /// started.
    fn child_setup(
        &self,
        limits: Vec<Rlimit>,
        entrance: Option<RawFd>,
        channel: Option<RawFd>,
    ) -> impl FnMut() -> io::Result<()> + Send + Sync + use<> {
        let held = Arc::clone(&self.held);
        let parent = nix::unistd::getpid();
        move || {
            // Until exec, the child has all descriptors of the daemon open, including its socket, and must not
            // outlive the daemon in this state. The thread that forked waits meanwhile, prctl(2).
            set_death_signal(libc::SIGKILL);
            if nix::unistd::getppid() != parent {
                return Err(io::ErrorKind::Interrupted.into());
            }
            // A session of its own: the command cannot open a terminal, and the whole group can be killed.
            nix::unistd::setsid()?;
            if let Some(entrance) = entrance {
                // Enter the cgroup before any process can be started. If this fails, the process tree is found
                // by its other marks.
                enter(entrance);
            }
            prefer_for_oom();
            for (resource, soft, hard) in &limits {
                setrlimit(*resource, *soft, *hard)?;
            }
            inherit_only(channel.into_iter().chain(held.filter_fd.as_ref().map(|fd| fd.as_raw_fd())))?;
            set_death_signal(0);
            held.enforce()
        }
    }
}

fn seccomp_filter(choice: CallSandbox, abi: u32) -> io::Result<BpfProgram> {
    // Before this version, Landlock allows a process to truncate files that it may not write.
    let is_bubble = choice.level == Level::Bubblewrap;
    seccomp::program(FilterOptions {
        network: choice.network,
        truncate: is_bubble || abi >= 3,
        others: is_bubble,
    })
    .ok_or_else(|| io::Error::other("no filter of system calls for this architecture"))
}

fn set_death_signal(signal: libc::c_int) {
    #[expect(unsafe_code, reason = "called after a fork")]
    // SAFETY: all arguments are numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, signal);
    }
}

/// Enters the cgroup of this descriptor, if possible.
fn enter(entrance: RawFd) {
    #[expect(unsafe_code, reason = "called after a fork")]
    // SAFETY: one byte of a constant is written.
    unsafe {
        let _ = libc::write(entrance, c"0".as_ptr().cast(), 1);
    }
}

/// Marks all descriptors except these as closed on exec, including those that the daemon inherited or opened
/// without the flag.
fn inherit_only(numbers: impl Iterator<Item = RawFd>) -> io::Result<()> {
    #[expect(unsafe_code, reason = "called after a fork")]
    // SAFETY: all arguments are numbers.
    unsafe {
        // Kernels without this call close only descriptors that already have the flag.
        let _ = libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        for number in numbers {
            if libc::fcntl(number, libc::F_SETFD, 0) == -1 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Variables for temporary files, and for caches if their usual folder is not writable.
fn variables(temp: &Path, choice: CallSandbox) -> Vec<(&'static str, PathBuf)> {
    let mut list = vec![("TMPDIR", temp.to_owned())];
    if !choice.network {
        list.push(("XDG_CACHE_HOME", temp.join("cache")));
    }
    list
}

/// Makes the kernel prefer this process over the daemon when memory runs out; best effort.
fn prefer_for_oom() {
    #[expect(unsafe_code, reason = "called after a fork")]
    // SAFETY: plain system calls on a constant path and on the resulting descriptor.
    unsafe {
        let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            let _ = libc::write(file, OOM_SCORE.as_ptr().cast(), OOM_SCORE.len());
            let _ = libc::close(file);
        }
    }
}

impl ChildRestrictions {
    /// The mounts and rules at level 3, and bubblewrap with its options, except for those of a single start.
    fn for_bubblewrap(
        choice: CallSandbox,
        layout: &FsPolicy,
        absent: &[PathBuf],
        root: &Path,
        here: &AvailableLevels,
    ) -> io::Result<(Self, Vec<OsString>)> {
        let nothing = temp::create_empty_sources(root)?;
        let mut mounts = bwrap::mounts(layout, absent, &nothing);
        let mut inner = bwrap::take_inner_mounts(layout, &mut mounts);
        bwrap::cover_by_mount_points(&mut inner, &mounts, |spots| temp::create_mount_points(root, spots))?;
        let mut stages = 0;
        let mut next = |is_file| {
            stages += 1;
            temp::stage(root, stages, is_file)
        };
        let hidden = bwrap::take_hidden_mounts(&mut mounts, &open::real(root)?);
        let staged = bwrap::stage_mounts(&mut mounts, inner, &mut next)?;
        let guards = ReadonlyMounts::new(staged.into_iter().chain(hidden).collect(), &nothing)?;
        let mut wrapper = vec![here.bwrap.clone().into()];
        wrapper.extend(bwrap::arguments(mounts, choice.network, nix::unistd::geteuid().is_root()));
        let rules = landlock::scope_ruleset(here.abi)?.map(Arc::new);
        Ok((Self { guards, rules, ..Self::default() }, wrapper))
    }

    /// The mounts and rules at level 2.
    fn for_landlock(
        choice: CallSandbox,
        layout: &FsPolicy,
        absent: &[PathBuf],
        root: &Path,
        here: &AvailableLevels,
    ) -> io::Result<Self> {
        let rules = cache::rules(layout, NonFileAccess::from_choice(choice))?;
        let mut guards = ReadonlyMounts::default();
        if choice.guards {
            let nothing = temp::create_empty_sources(root)?;
            let hidden: Vec<(PathBuf, MountKind)> = hidden_within(layout, &nothing).collect();
            // A path in a covered folder is not visible.
            let is_seen = |(path, _): &(PathBuf, MountKind)| {
                !hidden.iter().any(|(above, _)| path.starts_with(above) && path != above)
            };
            let covers = level2_mounts(layout, absent).chain(hidden.iter().cloned()).filter(is_seen);
            let covers = covers.chain(socket_covers(layout, &nothing)?).collect();
            guards = ReadonlyMounts::with_private_devices(
                covers,
                &nothing,
                &rules,
                here.abi,
                !layout.lies_in_shared_memory(),
            )?;
        }
        Ok(Self { guards, rules: Some(rules), ..Self::default() })
    }

    /// Runs after the fork: nothing here may allocate or take a lock.
    fn enforce(&self) -> io::Result<()> {
        fn done(result: libc::c_long) -> io::Result<()> {
            if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        }
        if self.new_privileges {
            return Ok(());
        }
        self.guards.enter()?;
        #[expect(unsafe_code, reason = "the libraries that wrap these calls allocate")]
        // SAFETY: all arguments are numbers, or pointers to values that live until the call returns.
        unsafe {
            done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            if self.filter.is_some() {
                drop_capabilities()?;
            }
            if let Some(rules) = &self.rules {
                done(libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0))?;
            }
            if let Some(filter) = &self.filter {
                let program = libc::sock_fprog {
                    len: u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
                    filter: filter.as_ptr().cast_mut().cast(),
                };
                done(libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program))?;
            }
        }
        Ok(())
    }
}

/// Guards and pins that are mounted at level 2.
fn level2_mounts<'l>(
    layout: &'l FsPolicy,
    absent: &'l [PathBuf],
) -> impl Iterator<Item = (PathBuf, MountKind)> + 'l {
    // A command could move the folder and put another one in its place.
    let is_inside_other =
        |folder: &&PathBuf| layout.writable.iter().any(|other| folder.starts_with(other) && other != *folder);
    let pinned = layout
        .writable
        .iter()
        .filter(is_inside_other)
        .chain(&layout.pinned)
        .map(|path| (path, MountKind::Pin));
    let guarded = layout.guarded.iter().chain(absent).map(|path| (path, MountKind::Guard));
    pinned.chain(guarded).map(|(path, cover)| (path.clone(), cover))
}

/// Hidden paths that are covered at level 2 because they lie in a writable folder.
fn hidden_within<'l>(
    layout: &'l FsPolicy,
    nothing: &'l EmptySources,
) -> impl Iterator<Item = (PathBuf, MountKind)> + 'l {
    layout.hidden.iter().filter(|path| layout.is_covered(path)).map(|path| {
        let cover = if path.is_dir() { &nothing.folder } else { &nothing.file };
        (path.clone(), MountKind::Hide(cover.clone()))
    })
}

/// Removes most capabilities of root. Other users have none.
#[expect(unsafe_code, reason = "no library for these calls here")]
fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct CapabilityHeader {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct CapabilityData {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    // capget(2): version 3 has two data structures, the lower half first.
    let mut header = CapabilityHeader { version: 0x2008_0522, pid: 0 };
    let mut data = [CapabilityData::default(); 2];
    // SAFETY: the kernel reads and writes one header and two data structures, as version 3 specifies.
    unsafe {
        for capability in (0..=LAST_CAPABILITY).filter(|capability| KEPT_CAPABILITIES >> capability & 1 == 0)
        {
            // Unknown capability numbers and a missing right to drop them are not errors; the checks below
            // decide.
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        if libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        for (half, data) in data.iter_mut().enumerate() {
            let kept_bits = (KEPT_CAPABILITIES >> (32 * half)) as u32;
            data.effective &= kept_bits;
            data.permitted &= kept_bits;
            data.inheritable = 0;
        }
        if libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A descriptor from which these few bytes can be read once.
fn readable_descriptor(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    // The bytes fit into the pipe, so the write does not block.
    File::from(write).write_all(bytes)?;
    raise(&read)
}

/// Copies a descriptor to a high number, closed on exec.
pub(crate) fn raise(fd: &OwnedFd) -> io::Result<OwnedFd> {
    // With a very low limit of descriptors, any number is accepted.
    let copy = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(MIN_INHERITED_FD))
        .or_else(|_| fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(MIN_INHERITED_FD_FALLBACK)))?;
    #[expect(unsafe_code, reason = "fcntl gives a bare number")]
    // SAFETY: the call succeeded, so the number is a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
