//! A BPF program that denies system calls, seccomp(2). Denied calls fail with EPERM.
//!
//! Calls of another architecture (32-bit programs) and of the x32 ABI all fail. Their numbers differ, so a
//! filter for the native numbers would allow a forbidden call under another number.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

const EPERM: u32 = libc::EPERM as u32;

/// Denied with any arguments: memory of other processes, mounts and namespaces, keys, interfaces of the kernel,
/// the clock, and calls that bypass path checks.
const FORBIDDEN_CALLS: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_open_by_handle_at,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// New namespaces of clone(2).
const NAMESPACE_FLAGS: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Inserting text into a terminal's input, ioctl_tty(2).
const TERMINAL_REQUESTS: &[u64] = &[0x5412, 0x541C];

/// Options that differ between commands.
#[derive(Clone, Copy)]
pub(super) struct FilterOptions {
    /// If false, only local sockets are allowed.
    pub(super) network: bool,
    /// Whether truncate(2) is allowed.
    pub(super) truncate: bool,
    /// Whether calls for limits and scheduling may name other processes. They may if the command sees only
    /// its own processes.
    pub(super) others: bool,
}

/// The program; `None` on an unknown architecture.
pub(super) fn program(allowed: FilterOptions) -> Option<BpfProgram> {
    /// There are eight variants, and creating one is the slowest part of a call's filter.
    static PROGRAMS: [OnceLock<Option<BpfProgram>>; 8] = [const { OnceLock::new() }; 8];
    let FilterOptions { network, truncate, others } = allowed;
    let made = &PROGRAMS[usize::from(others) * 4 + usize::from(network) * 2 + usize::from(truncate)];
    made.get_or_init(|| make(allowed)).clone()
}

fn make(allowed: FilterOptions) -> Option<BpfProgram> {
    let arch: TargetArch = std::env::consts::ARCH.try_into().ok()?;
    let mut program = preface_program()?;
    program.extend(rules(allowed, arch).ok()?);
    Some(program)
}

/// Calls whose first argument is a process, or 0 for the caller. Limits and priorities could end or starve
/// other processes.
const PROCESS_CALLS: &[libc::c_long] =
    &[libc::SYS_sched_setattr, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler];

/// Calls whose first argument is the kind of the second one, setpriority(2) and ioprio_set(2), with the number
/// for all processes of a user.
const KIND_CALLS: &[(libc::c_long, u64)] = &[(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Families of sockets: local ones, and with network access IP and netlink.
fn socket_families(network: bool) -> &'static [i32] {
    if network { &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] } else { &[libc::AF_UNIX] }
}

fn rules(allowed: FilterOptions, arch: TargetArch) -> Result<BpfProgram, seccompiler::BackendError> {
    let FilterOptions { network, truncate, others } = allowed;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        FORBIDDEN_CALLS.iter().map(|number| (*number, Vec::new())).collect();
    if !truncate {
        rules.insert(libc::SYS_truncate, Vec::new());
    }
    let rule = |conditions| SeccompRule::new(conditions);
    let is = |at, op, value| SeccompCondition::new(at, Len::Dword, op, value);

    let no_family = socket_families(network).iter().map(|family| is(0, Op::Ne, *family as u64));
    rules.insert(libc::SYS_socket, vec![rule(no_family.collect::<Result<_, _>>()?)?]);
    let mut spaces = Vec::new();
    for bit in NAMESPACE_FLAGS {
        spaces.push(rule(vec![is(0, Op::MaskedEq(*bit as u64), *bit as u64)?])?);
    }
    rules.insert(libc::SYS_clone, spaces);
    let mut terminal = Vec::new();
    for request in TERMINAL_REQUESTS {
        terminal.push(rule(vec![is(1, Op::Eq, *request)?])?);
    }
    rules.insert(libc::SYS_ioctl, terminal);
    // A lease on a readable file would block all other programs that open it, and lookups that must not wait
    // would fail.
    rules.insert(libc::SYS_fcntl, vec![rule(vec![is(1, Op::Eq, libc::F_SETLEASE as u64)?])?]);
    if !others {
        for call in PROCESS_CALLS {
            rules.insert(*call, vec![rule(vec![is(0, Op::Ne, 0)?])?]);
        }
        for (call, user) in KIND_CALLS {
            rules.insert(*call, vec![rule(vec![is(1, Op::Ne, 0)?])?, rule(vec![is(0, Op::Eq, *user)?])?]);
        }
        // Reading limits is allowed: the pointer to new limits is null then.
        let new = SeccompCondition::new(2, Len::Qword, Op::Ne, 0)?;
        rules.insert(libc::SYS_prlimit64, vec![rule(vec![is(0, Op::Ne, 0)?, new])?]);
    }

    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM), arch)?.try_into()
}

/// Checks that a list of numbers cannot express: other architectures, other numbers, and clone3(2), whose flags
/// a filter cannot read. A C library that receives ENOSYS uses clone(2).
fn preface_program() -> Option<BpfProgram> {
    const LOAD: u16 = 0x20;
    const IS: u16 = 0x15;
    const AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    let arch = match std::env::consts::ARCH {
        "x86_64" => 0xC000_003E,
        "aarch64" => 0xC000_00B7,
        _ => return None,
    };
    let op = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let clone3 = u32::try_from(libc::SYS_clone3).ok()?;
    Some(vec![
        // struct seccomp_data: the number at 0, the architecture at 4.
        op(LOAD, 0, 0, 4),
        op(IS, 1, 0, arch),
        op(RETURN, 0, 0, ERRNO | EPERM),
        op(LOAD, 0, 0, 0),
        op(AT_LEAST, 0, 1, 0x4000_0000),
        op(RETURN, 0, 0, ERRNO | EPERM),
        op(IS, 0, 1, clone3),
        op(RETURN, 0, 0, ERRNO | libc::ENOSYS as u32),
    ])
}

/// The program in the format that bubblewrap reads.
pub(super) fn bytes(program: &[sock_filter]) -> Vec<u8> {
    let encode = |op: &sock_filter| {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&op.code.to_ne_bytes());
        bytes[2] = op.jt;
        bytes[3] = op.jf;
        bytes[4..].copy_from_slice(&op.k.to_ne_bytes());
        bytes
    };
    program.iter().flat_map(encode).collect()
}

#[cfg(test)]
mod tests {
    use crate::shell::sandbox::seccomp::*;

    /// Simulates the kernel's BPF machine, as far as these programs use it, and returns the result for a call.
    fn run(program: &[sock_filter], arch: u32, number: u32, args: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(arch.to_le_bytes());
        data.extend([0; 8]);
        args.iter().for_each(|arg| data.extend(arg.to_le_bytes()));
        let (mut at, mut a) = (0, 0_u32);
        loop {
            let op = &program[at];
            at += 1;
            let jump = |is_true: bool| usize::from(if is_true { op.jt } else { op.jf });
            match op.code {
                0x20 => {
                    let from = op.k as usize;
                    a = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
                }
                0x06 => return op.k,
                0x05 => at += op.k as usize,
                0x15 => at += jump(a == op.k),
                0x25 => at += jump(a > op.k),
                0x35 => at += jump(a >= op.k),
                0x54 => a &= op.k,
                other => panic!("an instruction {other:#x}"),
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn forbidden_syscalls_fail_under_every_architecture() {
        const NATIVE: u32 = 0xC000_003E;
        const I386: u32 = 0x4000_0003;
        const ALLOW: u32 = 0x7fff_0000;
        const DENY: u32 = 0x0005_0000 | EPERM;
        const ABSENT: u32 = 0x0005_0000 | 38;
        let call = |number: libc::c_long| u32::try_from(number).unwrap();
        let first = |value: u64| [value, 0, 0, 0, 0, 0];
        let flags = |flags: i32| first(flags as u64);
        for (network, arch, number, args, expected) in [
            (true, NATIVE, call(libc::SYS_read), [0; 6], ALLOW),
            (true, NATIVE, call(libc::SYS_execve), [0; 6], ALLOW),
            (true, NATIVE, call(libc::SYS_ptrace), [0; 6], DENY),
            (true, NATIVE, call(libc::SYS_io_uring_setup), [0; 6], DENY),
            (true, NATIVE, call(libc::SYS_unshare), [0; 6], DENY),
            (true, NATIVE, 0x4000_0000 | call(libc::SYS_ptrace), [0; 6], DENY),
            (true, NATIVE, 0x4000_0000 | call(libc::SYS_read), [0; 6], DENY),
            // On i386, 26 is ptrace and 3 is read.
            (true, I386, 26, [0; 6], DENY),
            (true, I386, 3, [0; 6], DENY),
            (true, NATIVE, call(libc::SYS_clone3), [0; 6], ABSENT),
            (true, NATIVE, call(libc::SYS_clone), flags(libc::SIGCHLD), ALLOW),
            (true, NATIVE, call(libc::SYS_clone), flags(libc::CLONE_NEWUSER | libc::SIGCHLD), DENY),
            (true, NATIVE, call(libc::SYS_clone), flags(libc::CLONE_NEWNET | libc::CLONE_VM), DENY),
            (true, NATIVE, call(libc::SYS_socket), flags(libc::AF_UNIX), ALLOW),
            (true, NATIVE, call(libc::SYS_socket), flags(libc::AF_INET6), ALLOW),
            (true, NATIVE, call(libc::SYS_socket), flags(libc::AF_VSOCK), DENY),
            (true, NATIVE, call(libc::SYS_socket), flags(libc::AF_PACKET), DENY),
            (false, NATIVE, call(libc::SYS_socket), flags(libc::AF_UNIX), ALLOW),
            (false, NATIVE, call(libc::SYS_socket), flags(libc::AF_INET), DENY),
            // The kernel reads the lower half only, and so does the filter.
            (false, NATIVE, call(libc::SYS_socket), first(1 << 32 | libc::AF_INET as u64), DENY),
            (true, NATIVE, call(libc::SYS_ioctl), [0, 0x5412, 0, 0, 0, 0], DENY),
            (true, NATIVE, call(libc::SYS_ioctl), [0, 1 << 32 | 0x5412, 0, 0, 0, 0], DENY),
            (true, NATIVE, call(libc::SYS_ioctl), [0, 0x5401, 0, 0, 0, 0], ALLOW),
        ] {
            let program = program(FilterOptions { network, truncate: true, others: true }).unwrap();
            assert_eq!(
                run(&program, arch, number, args),
                expected,
                "{network} {arch:#x} {number:#x} {args:?}"
            );
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn seccomp_denies_limit_changes_of_other_processes() {
        const NATIVE: u32 = 0xC000_003E;
        let (user, other) = (1 << 32, 77);
        for (number, args, is_fine) in [
            (libc::SYS_prlimit64, [0, 7, 1, 0], true),
            (libc::SYS_prlimit64, [other, 7, 0, 1], true),
            (libc::SYS_prlimit64, [other, 7, 1, 0], false),
            (libc::SYS_prlimit64, [other, 7, user, 0], false),
            (libc::SYS_setpriority, [0, 0, 5, 0], true),
            (libc::SYS_setpriority, [1, 0, 5, 0], true),
            (libc::SYS_setpriority, [2, 0, 5, 0], false),
            (libc::SYS_setpriority, [0, other, 5, 0], false),
            (libc::SYS_ioprio_set, [1, 0, 5, 0], true),
            (libc::SYS_ioprio_set, [3, 0, 5, 0], false),
            (libc::SYS_ioprio_set, [1, other, 5, 0], false),
            // A thread may name itself this way.
            (libc::SYS_sched_setaffinity, [other, 8, 1, 0], true),
            (libc::SYS_sched_setscheduler, [other, 5, 1, 0], false),
            (libc::SYS_sched_getaffinity, [other, 8, 1, 0], true),
        ] {
            for others in [false, true] {
                let program = program(FilterOptions { network: true, truncate: true, others }).unwrap();
                let [a, b, c, d] = args;
                let action = run(&program, NATIVE, u32::try_from(number).unwrap(), [a, b, c, d, 0, 0]);
                let expected = if is_fine || others { 0x7fff_0000 } else { 0x0005_0000 | EPERM };
                assert_eq!(action, expected, "{number} {args:?} {others}");
            }
        }
    }
}
