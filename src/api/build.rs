//! Writes the OpenRPC document without indentation and compressed, for `rpc.discover`.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;

const DOCUMENT: &str = "../../proto-docs/openrpc.json";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={DOCUMENT}");
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let document = std::fs::read_to_string(DOCUMENT).expect("the OpenRPC document");
    let lines: Vec<&str> = document.lines().map(str::trim_start).collect();
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(lines.concat().as_bytes()).expect("memory does not fail");
    let bytes = encoder.finish().expect("memory does not fail");
    std::fs::write(Path::new(&folder).join("openrpc.json"), bytes).expect("a file in OUT_DIR");
}
