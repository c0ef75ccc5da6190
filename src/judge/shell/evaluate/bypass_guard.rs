//! What asks even in the mode `bypass`: recursive deletion of the root, the home folder or a folder above the
//! workspace, and writes to the user's SSH and GnuPG keys. It reads the text of the line, as the other checks do:
//! values of variables and arguments that come through a pipe are not known.

use crate::judge::KEY_FOLDERS;
use crate::judge::shell::evaluate::ParsedLine;
use crate::judge::shell::evaluate::collect::View;
use crate::judge::shell::evaluate::pattern::name;
use crate::judge::shell::lex::syntax::RedirKind;
use crate::judge::shell::lex::word::{Marks, Word};
use crate::judge::shell::paths::cwd_tracking::PossibleFolders;
use crate::judge::shell::paths::files;
use crate::judge::shell::paths::resolve;
use crate::judge::shell::paths::resolve::{is_in, resolve};
use crate::judge::shell::paths::write_targets::WriteTargets;
use crate::judge::shell::programs::escape_options::{Call, rows, stem};
use crate::judge::shell::programs::table::FileEffect;

/// Tests of `find` that leave most files alone. Without one of them `find / -delete` removes everything.
const FIND_FILTERS: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-newer",
    "-mtime",
    "-mmin",
    "-ctime",
    "-atime",
    "-size",
    "-empty",
    "-inum",
    "-samefile",
    "-user",
    "-group",
    "-perm",
];

impl ParsedLine<'_> {
    /// Why the guard of `bypass` stops this line, if it does.
    pub(in crate::judge) fn caught_by_bypass_guard(&self) -> Option<String> {
        let redirected = || {
            self.all.scripts().iter().zip(&self.cwds).find_map(|(script, cwds)| {
                script.commands.iter().zip(cwds).find_map(|(command, cwds)| {
                    let mut written = command
                        .redirs
                        .iter()
                        .filter(|redir| matches!(redir.kind, RedirKind::Output | RedirKind::Both));
                    written.find(|redir| self.is_key(&redir.target, cwds)).map(|redir| &redir.target)
                })
            })
        };
        let commands = || self.all.views.iter().find_map(|view| self.caught_command(*view));
        redirected().map(|word| written_key(&word.text)).or_else(commands)
    }

    fn caught_command(&self, view: View) -> Option<String> {
        let words = self.all.words(view);
        if !self.folders.work_budget.spend(8 + 2 * words.len()) {
            return None;
        }
        let cwds = &self.cwds[view.script()][view.command()];
        if let Some(word) = self.deletes_too_much(words, cwds) {
            return Some(format!("{word} would be deleted with everything in it"));
        }
        let rows = rows(words);
        let none = |_: &str| false;
        let call = Call { words, granted: 0, outside: &none, work_budget: &self.folders.work_budget };
        // `sed -i`, `curl -o`, `ssh-keygen -f`: an option makes a word a file that is written.
        let option_writes = match stem(&words[0].text) {
            "ssh-keygen" => true,
            "curl" | "wget" => rows.asks(&call).is_some(),
            _ => rows.kind() == FileEffect::Reads && rows.asks(&call).is_some(),
        };
        let written = match rows.kind() {
            FileEffect::Writes | FileEffect::Copies => WriteTargets::by(rows, words),
            FileEffect::Reads | FileEffect::Tool => WriteTargets::None,
        };
        let mut files = words.iter().enumerate().skip(1).filter(|(at, _)| option_writes || written.is(*at));
        files.find(|(_, word)| self.is_key(word, cwds)).map(|(_, word)| written_key(&word.text))
    }

    /// The word that names what must not be deleted with everything in it.
    fn deletes_too_much<'w>(&self, words: &'w [Word], cwds: &PossibleFolders) -> Option<&'w str> {
        let operands: Vec<&Word> = match name(&words[0].text) {
            "rm" | "grm" if files::is_recursive(words) => {
                words[1..].iter().filter(|word| !word.text.starts_with('-')).collect()
            }
            "find" | "gfind" | "bfs" => find_roots(words)?,
            "rsync" if words.iter().any(|word| word.text.starts_with("--del")) => {
                words[1..].last().into_iter().collect()
            }
            _ => return None,
        };
        if operands.is_empty() {
            let is_above = cwds.iter().any(|cwd| self.is_above(cwd));
            return is_above.then_some(words[0].text.as_str());
        }
        operands
            .into_iter()
            .find(|word| self.comes_to(word, cwds, |path| self.is_above(path)))
            .map(|word| word.text.as_str())
    }

    /// Whether everything below `folder` must not go: the root, the home folder, or what a workspace lies in.
    fn is_above(&self, folder: &str) -> bool {
        folder == "/"
            || is_in(&self.folders.home, folder)
            || self.folders.roots().any(|root| root != folder && is_in(root, folder))
    }

    /// Whether a word, or a path within it, is one of the folders of keys or lies in one.
    fn is_key(&self, word: &Word, cwds: &PossibleFolders) -> bool {
        let home = self.folders.home.trim_end_matches('/');
        let of_keys = |path: &str| {
            let below = path.strip_prefix(home).and_then(|rest| rest.strip_prefix('/'));
            below.is_some_and(|rest| KEY_FOLDERS.iter().any(|own| is_in(rest, own)))
        };
        self.comes_to(word, cwds, of_keys)
    }

    /// Whether a word, one of its choices of braces, or a path within it comes to a path of which `is` holds. A
    /// pattern that matches every name stands for the folder that it is applied in.
    fn comes_to(&self, word: &Word, cwds: &PossibleFolders, is: impl Fn(&str) -> bool) -> bool {
        let mut texts: Vec<(String, bool)> = resolve::candidates(word, false)
            .into_iter()
            .map(|(text, home)| (text.to_owned(), home))
            .collect();
        texts.extend(self.choices(word).into_iter().map(|text| {
            let home = text == "~" || text.starts_with("~/");
            (text, home)
        }));
        let home_name = self.folders.home.rsplit('/').next().unwrap_or_default();
        texts.into_iter().filter(|(text, _)| !text.is_empty()).any(|(text, home)| {
            let mut text = text.replace("${HOME}", "$HOME").replace("${PWD}", "$PWD");
            let mut home = home;
            // `~user`
            if word.marks.has(Marks::TILDE)
                && let Some(rest) = text.strip_prefix('~').and_then(|rest| rest.strip_prefix(home_name))
                && (rest.is_empty() || rest.starts_with('/'))
            {
                text = format!("~{rest}");
                home = true;
            }
            cwds.iter().any(|cwd| {
                let path = resolve(&text, home, cwd, self.folders);
                let last = path.rsplit('/').next().unwrap_or_default();
                let is_pattern = word.marks.has(Marks::GLOB) || word.marks.has(Marks::BRACE);
                let folder = match path.rfind('/') {
                    Some(at) if is_pattern && files::is_any_name(last) => &path[..at.max(1)],
                    _ => path.as_str(),
                };
                is(folder)
            })
        })
    }
}

fn written_key(text: &str) -> String {
    format!("{text} is, or lies in, a folder of keys")
}

/// Where a `find` begins that deletes all that it finds; empty for the working directory.
fn find_roots(words: &[Word]) -> Option<Vec<&Word>> {
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let is_run = |at: usize| matches!(text(at), "-exec" | "-execdir" | "-ok" | "-okdir");
    let removes = |at: usize| matches!(name(text(at)), "rm" | "grm" | "unlink" | "shred");
    let deletes = (1..words.len()).any(|at| text(at) == "-delete" || is_run(at) && removes(at + 1));
    let filters = (1..words.len()).any(|at| {
        let is_filter = FIND_FILTERS.iter().any(|own| text(at) == *own || text(at).starts_with("-newer"));
        is_filter && !files::is_any_name(text(at + 1))
    });
    if !deletes || filters {
        return None;
    }
    let is_root = |word: &&Word| !word.text.starts_with(['-', '(', '!']);
    let options =
        words[1..].iter().take_while(|word| matches!(word.text.as_str(), "-H" | "-L" | "-P")).count();
    Some(words[1 + options..].iter().take_while(is_root).collect())
}
