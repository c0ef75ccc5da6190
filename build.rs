//! Makes release programs smaller if the linker supports it.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=AGENTD_PORTABLE");
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    shrink_release_programs(Path::new(&folder));
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
    // Packed relocations need glibc 2.36. Packages run on machines with an older one.
    let is_portable = std::env::var_os("AGENTD_PORTABLE").is_some();
    let flags: &[&str] = match is_portable {
        true => &["-Wl,--icf=all"],
        false => &["-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"],
    };
    for flag in flags {
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
