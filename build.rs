//! Rebuilds when a migration is added: `sqlx::migrate!` embeds the folder. And writes the table of o200k tokens in
//! the form that `knowledge/tokens.rs` loads and frees; the crate's own copy would stay in memory for ever.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde::Serialize as _;

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let mut file =
        BufWriter::new(File::create(Path::new(&folder).join("o200k.dict")).expect("a file in OUT_DIR"));
    let tokens = &bpe_openai::o200k_base().bpe;
    tokens.serialize(&mut rmp_serde::Serializer::new(&mut file)).expect("the table is plain data");
    file.flush().expect("the table is on disk");
}
