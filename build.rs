//! Rebuilds when a migration is added: `sqlx::migrate!` embeds the folder. Writes the o200k tokens in the form that
//! `knowledge/tokens.rs` reads: 1.5 MB instead of the 32 MB of the library's table. And writes the OpenRPC document
//! without its indentation, for `rpc.discover`.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");

    println!("cargo:rerun-if-changed=proto-docs/openrpc.json");
    let document = std::fs::read_to_string("proto-docs/openrpc.json").expect("the OpenRPC document");
    let lines: Vec<&str> = document.lines().map(str::trim_start).collect();
    std::fs::write(Path::new(&folder).join("openrpc.json"), lines.concat()).expect("a file in OUT_DIR");

    let library = &bpe_openai::o200k_base().bpe;
    let mut table = Vec::new();
    for token in 0..u32::try_from(library.num_tokens()).expect("ids have 32 bits") {
        let bytes = library.token_bytes(token);
        table.push(u8::try_from(bytes.len()).expect("a token has at most 255 bytes"));
        table.extend_from_slice(bytes);
    }
    std::fs::write(Path::new(&folder).join("o200k.tokens"), table).expect("a file in OUT_DIR");
}
