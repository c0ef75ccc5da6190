//! Allocates buffers for large contents with huge pages. The kernel maps memory on first access, 4 KiB at a
//! time, and unmaps it with the buffer. Each copy of a 10 MB file would cause thousands of page faults. The
//! code requests huge pages instead, where available (madvise(2), `MADV_HUGEPAGE`).

use nix::libc;

use super::digest::LARGE;

/// Alignment of a huge page in bytes; with other page sizes, the kernel applies the advice to the pages that
/// fit.
const PAGE: usize = 2 << 20;

/// An empty vector with this capacity in bytes.
pub(super) fn bytes(capacity: usize) -> Vec<u8> {
    let mut room = Vec::with_capacity(capacity);
    if capacity >= LARGE {
        advise(&mut room);
    }
    room
}

/// An empty string with this capacity in bytes.
pub(super) fn text(capacity: usize) -> String {
    String::from_utf8(bytes(capacity)).unwrap_or_default()
}

/// Best effort: a failure only costs speed.
fn advise(room: &mut Vec<u8>) {
    let spare = room.spare_capacity_mut();
    let skip = spare.as_ptr().addr().next_multiple_of(PAGE) - spare.as_ptr().addr();
    let Some(inner) = spare.get_mut(skip..) else { return };
    let length = inner.len() / PAGE * PAGE;
    if length == 0 {
        return;
    }
    #[expect(unsafe_code, reason = "nothing safe gives this advice")]
    // SAFETY: the range lies in memory that this vector owns and that holds no data yet. The advice changes
    // neither its content nor its access rights.
    let _ = unsafe { libc::madvise(inner.as_mut_ptr().cast(), length, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffer_keeps_its_content() {
        for capacity in [0, 1, LARGE - 1, LARGE, PAGE, 3 * PAGE + 5, 10 << 20] {
            let mut room = bytes(capacity);
            assert!(room.is_empty() && room.capacity() >= capacity);
            let content: Vec<u8> = (0..capacity).map(|at| (at % 251) as u8).collect();
            room.extend_from_slice(&content);
            assert_eq!(room, content);
            // More than the initial capacity.
            room.extend_from_slice(&content);
            assert_eq!(room.len(), 2 * capacity);
            assert!(room.ends_with(&content));
        }
        let mut words = text(5 << 20);
        words.push_str("words");
        assert_eq!((words.as_str(), words.capacity() >= 5 << 20), ("words", true));
    }
}
