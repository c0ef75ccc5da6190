//! Data that `build.rs` compresses into the program.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// The data before its compression.
///
/// # Panics
/// The bytes are not from `build.rs`.
#[must_use]
#[expect(clippy::expect_used, reason = "the bytes are a constant of the program; tests read each of them")]
pub fn decompressed(bytes: &'static [u8]) -> Vec<u8> {
    let mut data = Vec::new();
    ZlibDecoder::new(bytes).read_to_end(&mut data).expect("data of build.rs");
    data
}
