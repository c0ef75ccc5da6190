//! What a read-only command reads, to be checked on the disk.

use crate::file_facts::{FileRead, NameRule, ReadKind, Selection, TreeSearch};
use crate::shell::lex::syntax::{RedirKind, SimpleCommand};
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::Folders;
use crate::shell::programs::record::read_only::FileOutput;
use crate::shell::read_only::ReadPaths;
use crate::shell::read_only::names::{is_harmless_glob, is_harmless_with_any_option};

/// The reads of the words, to be checked on the disk.
pub(super) fn reads_of(
    words: &[Word],
    paths: &ReadPaths,
    cwds: &[String],
    folders: &Folders,
) -> Vec<FileRead> {
    let name = words[0].text.as_str();
    let mut reads = Vec::new();
    let kind = match paths.shows {
        FileOutput::Names => ReadKind::Names,
        FileOutput::Content => ReadKind::File,
    };
    // git does not follow links.
    let (values, operands) = match (paths.of_repository, &paths.patches) {
        (true, Some(limits)) => (&[][..], limits.as_slice()),
        (true, None) => (&[][..], if paths.search.is_some() { paths.operands.as_slice() } else { &[] }),
        (false, _) => (paths.values.as_slice(), paths.operands.as_slice()),
    };
    let search = match &paths.patches {
        Some(_) => Some(TreeSearch { selection: Selection::Patches, hidden: true, ..TreeSearch::default() }),
        None => paths.search.clone(),
    };
    let searches_here = paths.searches_here || paths.patches.as_ref().is_some_and(Vec::is_empty);
    for index in values {
        for (path, _) in resolve::candidates(&words[*index]) {
            push_reads(&mut reads, path, &kind, NameRule::Any, cwds);
        }
    }
    for index in operands {
        let word = &words[*index];
        let kind = search.clone().map_or_else(|| kind.clone(), ReadKind::Tree);
        let is_glob = word.marks.has_any(Marks::GLOB);
        let is_pattern = is_glob || paths.of_repository && word.text.contains(['*', '?', '[']);
        if let (true, true, ReadKind::Tree(search)) = (paths.of_repository, is_pattern, &kind) {
            // `*` in a pattern of git matches slashes, too.
            let ending = word.text.strip_prefix("*.").filter(|rest| !rest.contains('/'));
            let includes = ending.map(|_| word.text.clone()).into_iter().collect();
            let search = TreeSearch { includes, ..search.clone() };
            push_reads(&mut reads, ".", &ReadKind::Tree(search), NameRule::Any, cwds);
            continue;
        }
        let from = reads.len();
        push_reads(&mut reads, &word.text, &kind, name_rule(name, word), cwds);
        reads[from..].iter_mut().for_each(|read| read.is_pattern = is_glob);
    }
    if let Some(search) = search.filter(|_| searches_here) {
        push_reads(&mut reads, ".", &ReadKind::Tree(search), NameRule::Any, cwds);
    }
    // A `cd` may have followed a link.
    for cwd in cwds.iter().filter(|cwd| **cwd != folders.workspace) {
        push_reads(&mut reads, ".", &ReadKind::Names, NameRule::Any, std::slice::from_ref(cwd));
    }
    reads
}

/// Adds the reads of a path from each possible folder.
pub(super) fn push_reads(
    reads: &mut Vec<FileRead>,
    path: &str,
    kind: &ReadKind,
    names: NameRule,
    cwds: &[String],
) {
    if matches!(path, "" | "-" | "/dev/null" | "/dev/stdin") {
        return;
    }
    let mut add = |path: String| {
        reads.push(FileRead { path, is_pattern: false, kind: kind.clone(), names });
    };
    match (path.starts_with('/'), path) {
        (true, _) => add(path.to_owned()),
        (false, ".") => cwds.iter().for_each(|cwd| add(cwd.clone())),
        (false, _) => cwds.iter().for_each(|cwd| add(format!("{}/{path}", cwd.trim_end_matches('/')))),
    }
}

/// The condition for the names that a pattern finds.
fn name_rule(name: &str, word: &Word) -> NameRule {
    let text = word.text.as_str();
    // `wc` prints only counts for its files, also for a source file.
    let is_harmless =
        is_harmless_with_any_option(name) || name == "wc" && !text.contains('/') && is_harmless_glob(text);
    if !word.marks.has_any(Marks::GLOB) {
        NameRule::Any
    } else if word.marks.has_any(Marks::SPLIT) || matches!(name, "test" | "[") {
        NameRule::Plain
    } else if text.starts_with(['*', '?', '[']) && !is_harmless {
        NameRule::NoOption
    } else {
        NameRule::Any
    }
}

/// The files that input redirections read.
pub(crate) fn redirected_reads(
    command: &SimpleCommand,
    cwds: &[String],
    folders: &Folders,
) -> Result<Vec<FileRead>, String> {
    let mut reads = Vec::new();
    for redir in command.redirs.iter().filter(|redir| redir.kind == RedirKind::Input) {
        let text = redir.target.text.as_str();
        if folders.may_name_secret(text, cwds) {
            return Err(format!("{text} may hold a secret"));
        }
        push_reads(&mut reads, text, &ReadKind::File, NameRule::Any, cwds);
    }
    Ok(reads)
}
