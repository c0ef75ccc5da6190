//! Commands that only look, and only inside the workspace (P3): they pass without a rule.

use super::hatch::{Call, may_become_an_option, rows};
use super::places::{self, Folders};
use super::word::{Marks, Word};

/// What a safe program shows of the files it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// Nothing of them, or no files at all.
    Names,
    /// Their content: files that likely hold secrets ask.
    Content,
}

/// Programs that are safe with any options but those of the table of hatches.
const PROGRAMS: &[(&str, Shows)] = &[
    ("ls", Shows::Names),
    ("pwd", Shows::Names),
    ("basename", Shows::Names),
    ("dirname", Shows::Names),
    ("realpath", Shows::Names),
    ("readlink", Shows::Names),
    ("stat", Shows::Names),
    ("du", Shows::Names),
    ("tree", Shows::Names),
    ("date", Shows::Names),
    ("uname", Shows::Names),
    ("whoami", Shows::Names),
    ("id", Shows::Names),
    ("nproc", Shows::Names),
    ("which", Shows::Names),
    ("type", Shows::Names),
    ("seq", Shows::Names),
    ("test", Shows::Names),
    ("[", Shows::Names),
    ("file", Shows::Content),
    ("cat", Shows::Content),
    ("tac", Shows::Content),
    ("head", Shows::Content),
    ("tail", Shows::Content),
    ("wc", Shows::Content),
    ("nl", Shows::Content),
    ("cut", Shows::Content),
    ("tr", Shows::Content),
    ("rev", Shows::Content),
    ("sort", Shows::Content),
    ("uniq", Shows::Content),
    ("comm", Shows::Content),
    ("cmp", Shows::Content),
    ("diff", Shows::Content),
    ("column", Shows::Content),
    ("md5sum", Shows::Content),
    ("sha1sum", Shows::Content),
    ("sha256sum", Shows::Content),
    ("cksum", Shows::Content),
    ("od", Shows::Content),
    ("fold", Shows::Content),
    // Of its commands only those pass that neither read other files nor write.
    ("sed", Shows::Content),
    ("grep", Shows::Content),
    ("echo", Shows::Names),
    ("printf", Shows::Names),
    ("find", Shows::Names),
];

/// Verbs of git that only look.
const GIT: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "ls-files",
    "blame",
    "describe",
    "shortlog",
    "merge-base",
];

/// Verbs of git that only look when nothing but these options follows.
const GIT_LISTS: &[(&str, &[&str])] = &[
    (
        "branch",
        &["-a", "-r", "-v", "-vv", "-l", "--list", "--all", "--remotes", "--show-current", "--verbose"],
    ),
    ("remote", &["-v", "--verbose"]),
    ("tag", &["-l", "--list"]),
];

/// Options of git that write a file or run a program.
const GIT_HATCHES: &[&str] = &["--output", "--ext-diff", "--textconv", "--open-files-in-pager"];

/// Whether a word is one of these options, with its value or abbreviated.
fn may_be(text: &str, options: &[&str]) -> bool {
    let name = text.split('=').next().unwrap_or(text);
    name.len() > 2 && options.iter().any(|option| option.starts_with(name))
}

/// Whether a simple command may not run without a rule.
pub(super) fn refuses(words: &[Word], cwds: &[String], folders: &Folders) -> bool {
    let name = words[0].text.as_str();
    let literal = words.iter().all(Word::is_literal);
    // They only speak about names.
    if name == "command" {
        return !(literal && words.len() == 3 && matches!(words[1].text.as_str(), "-v" | "-V"));
    }
    if matches!(name, "basename" | "dirname") && literal {
        return false;
    }
    let (shows, from) = if name == "git" {
        let at = if words.get(1).is_some_and(|word| word.text == "--no-pager") { 2 } else { 1 };
        let verb = words.get(at).map_or("", |word| word.text.as_str());
        let lists = GIT_LISTS.iter().any(|(own, options)| {
            *own == verb && words[at + 1..].iter().all(|word| options.contains(&word.text.as_str()))
        });
        // Elsewhere than at its top a workspace may hold another repository, with settings that run programs: content
        // can look like a bare one.
        if cwds.iter().any(|cwd| *cwd != folders.workspace) {
            return true;
        }
        if lists {
            return false;
        }
        if !GIT.contains(&verb) {
            return true;
        }
        (Shows::Content, at + 1)
    } else {
        match PROGRAMS.iter().find(|(own, _)| *own == name) {
            Some((_, shows)) => (*shows, 1),
            None => return true,
        }
    };
    let rest = &words[from..];
    if folders.keeps
        && shows == Shows::Content
        && !spells_out_what_it_shows(name, &words[from - 1].text, rest)
    {
        return true;
    }
    // `tail -f` never ends; recursion would read what is secret.
    let letter = |word: &Word, letters: &[char]| {
        word.text.starts_with('-') && !word.text.starts_with("--") && word.text[1..].contains(letters)
    };
    let stubborn = match name {
        "tail" => rest
            .iter()
            .any(|w| letter(w, &['f', 'F']) || w.text.starts_with("--f") || w.text.starts_with("--retry")),
        "grep" => rest
            .iter()
            .any(|w| letter(w, &['r', 'R', 'f', 'd']) || w.text.starts_with("--") && w.text != "--"),
        // Of folders it shows all files, also those with secrets.
        "diff" => {
            let is_option = |w: &Word| w.text.starts_with('-');
            let is_plain = |w: &Word| {
                !is_option(w) && names_a_file(&w.text)
                    || w.text.starts_with("--color") && !w.text.starts_with("--colorm")
                    || letter(w, &['u', 'y', 'q', 's', 'w', 'b', 'B', 'i', 'E', 'Z', 'a', 'c', 'n', 'e', 'p'])
                        && w.text[1..].bytes().all(|c| b"uyqswbBiEZacnep".contains(&c))
            };
            !rest.iter().all(is_plain)
        }
        // The table of hatches knows these; here they refuse wherever they stand, also as what looks
        // like the value of another option.
        "git" => {
            may_compare_folders(&words[from - 1].text, rest)
                || rest.iter().any(|w| {
                    w.text.starts_with("--no-i") || letter(w, &['O']) || may_be(&w.text, GIT_HATCHES)
                })
        }
        "wc" | "du" => rest.iter().any(|w| w.text.starts_with("--f")),
        // Of a list of names it cannot find it tells each, and so of a table of its own; with `-p` it sets times.
        "file" => rest.iter().any(|w| {
            letter(w, &['f', 'm', 'M', 'C', 'p'])
                || w.text.starts_with("--p")
                || w.text.starts_with("--f")
                || w.text.starts_with("--mag")
        }),
        "sort" => rest.iter().any(|w| w.text.starts_with("--fil")),
        // Complaints about a list of dates, or of names, tell what is in it.
        "find" => rest
            .iter()
            .any(|w| matches!(w.text.as_str(), "-L" | "-H" | "-follow") || w.marks.has(Marks::GLOB)),
        "date" => rest.iter().any(|w| letter(w, &['f']) || w.text.starts_with("--f")),
        "tree" => rest
            .iter()
            .any(|w| ["--f", "--g", "--i", "--hi", "--ho"].iter().any(|begin| w.text.starts_with(begin))),
        _ => false,
    };
    if stubborn {
        return true;
    }
    let outside = |text: &str| is_outside(text, cwds, folders);
    let call = Call { words, granted: from, outside: &outside, meter: &folders.meter };
    if rows(words).asks(&call).is_some() {
        return true;
    }
    let no_path = is_no_path(name, rest);
    rest.iter().enumerate().any(|(at, word)| {
        let text = word.text.as_str();
        if no_path(at) && word.is_literal() {
            return false;
        }
        if word.marks.has(Marks::HOME) || word.marks.has(Marks::TILDE) || word.marks.has(Marks::BRACE) {
            return true;
        }
        if word.marks.has(Marks::GLOB) && text.starts_with('-') && may_become_an_option(word) {
            return true;
        }
        if word.marks.has(Marks::GLOB)
            && (text.starts_with(['.', '*', '?', '[']) && name != "ls"
                || shows == Shows::Content && !is_tame_glob(text))
        {
            return true;
        }
        let mut paths = places::candidates(word, false);
        // `git show HEAD:.env` and `-fFILE` are among them; a pattern of grep is not a path.
        paths.retain(|(path, _)| !path.is_empty());
        paths.iter().any(|(path, home)| {
            *home
                || path.starts_with('/') && !matches!(*path, "/" | "/dev/null") && outside(path)
                || path.split('/').any(|part| part == "..") && outside(path)
                || *path == "/"
                    && !matches!(name, "cut" | "tr" | "echo" | "printf" | "grep" | "basename" | "dirname")
                || shows == Shows::Content && folders.may_be_secret(path)
        })
    })
}

/// Of the words behind a command's name those that are no paths, whatever they look like: what is only said again; the
/// script of sed (of which is asked elsewhere what it does) and the pattern of grep, where they are the first word that
/// is no option, and no option can have given another or taken a word for its value.
fn is_no_path(name: &str, rest: &[Word]) -> impl Fn(usize) -> bool + use<> {
    let is_option = |word: &&Word| word.text.starts_with('-') && word.text.len() > 1;
    let is_plain =
        |word: &Word| word.text[1..].bytes().all(|c| c.is_ascii_alphabetic() && !b"efldmABCDX".contains(&c));
    let reads = matches!(name, "sed" | "grep") && rest.iter().filter(is_option).all(is_plain);
    let first = rest.iter().position(|word| !is_option(&word)).filter(|_| reads);
    let says = matches!(name, "echo" | "printf");
    move |at| says || first == Some(at)
}

/// Whether a command names all that it shows of the content of files. Else that may be what a rule keeps.
fn spells_out_what_it_shows(name: &str, verb: &str, rest: &[Word]) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let tells_names = |word: &Word| {
        let text = word.text.as_str();
        !text.starts_with('-')
            || matches!(text, "--oneline" | "--graph" | "--stat" | "--all" | "--decorate" | "-n")
            || text.strip_prefix('-').is_some_and(is_number)
    };
    match (name, verb) {
        // With `-v` it shows what changed.
        ("git", "status") => {
            let is_verbose = |text: &str| {
                text.starts_with("--v")
                    || !text.starts_with("--") && text.starts_with('-') && text.contains('v')
            };
            !rest.iter().any(|word| is_verbose(&word.text))
        }
        ("git", "rev-parse" | "ls-files" | "describe" | "merge-base") => true,
        ("git", "log") => rest.iter().all(tells_names),
        ("git", _) => false,
        _ => !rest.iter().any(|word| word.marks.has(Marks::GLOB)),
    }
}

/// Whether a path has an ending that folders rarely have.
fn names_a_file(path: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "txt", "json", "jsonl", "toml", "yaml", "yml", "lock", "csv", "tsv", "xml", "sh", "diff", "patch",
        "ini", "cfg", "svg",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, ending)| ending);
    CODE.contains(&ending) || ENDINGS.contains(&ending)
}

/// Whether `git diff` may be of two folders: where there is no repository, it compares what two paths hold, with all
/// that lies below them (git-diff(1), `--no-index`).
fn may_compare_folders(verb: &str, rest: &[Word]) -> bool {
    let is_revision = |text: &str| {
        let name = text.split(['~', '^', ':', '.', '@']).next().unwrap_or_default();
        let is_hash = name.len() >= 7 && name.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        let is_mixed =
            name.bytes().any(|c| c.is_ascii_digit()) && name.bytes().any(|c| c.is_ascii_lowercase());
        name.is_empty() && text.starts_with('@')
            || is_hash && is_mixed
            || name.ends_with("HEAD") && name.bytes().all(|c| c.is_ascii_uppercase() || c == b'_')
    };
    // These take no value, so that what follows is none.
    let is_flag = |text: &str| {
        const FLAGS: &[&str] = &[
            "--",
            "-p",
            "-u",
            "-w",
            "-b",
            "-R",
            "--stat",
            "--cached",
            "--staged",
            "--numstat",
            "--shortstat",
            "--name-only",
            "--name-status",
            "--summary",
            "--no-color",
            "--color",
            "--word-diff",
            "--quiet",
            "--exit-code",
            "--raw",
            "--patience",
            "--minimal",
            "--histogram",
            "--check",
        ];
        let has_value = text.contains('=') || !text.starts_with("--") && text.len() > 2;
        has_value || FLAGS.contains(&text)
    };
    let operands: Vec<(usize, &Word)> =
        rest.iter().enumerate().filter(|(_, word)| !word.text.starts_with('-')).collect();
    let may_be_value = |at: usize| {
        at.checked_sub(1)
            .is_some_and(|before| rest[before].text.starts_with('-') && !is_flag(&rest[before].text))
    };
    // Of more than two it does not compare what they hold. A pattern may be any number; the value of an option, and what
    // may be nothing, are none.
    let certain = operands.iter().filter(|(at, word)| !may_be_value(*at) && word.is_literal()).count();
    let may_be_two =
        operands.len() >= 2 && certain <= 2 || operands.iter().any(|(_, word)| word.marks.has(Marks::GLOB));
    let is_path = |(at, word): &(usize, &Word)| may_be_value(*at) || !is_revision(&word.text);
    verb == "diff"
        && may_be_two
        && operands.iter().all(is_path)
        && operands.iter().any(|(_, word)| !names_a_file(&word.text))
}

/// Endings of files that hold code or prose, whatever their name.
const CODE: &[&str] = &[
    "rs", "py", "go", "ts", "js", "md", "c", "h", "cc", "cpp", "cxx", "hpp", "java", "kt", "rb", "php", "cs",
    "swift", "scala", "tsx", "jsx", "mjs", "cjs", "vue", "svelte", "html", "css", "scss", "sql", "proto",
];

/// Files that lie in every project, and hold no secrets in any.
const MANIFESTS: &[&str] = &["Cargo.toml", "package.json", "tsconfig.json", "pyproject.toml", "Makefile"];

/// A glob with an ending that says what it finds, and that finds no file of secrets.
fn is_tame_glob(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    if text.split('/').any(|part| part.starts_with('.') && part.len() > 1 && part != "..") {
        return false;
    }
    if MANIFESTS.contains(&name) {
        return true;
    }
    let Some((_, ending)) = name.rsplit_once('.') else { return false };
    !ending.is_empty()
        && ending.bytes().all(|c| c.is_ascii_alphanumeric())
        && !places::is_secret(&format!("x.{ending}"))
        && (CODE.contains(&ending) || !text.split('/').any(places::may_be_secret))
}

/// Whether a text names something outside the workspace, from any of the possible folders.
pub(super) fn is_outside(text: &str, cwds: &[String], folders: &Folders) -> bool {
    if text.is_empty() || text == "-" {
        return false;
    }
    if text.starts_with('~') || text.contains("://") || text.contains('$') {
        return true;
    }
    if matches!(text, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr") {
        return false;
    }
    cwds.iter().any(|cwd| !folders.hold(&places::resolve(text, false, cwd, folders)))
}
