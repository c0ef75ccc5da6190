//! The guard of bypass mode. It stops recursive deletion of the root, the home folder or a folder above
//! the workspace, and writes to the user's SSH and GnuPG keys. It reads the text of the line, as the
//! other checks do. So it does not know the values of variables, or arguments that come through a pipe.

use std::borrow::Cow;

use crate::shell::evaluate::ParsedLine;
use crate::shell::evaluate::collect::CommandView;
use crate::shell::lex::syntax::RedirKind;
use crate::shell::lex::word::{Marks, Word};
use crate::shell::paths::cwd_tracking::PossibleFolders;
use crate::shell::paths::files;
use crate::shell::paths::resolve;
use crate::shell::paths::resolve::{is_in, is_other_tilde, resolve};
use crate::shell::paths::write_targets::WriteTargets;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::call::program_name;
use crate::shell::programs::lookup::{find_records, stem};
use crate::shell::programs::record::FileEffect;

/// Tests of `find` that usually select few files. Without one of them `find / -delete` removes
/// everything.
const FIND_FILTERS: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-empty",
    "-inum",
    "-samefile",
];

impl ParsedLine<'_> {
    /// Why the guard of bypass mode stops this line, if it does.
    pub(crate) fn caught_by_bypass_guard(&self) -> Option<String> {
        let redirected = || {
            self.collected.scripts().iter().zip(&self.cwds).find_map(|(script, cwds)| {
                script.commands.iter().zip(cwds).find_map(|(command, cwds)| {
                    let mut written = command
                        .redirs
                        .iter()
                        .filter(|redir| matches!(redir.kind, RedirKind::Output | RedirKind::Both));
                    written.find(|redir| self.is_key(&redir.target, cwds)).map(|redir| &redir.target)
                })
            })
        };
        let commands = || self.collected.views.iter().find_map(|view| self.caught_command(*view));
        redirected().map(|word| written_key(&word.text)).or_else(commands)
    }

    /// Why the guard stops one command of the line, if it does.
    fn caught_command(&self, view: CommandView) -> Option<String> {
        let words = self.collected.words(view);
        if !self.folders.work_budget.spend(8 + 2 * words.len()) {
            return None;
        }
        let cwds = &self.cwds[view.script()][view.command()];
        if let Some(word) = self.deletes_too_much(words, cwds) {
            return Some(format!("{word} would be deleted with everything in it"));
        }
        let records = find_records(words);
        let none = |_: &str| false;
        let call =
            CommandCall { words, granted_count: 0, outside: &none, work_budget: &self.folders.work_budget };
        let has_option =
            |options: &[&str]| words.iter().any(|word| options.iter().any(|it| word.text.starts_with(it)));
        let program = stem(&words[0].text);
        // With an option such as `sed -i` or `curl -o`, a word is a file that the program writes. Any
        // word of a program with unknown effects may be such a file, except for programs that only use
        // keys.
        let any_writes = match (program, records.effect()) {
            _ if view.runs => false,
            ("ssh-keygen", _) => !has_option(&["-l", "-y", "-F", "-B"]),
            ("curl", _) => has_option(&["-o", "-O", "-c", "-D", "--output", "--cookie-jar", "--dump-header"]),
            ("wget", _) => has_option(&["-O", "-o", "-P", "--output", "--directory-prefix"]),
            (_, FileEffect::Reads) => records.request_reason(&call).is_some(),
            (_, FileEffect::Any) => !USE_KEYS.contains(&program),
            (_, FileEffect::Writes | FileEffect::Copies) => false,
        };
        let written = match records.effect() {
            FileEffect::Writes | FileEffect::Copies => WriteTargets::new(records, words),
            FileEffect::Reads | FileEffect::Any => WriteTargets::None,
        };
        // dd reads the file of `if=`.
        let mut files = words.iter().enumerate().skip(1).filter(|(index, word)| {
            (any_writes || written.is(*index)) && !(program == "dd" && word.text.starts_with("if="))
        });
        files.find(|(_, word)| self.is_key(word, cwds)).map(|(_, word)| written_key(&word.text))
    }

    /// The word that names a folder that must not be deleted with all its content.
    fn deletes_too_much<'w>(&self, words: &'w [Word], cwds: &PossibleFolders) -> Option<&'w str> {
        let operands: Vec<&Word> = match program_name(&words[0].text) {
            "rm" | "grm" if files::is_recursive(words) => {
                words[1..].iter().filter(|word| !word.text.starts_with('-')).collect()
            }
            "find" | "gfind" | "bfs" => find_roots(words)?,
            "rsync" if words.iter().any(|word| word.text.starts_with("--del")) => {
                let is_option = |word: &&Word| word.text.starts_with('-');
                // Skip folders of other machines (`host:path`).
                let is_far =
                    |word: &&Word| word.text.split('/').next().is_some_and(|start| start.contains(':'));
                words[1..]
                    .iter()
                    .filter(|word| !is_option(word))
                    .skip(1)
                    .filter(|word| !is_far(word))
                    .collect()
            }
            _ => return None,
        };
        if operands.is_empty() {
            let is_above = cwds.iter().any(|cwd| self.is_above(cwd));
            return is_above.then_some(words[0].text.as_str());
        }
        operands
            .into_iter()
            .find(|word| {
                self.may_reach(word, cwds, |path| self.is_above(path) || self.may_be_above(word, path))
            })
            .map(|word| word.text.as_str())
    }

    /// Whether `folder` must not be deleted with all its content: it is the root, or it is or contains
    /// the home folder, or it contains a workspace.
    fn is_above(&self, folder: &str) -> bool {
        folder == "/"
            || is_in(&self.folders.home, folder)
            || self.folders.roots().any(|root| root != folder && is_in(root, folder))
    }

    /// Whether a path with wildcards may match the home folder, a folder above it, or a folder above a
    /// workspace.
    fn may_be_above(&self, word: &Word, path: &str) -> bool {
        let depth = path.split('/').filter(|part| !part.is_empty()).count();
        let is_wild = word.marks.has_any(Marks::GLOB) && path.contains(['*', '?', '[']);
        let begin = |folder: &str| -> String {
            folder
                .split('/')
                .filter(|name| !name.is_empty())
                .take(depth)
                .map(|name| format!("/{name}"))
                .collect()
        };
        is_wild
            && std::iter::once(self.folders.home.as_str()).chain(self.folders.roots()).map(begin).any(
                |above| {
                    may_be_in(path, &above) && above.split('/').count() == depth + 1 && self.is_above(&above)
                },
            )
    }

    /// Whether a word, or a path within it, names a folder of keys or a path in one.
    fn is_key(&self, word: &Word, cwds: &PossibleFolders) -> bool {
        let has_wildcards = word.marks.has_any(Marks::GLOB) || word.marks.has_any(Marks::BRACE);
        let of_keys = |path: &str| {
            let keys =
                |folder: &String| if has_wildcards { may_be_in(path, folder) } else { is_in(path, folder) };
            self.folders.key_folders.iter().any(keys)
        };
        self.may_reach(word, cwds, of_keys)
    }

    /// Whether `is` holds for a path that a word may name: the word itself, one of its brace
    /// expansions, or a path within it. If the last component matches every name (`~/*`), its folder is
    /// checked.
    fn may_reach(&self, word: &Word, cwds: &PossibleFolders, is: impl Fn(&str) -> bool) -> bool {
        let own = resolve::candidates(word).into_iter().map(|(text, home)| (Cow::Borrowed(text), home));
        let choices = self.choices(word).into_iter().map(|text| {
            let home = text == "~" || text.starts_with("~/");
            (Cow::Owned(text), home)
        });
        let is_pattern = word.marks.has_any(Marks::GLOB) || word.marks.has_any(Marks::BRACE);
        let is_unquoted = word.marks.has_any(Marks::TILDE) || word.marks.has_any(Marks::BRACE);
        own.chain(choices).filter(|(text, _)| !text.is_empty()).any(|(text, home)| {
            let text = plain_variables(&text, word.marks.has_any(Marks::EXPANDS));
            // `~user`, `~-`: the path is not known, so it may be the home folder as well.
            let other = (is_unquoted && is_other_tilde(&text))
                .then(|| format!("~{}", text.find('/').map_or("", |index| &text[index..])));
            let texts = [Some((&*text, home)), other.as_deref().map(|text| (text, true))];
            texts.into_iter().flatten().any(|(text, home)| {
                cwds.iter().any(|cwd| {
                    let path = resolve(text, home, cwd, self.folders);
                    match path.rfind('/') {
                        Some(index) if is_pattern && files::is_any_name(&path[index + 1..]) => {
                            is(&path[..index.max(1)])
                        }
                        _ => is(&path),
                    }
                })
            })
        })
    }
}

/// Whether a path with wildcards may match `folder` or a path in it.
fn may_be_in(path: &str, folder: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    folder.split('/').filter(|name| !name.is_empty()).all(|name| {
        parts.next().is_some_and(|part| resolve::can_be(part, name, part.contains(['*', '?', '[', '{'])))
    })
}

/// The reason for a word that names a folder of keys, or a path in one.
fn written_key(text: &str) -> String {
    format!("{text} is, or lies in, a folder of keys")
}

/// Programs whose arguments usually name keys to read or use. Options that write a file are not checked, for example
/// `ssh -E FILE`.
const USE_KEYS: &[&str] = &[
    "ssh",
    "ssh-add",
    "ssh-agent",
    "autossh",
    "mosh",
    "sshfs",
    "sftp",
    "git-credential",
    "echo",
    "test",
    "[",
];

/// The text with `${HOME:?}` and similar written as `$HOME`, and without components that are only an
/// unknown variable. Such a variable may be empty, as in `rm -rf ~/$X`.
fn plain_variables(text: &str, expands: bool) -> Cow<'_, str> {
    if !expands && !text.contains('$') {
        return Cow::Borrowed(text);
    }
    // The lexer writes `${HOME:?}` as `$HOME?`.
    let text = text.replace("$HOME?", "$HOME").replace("$PWD?", "$PWD");
    if !expands {
        return Cow::Owned(text);
    }
    let is_known = |part: &str| part == "$HOME" || part == "$PWD";
    let parts = text.split('/').enumerate();
    let known_parts = parts
        .filter(|(index, part)| *index == 0 || !part.starts_with('$') || is_known(part))
        .map(|(_, part)| part);
    let known_parts: Vec<&str> = known_parts.collect();
    Cow::Owned(match known_parts.as_slice() {
        [""] => "/".to_owned(),
        known_parts => known_parts.join("/"),
    })
}

/// The start folders of a `find` that deletes everything that it finds. They are empty if it starts in
/// the working directory.
fn find_roots(words: &[Word]) -> Option<Vec<&Word>> {
    let text = |index: usize| words.get(index).map_or("", |word| word.text.as_str());
    let is_run = |index: usize| matches!(text(index), "-exec" | "-execdir" | "-ok" | "-okdir");
    let removes = |index: usize| match program_name(text(index)) {
        "rm" | "grm" | "unlink" | "shred" => true,
        "sh" | "bash" | "dash" | "zsh" => words[index..].iter().any(|word| word.text.contains("rm ")),
        _ => false,
    };
    let deletes =
        (1..words.len()).any(|index| text(index) == "-delete" || is_run(index) && removes(index + 1));
    let filters = (1..words.len()).any(|index| {
        let is_filter = FIND_FILTERS.contains(&text(index)) && !matches!(text(index - 1), "!" | "-not");
        is_filter && (text(index) == "-empty" || !files::is_any_name(text(index + 1)))
    });
    if !deletes || filters {
        return None;
    }
    let is_root = |word: &&Word| !word.text.starts_with(['-', '(', '!']);
    let is_option = |word: &str| matches!(word, "-H" | "-L" | "-P" | "--" | "-D") || word.starts_with("-O");
    // `-D` has a value.
    let from = (1..words.len())
        .find(|index| !is_option(text(*index)) && text(index - 1) != "-D")
        .unwrap_or(words.len());
    Some(words[from..].iter().take_while(is_root).collect())
}
