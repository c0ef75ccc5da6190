//! Entry points of the fuzz targets (`fuzz/`): one function per target takes any bytes and panics if a property
//! does not hold. The tests replay the corpus of the targets (`fuzz/corpus/*.txt`) with the same functions.
//! Releases do not contain this module.

mod corpus;
mod history;

pub use corpus::{Corpus, read};
pub use history::history;

pub use client::fuzz::{escape, screen};
pub use judge::command;
pub use model::fuzz::{answer, count_events, read_answer, sse};
pub use tools::fuzz::{edit, encoding, notebook, patch, path, picture};
pub use transport::fuzz::{dispatch, framing};

/// Checks one input; panics if a property does not hold.
pub type Target = fn(&[u8]);

/// Every target with its name.
pub const TARGETS: &[(&str, Target)] = &[
    ("answer", answer),
    ("command", command),
    ("dispatch", dispatch),
    ("edit", edit),
    ("encoding", encoding),
    ("escape", escape),
    ("framing", framing),
    ("history", history),
    ("notebook", notebook),
    ("patch", patch),
    ("path", path),
    ("picture", picture),
    ("screen", screen),
    ("sse", sse),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;

    use super::*;

    fn folder() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
    }

    /// Replays the corpus of one target.
    fn replay(name: &str) {
        let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target");
        let path = folder().join(format!("corpus/{name}.txt"));
        let text = std::fs::read_to_string(&path).expect("every target has a corpus");
        let corpus = read(&text).expect("a corpus that can be read");
        assert!(corpus.len() >= 10, "the corpus of {name} has {} inputs", corpus.len());
        for (line, input) in corpus {
            if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
                panic!("{}:{line} breaks a property of {name}; the reason is above", path.display());
            }
        }
    }

    #[test]
    fn answer_corpus_satisfies_its_properties() {
        replay("answer");
    }

    #[test]
    fn command_corpus_satisfies_its_properties() {
        replay("command");
    }

    #[test]
    fn dispatch_corpus_satisfies_its_properties() {
        replay("dispatch");
    }

    #[test]
    fn edit_corpus_satisfies_its_properties() {
        replay("edit");
    }

    #[test]
    fn encoding_corpus_satisfies_its_properties() {
        replay("encoding");
    }

    #[test]
    fn path_corpus_satisfies_its_properties() {
        replay("path");
    }

    #[test]
    fn escape_corpus_satisfies_its_properties() {
        replay("escape");
    }

    #[test]
    fn framing_corpus_satisfies_its_properties() {
        replay("framing");
    }

    #[test]
    fn history_corpus_satisfies_its_properties() {
        replay("history");
    }

    #[test]
    fn notebook_corpus_satisfies_its_properties() {
        replay("notebook");
    }

    #[test]
    fn patch_corpus_satisfies_its_properties() {
        replay("patch");
    }

    #[test]
    fn picture_corpus_satisfies_its_properties() {
        replay("picture");
    }

    #[test]
    fn screen_corpus_satisfies_its_properties() {
        replay("screen");
    }

    #[test]
    fn sse_corpus_satisfies_its_properties() {
        replay("sse");
    }

    /// A target that is missing in one of these files would never run, and seem to find nothing.
    #[test]
    fn every_fuzz_target_has_corpus_and_manifest_entry() {
        let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let stems = |sub: &str, ending: &str| -> BTreeSet<String> {
            let files = std::fs::read_dir(folder().join(sub)).expect("a folder");
            let files = files.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
            files.filter_map(|name| Some(name.strip_suffix(ending)?.to_owned())).collect()
        };
        assert_eq!(stems("targets", ".rs"), names);
        assert_eq!(stems("corpus", ".txt"), names);
        let manifest = std::fs::read_to_string(folder().join("Cargo.toml")).expect("a manifest");
        for name in &names {
            assert!(manifest.contains(&format!("path = \"targets/{name}.rs\"")), "{name} is not built");
            let target = std::fs::read_to_string(folder().join(format!("targets/{name}.rs"))).expect("text");
            assert!(target.contains(&format!("agentd::fuzzing::{name}(")), "{name} calls another target");
        }
    }
}
