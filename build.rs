//! Rebuilds when a migration is added: `sqlx::migrate!` embeds the folder. Writes the o200k tokens in the form that
//! `knowledge/tokens.rs` reads: 1.5 MB instead of the 32 MB of the library's table. Writes the OpenRPC document without
//! indentation, for `rpc.discover`. Compresses both. Makes release programs smaller if the linker supports it.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    shrink_release_programs(Path::new(&folder));

    println!("cargo:rerun-if-changed=proto-docs/openrpc.json");
    let document = std::fs::read_to_string("proto-docs/openrpc.json").expect("the OpenRPC document");
    let lines: Vec<&str> = document.lines().map(str::trim_start).collect();
    write_compressed(&Path::new(&folder).join("openrpc.json"), lines.concat().as_bytes());

    let library = &bpe_openai::o200k_base().bpe;
    let mut table = Vec::new();
    for token in 0..u32::try_from(library.num_tokens()).expect("ids have 32 bits") {
        let bytes = library.token_bytes(token);
        table.push(u8::try_from(bytes.len()).expect("a token has at most 255 bytes"));
        table.extend_from_slice(bytes);
    }
    write_compressed(&Path::new(&folder).join("o200k.tokens"), &table);
}

fn write_compressed(path: &Path, bytes: &[u8]) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory does not fail");
    std::fs::write(path, encoder.finish().expect("memory does not fail")).expect("a file in OUT_DIR");
}

/// Makes the linker merge equal functions (Rust does not promise them different addresses) and pack relative
/// relocations. Not every linker and C library knows both, so a small program must link and run first.
fn shrink_release_programs(folder: &Path) {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if variable("PROFILE") != "release" || variable("TARGET") != variable("HOST") {
        return;
    }
    let source = folder.join("probe.rs");
    std::fs::write(&source, "fn main() {}").expect("a file in OUT_DIR");
    for flag in ["-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"] {
        let program = folder.join("probe");
        let mut rustc = Command::new(variable("RUSTC"));
        rustc.args(variable("CARGO_ENCODED_RUSTFLAGS").split('\x1f').filter(|flag| !flag.is_empty()));
        if let Ok(linker) = std::env::var("RUSTC_LINKER") {
            rustc.arg(format!("-Clinker={linker}"));
        }
        rustc.arg(format!("-Clink-arg={flag}")).arg("-o").arg(&program).arg(&source);
        let is_linked = rustc.output().is_ok_and(|output| output.status.success());
        if is_linked && Command::new(&program).status().is_ok_and(|status| status.success()) {
            println!("cargo:rustc-link-arg-bins={flag}");
        }
    }
}
