//! Calls that only print the version of their program.

use std::sync::LazyLock;

use crate::shell::lex::word::Word;
use crate::shell::programs::lookup::stem;
use crate::shell::programs::record::words::Words;

/// The file of these calls.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Versions {
    /// Version managers read these files in the current folder and in all folders above. They name versions,
    /// which may be folders with programs.
    pins: Words,
    version: Vec<VersionCall>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionCall {
    names: Words,
    /// The only word of the call.
    words: Words,
    /// More files that may choose the program that runs instead.
    #[serde(default)]
    pins: Words,
}

static VERSIONS: LazyLock<Versions> = LazyLock::new(|| {
    toml::from_str(include_str!("../programs/data/versions.toml")).expect("a file of records")
});

/// For a call that only prints the version of its program: the files that may choose the program.
pub(super) fn version_pins(words: &[Word]) -> Option<Vec<String>> {
    let [name, word] = words else { return None };
    if !name.is_literal() || !word.is_literal() || name.text.contains('/') {
        return None;
    }
    let mut calls = VERSIONS.version.iter().filter(|call| call.words.has(&word.text));
    let call = calls.find(|call| {
        let is_lowercase = name.text.starts_with(|c: char| c.is_ascii_lowercase());
        is_lowercase && call.names.has(stem(&name.text)) || call.names.has(&name.text)
    })?;
    Some(VERSIONS.pins.iter().chain(call.pins.iter()).map(|pin| (*pin).to_owned()).collect())
}
