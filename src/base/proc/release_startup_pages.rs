//! Releases memory pages of the program's own code and constants.

use std::fs;

/// Releases pages of the program's file that were used so far. Most of them are needed only at the start, but
/// count as resident. Pages that are needed later are mapped again from the page cache, with a minor fault
/// for every few pages. Returns the number of released bytes, mapped or not; 0 if `/proc` is not readable.
pub fn release_startup_pages() -> usize {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return 0 };
    let Ok(mappings) = fs::read_to_string("/proc/self/smaps") else { return 0 };
    let ranges = unchanged_ranges(&mappings, &program.to_string_lossy());
    ranges.into_iter().filter(|(from, to)| drop_pages(*from, *to)).map(|(from, to)| to - from).sum()
}

/// The ranges in `/proc/PID/smaps`, proc(5), of this program's file that are not writable and have no page
/// that differs from the file. Constants with addresses differ from the file, because the loader relocated
/// them before it made them read-only. The content of such a page would be lost.
fn unchanged_ranges(mappings: &str, program: &str) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut current = None;
    for line in mappings.lines() {
        if let Some(size) = line.strip_prefix("Anonymous:") {
            let range = current.take();
            ranges.extend(range.filter(|_| size.trim() == "0 kB"));
        } else if let Some(range) = mapping_range(line, program) {
            current = Some(range);
        } else if !line.split_ascii_whitespace().next().is_some_and(|name| name.ends_with(':')) {
            // The first line of another mapping.
            current = None;
        }
    }
    ranges
}

/// The range of a mapping's first line if it is a private mapping of the program that is not writable.
fn mapping_range(line: &str, program: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let is_read_only = matches!(fields.next()?, "r-xp" | "r--p");
    // Offset, device, inode; then the path, which may contain spaces.
    let path = line.get(line.find('/')?..)?;
    if !is_read_only || path != program {
        return None;
    }
    Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
}

fn drop_pages(from: usize, to: usize) -> bool {
    use nix::libc;
    #[expect(unsafe_code, reason = "no library for this call here")]
    // SAFETY: the kernel reports this range as a private mapping of the program's file, not writable and without
    // anonymous pages. The loader had finished with it before `main`. Its pages equal the file (a running program
    // cannot be written to, ETXTBSY). A thread that uses them at this moment faults them in again, madvise(2).
    unsafe {
        libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_DONTNEED) == 0
    }
}

#[cfg(test)]
mod tests {
    use crate::proc::release_startup_pages::*;

    #[test]
    fn only_unchanged_pages_of_own_program_are_selected() {
        let mapping = |perms: &str, path: &str, anonymous: &str| {
            format!(
                "7f0a1000-7f0b2000 {perms} 00001000 fe:00 77    {path}\nSize:  68 kB\nAnonymous:  {anonymous} kB\n\
                 VmFlags: rd ex\n"
            )
        };
        let program = "/opt/a b/agentd";
        for perms in ["r-xp", "r--p"] {
            let ranges = unchanged_ranges(&mapping(perms, program, "0"), program);
            assert_eq!(ranges, [(0x7f0a_1000, 0x7f0b_2000)], "{perms}");
            assert_eq!(unchanged_ranges(&mapping(perms, program, "4"), program), [], "{perms}");
        }
        for perms in ["rw-p", "rwxp", "r--s", "---p"] {
            assert_eq!(unchanged_ranges(&mapping(perms, program, "0"), program), [], "{perms}");
        }
        for other in ["/opt/a b/agentd (deleted)", "/usr/lib/libc.so.6", "[vdso]", ""] {
            assert_eq!(unchanged_ranges(&mapping("r-xp", other, "0"), program), [], "{other}");
        }
        // A mapping without the field must not use the field of the next mapping.
        let line = mapping("r-xp", program, "0");
        let cut = line.lines().next().unwrap_or_default();
        assert_eq!(unchanged_ranges(&format!("{cut}\n{}", mapping("rw-p", "", "0")), program), []);
    }

    #[test]
    fn program_continues_after_releasing_its_pages() {
        // Other threads run in the same pages meanwhile and fault them in again.
        let other = std::thread::spawn(|| (0..1_000).map(|n| format!("{n}")).collect::<String>().len());
        assert!(release_startup_pages() > 0, "there are pages");
        assert_eq!(other.join().expect("no panic"), 2_890);
    }
}
