//! Writes the o200k tokens in the form that `tokens.rs` reads: 1.5 MB compressed instead of the 32 MB of the library's
//! table.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let library = &bpe_openai::o200k_base().bpe;
    let mut table = Vec::new();
    for token in 0..u32::try_from(library.num_tokens()).expect("ids have 32 bits") {
        let bytes = library.token_bytes(token);
        table.push(u8::try_from(bytes.len()).expect("a token has at most 255 bytes"));
        table.extend_from_slice(bytes);
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&table).expect("memory does not fail");
    let bytes = encoder.finish().expect("memory does not fail");
    std::fs::write(Path::new(&folder).join("o200k.tokens"), bytes).expect("a file in OUT_DIR");
}
