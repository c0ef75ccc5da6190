//! Returns freed memory to the kernel.

/// Returns free pages of the allocator to the kernel. By itself, the allocator returns only pages at the end
/// of a heap. Without this call the memory of unloaded sessions stays resident. The call takes some
/// milliseconds for each 100 MB, and threads that allocate may wait as long.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "no library for this call here")]
        // SAFETY: malloc_trim(3) may be called by any thread at any time; allocated memory is not touched.
        unsafe {
            nix::libc::malloc_trim(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::proc::release_free_memory::*;

    #[test]
    fn allocated_memory_survives_release_of_free_memory() {
        let mut blocks: Vec<Vec<u8>> = (0..200).map(|number| vec![number; 10_000]).collect();
        // Free every other block, so that free pages lie between allocated ones.
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        release_free_memory();
        assert_eq!(blocks.len(), 100);
        assert!(blocks.iter().all(|block| block.iter().all(|byte| *byte == block[0])));
    }
}
