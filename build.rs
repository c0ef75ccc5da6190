//! Rebuilds when a migration is added: `sqlx::migrate!` embeds the folder. And writes the o200k tokens in the form that
//! `knowledge/tokens.rs` reads: 1.5 MB instead of the 32 MB of the library's table.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=build.rs");
    let library = &bpe_openai::o200k_base().bpe;
    let mut table = Vec::new();
    for token in 0..u32::try_from(library.num_tokens()).expect("ids have 32 bits") {
        let bytes = library.token_bytes(token);
        table.push(u8::try_from(bytes.len()).expect("a token has at most 255 bytes"));
        table.extend_from_slice(bytes);
    }
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&folder).join("o200k.tokens"), table).expect("a file in OUT_DIR");
}
