//! Releases memory pages of the program's own code.

use std::fs;

/// Releases code pages that were used so far: most are needed only at the start but count as resident. Pages
/// that are needed later are mapped again from the page cache, with a minor fault for every few pages. Returns
/// the number of released bytes, mapped or not; 0 if `/proc` is not readable.
#[must_use]
pub fn release_startup_pages() -> usize {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return 0 };
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return 0 };
    let ranges = maps.lines().filter_map(|line| code_of(line, &program.to_string_lossy()));
    ranges.filter(|(from, to)| drop_pages(*from, *to)).map(|(from, to)| to - from).sum()
}

/// The range of a line of `/proc/PID/maps`, proc(5), if it is code of this program that was never writable.
/// Such pages equal the file, so nothing is lost.
fn code_of(line: &str, program: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let is_code = fields.next()? == "r-xp";
    // Offset, device, inode; then the path, which may contain spaces.
    let path = line.get(line.find('/')?..)?;
    if !is_code || path != program {
        return None;
    }
    Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
}

fn drop_pages(from: usize, to: usize) -> bool {
    use nix::libc;
    #[expect(unsafe_code, reason = "no library for this call here")]
    // SAFETY: the kernel reports this range as a private mapping of the program's file, executable and not
    // writable. Its pages equal the file (a running program cannot be written to, ETXTBSY). A thread that runs
    // in it at this moment faults them in again, madvise(2).
    unsafe {
        libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_DONTNEED) == 0
    }
}

#[cfg(test)]
mod tests {
    use crate::proc::release_startup_pages::*;

    #[test]
    fn only_own_program_code_pages_are_selected() {
        let line = |perms: &str, path: &str| format!("7f0a1000-7f0b2000 {perms} 00001000 fe:00 77    {path}");
        let program = "/opt/a b/agentd";
        assert_eq!(code_of(&line("r-xp", program), program), Some((0x7f0a_1000, 0x7f0b_2000)));
        for other in [line("r--p", program), line("rw-p", program), line("rwxp", program)] {
            assert_eq!(code_of(&other, program), None, "{other}");
        }
        for other in ["/opt/a b/agentd (deleted)", "/usr/lib/libc.so.6", "[vdso]", ""] {
            assert_eq!(code_of(&line("r-xp", other), program), None, "{other}");
        }
        assert_eq!(code_of("", program), None);
    }

    #[test]
    fn program_continues_after_releasing_code_pages() {
        // Other threads run in the same pages meanwhile and fault them in again.
        let other = std::thread::spawn(|| (0..1_000).map(|n| format!("{n}")).collect::<String>().len());
        assert!(release_startup_pages() > 0, "there is code");
        assert_eq!(other.join().expect("no panic"), 2_890);
    }
}
