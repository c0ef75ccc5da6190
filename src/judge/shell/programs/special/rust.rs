//! cargo, rustup and rustc.

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::verb;
use crate::shell::programs::special::{any, reason_for, wrong_after_dashes};

/// Commands of cargo, and of widely used programs for it.
const CARGO_VERBS: &[&str] = &[
    "build",
    "b",
    "check",
    "c",
    "test",
    "t",
    "bench",
    "run",
    "r",
    "doc",
    "d",
    "rustdoc",
    "rustc",
    "clippy",
    "fix",
    "fmt",
    "add",
    "remove",
    "rm",
    "tree",
    "update",
    "metadata",
    "search",
    "info",
    "new",
    "init",
    "clean",
    "generate-lockfile",
    "fetch",
    "vendor",
    "package",
    "publish",
    "install",
    "uninstall",
    "login",
    "logout",
    "owner",
    "yank",
    "locate-project",
    "pkgid",
    "verify-project",
    "version",
    "help",
    "report",
    "config",
    "read-manifest",
    "nextest",
    "llvm-cov",
    "tarpaulin",
    "watch",
    "expand",
    "make",
    "audit",
    "deny",
    "insta",
    "bloat",
    "flamegraph",
    "criterion",
    "zigbuild",
    "xwin",
    "binstall",
    "miri",
    "outdated",
    "machete",
    "hack",
    "udeps",
    "semver-checks",
    "msrv",
    "upgrade",
    "sort",
    "release",
    "fuzz",
    "mutants",
    "geiger",
    "vet",
    "cross",
    "set-version",
    "readme",
    "license",
    "about",
    "depgraph",
    "modules",
    "asm",
    "careful",
    "leptos",
    "tauri",
    "component",
    "lambda",
    "sqlx",
    "dist",
    "workspaces",
    "hakari",
    "spellcheck",
    "rdme",
    "xtask",
    "auditable",
];

/// cargo: `+toolchain` is allowed; the words after `--` belong to another program.
pub(crate) fn cargo(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    let at = verb(words, None)?;
    // A target description names the linker.
    let target = call.ungranted_words().find(|(at, text)| {
        let file = text.strip_prefix("--target=").or((words[at - 1].text == "--target").then_some(*text));
        file.is_some_and(|file| file.contains('/') || file.ends_with(".json"))
    });
    if let Some((_, text)) = target {
        return reason_for(text, "the description of a target may name any linker");
    }
    if let Some(reason) = toolchain(call) {
        return Some(reason);
    }
    let own = crate::shell::programs::lookup::own_verb(words).unwrap_or(at);
    if own >= call.granted
        && !words[own].text.starts_with('-')
        && !CARGO_VERBS.contains(&words[own].text.as_str())
    {
        return reason_for(&words[own].text, "not a command of cargo that is known; it may be any program");
    }
    // After `--`, `cargo clippy` and `cargo rustc` pass options to the compiler.
    if matches!(words[at].text.as_str(), "clippy" | "rustc" | "rustdoc" | "c" | "check" | "doc") {
        return wrong_after_dashes(call, |text, next| {
            let option = if text == "-C" || text == "--codegen" {
                next
            } else {
                text.strip_prefix("-C").map_or("", |option| option.trim_start_matches('='))
            };
            ["linker", "link-arg", "link-args", "pre-link", "dlltool", "profile"]
                .iter()
                .any(|word| option.starts_with(word))
                || text.starts_with("-Z")
                || text.starts_with("--sysroot")
                || text.starts_with("--emit") && text.contains('/')
                || text == "-o"
                || text.starts_with("--out-dir")
                || text.starts_with("--codegen=")
                || text.starts_with("--fix")
                || text.starts_with('@')
                || text.starts_with("--config")
        });
    }
    None
}

/// `cargo fmt -- --config …`; the other arguments of rustfmt select files that it formats and writes.
pub(crate) fn cargo_fmt(call: &CommandCall<'_>) -> Option<String> {
    wrong_after_dashes(call, |text, _| {
        ["--config", "--print-config", "--emit", "@"].iter().any(|begin| text.starts_with(begin))
            || !text.starts_with('-') && (call.outside)(text)
    })
}

/// `cargo test -- --logfile FILE`: the test harness of Rust writes this file.
pub(crate) fn cargo_test(call: &CommandCall<'_>) -> Option<String> {
    wrong_after_dashes(call, |text, _| text.starts_with("--logf"))
}

/// All programs behind rustup accept a leading `+TOOLCHAIN`, which may be a folder (rustup's manual,
/// "Overrides").
pub(crate) fn toolchain(call: &CommandCall<'_>) -> Option<String> {
    any(call, "another toolchain, by its folder", |text| text.starts_with('+') && text.contains('/'))
}

/// rustc: code generation options that name programs, arguments from a file.
pub(crate) fn rustc(call: &CommandCall<'_>) -> Option<String> {
    if let Some(reason) = toolchain(call) {
        return Some(reason);
    }
    let words = call.words;
    call.ungranted_words().find_map(|(at, text)| {
        let next = words.get(at + 1).map_or("", |word| word.text.as_str());
        let option = match text {
            "-C" | "--codegen" => next,
            _ => text
                .strip_prefix("--codegen=")
                .or_else(|| text.strip_prefix("-C"))
                .unwrap_or("")
                .trim_start_matches('='),
        };
        let names_program = ["linker", "link-arg", "link-args", "pre-link", "dlltool", "ar"]
            .iter()
            .any(|w| option.starts_with(w));
        let emits = |text: &str| {
            text.split_once('=')
                .is_some_and(|(_, path)| (call.outside)(path.rsplit('=').next().unwrap_or(path)))
        };
        let before = words[at - 1].text.as_str();
        let leaves = text.starts_with("--emit=") && emits(text.strip_prefix("--emit=").unwrap_or(text))
            || matches!(before, "--emit" | "--extern" | "--print") && emits(text)
            || text.starts_with("--print=") && emits(text.strip_prefix("--print=").unwrap_or(text));
        if names_program || leaves || text.starts_with('@') {
            reason_for(text, "the linker is another program")
        } else {
            None
        }
    })
}
