//! Room for large contents. The kernel gives memory when it is touched, 4 KiB at a time, and takes it back
//! when the content goes: for the 10 MB of a large file that is thousands of faults for every copy of it. It is
//! asked for large pages instead, where it has them (madvise(2), `MADV_HUGEPAGE`).

use nix::libc;

use super::digest::LARGE;

/// What a large page is aligned to; on machines with other sizes the advice is taken for what fits.
const PAGE: usize = 2 << 20;

/// An empty vector with room for so many bytes.
pub(super) fn bytes(capacity: usize) -> Vec<u8> {
    let mut room = Vec::with_capacity(capacity);
    if capacity >= LARGE {
        advise(&mut room);
    }
    room
}

/// An empty text with room for so many bytes.
pub(super) fn text(capacity: usize) -> String {
    String::from_utf8(bytes(capacity)).unwrap_or_default()
}

/// Best effort: without it everything is as it was.
fn advise(room: &mut Vec<u8>) {
    let spare = room.spare_capacity_mut();
    let skip = spare.as_ptr().addr().next_multiple_of(PAGE) - spare.as_ptr().addr();
    let Some(inner) = spare.get_mut(skip..) else { return };
    let length = inner.len() / PAGE * PAGE;
    if length == 0 {
        return;
    }
    #[expect(unsafe_code, reason = "nothing safe gives this advice")]
    // SAFETY: the range lies in memory that is ours alone and holds nothing yet, and the advice changes neither
    // what is in it nor who may use it.
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
            // Beyond the room it was made with.
            room.extend_from_slice(&content);
            assert_eq!(room.len(), 2 * capacity);
            assert!(room.ends_with(&content));
        }
        let mut words = text(5 << 20);
        words.push_str("words");
        assert_eq!((words.as_str(), words.capacity() >= 5 << 20), ("words", true));
    }
}
