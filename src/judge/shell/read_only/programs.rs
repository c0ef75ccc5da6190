//! Read-only programs, which pass without a rule, with their allowed options.
//!
//! Options are those of the manuals of GNU coreutils 9, grep 3, sed 4, diffutils 3, util-linux 2, tree
//! 2, file 5, git 2, ripgrep 14, fd 10, jq 1.7, tar 1.35, binutils 2 and the awks. An unlisted option needs a request. An option is unlisted if it writes, runs
//! something, reads names from a file, or never ends. It is also unlisted if it takes a value in only
//! some versions.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::shell::lex::word::Word;
use crate::shell::programs::lookup::stem;
use crate::shell::programs::option_spec::{OptionSpec, ParsedOptions};
use crate::shell::read_only::search;
use crate::shell::read_only::search::SearchSpec;

/// Output of a program about its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOutput {
    /// Nothing about their content, or the program reads no files.
    Names,
    /// Their content: files that likely contain secrets need a request.
    Content,
}

/// Kinds of operands after the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// Files and folders.
    Paths,
    /// One file; a second would be written.
    One,
    /// None.
    Nothing,
    /// A pattern or a script, unless an option gives it, and files.
    PatternThenPaths,
    /// Texts that name no file.
    Texts,
    /// Numbers of a few digits.
    Numbers,
    /// `+FORMAT`.
    Format,
}

/// A read-only program.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadOnlyProgram {
    names: &'static str,
    pub(super) shows: FileOutput,
    pub(super) operands: Operands,
    pub(super) options: OptionSpec,
    /// Which files below folders it reads.
    pub(super) search: Option<SearchSpec>,
    /// It only reads with one of these options.
    pub(super) needs: &'static [&'static str],
    /// With one of these options it prints names instead of content.
    names_with: &'static [&'static str],
    /// Its output is a list of names.
    pub(super) prints_names: bool,
    /// It needs no pattern.
    pub(super) needs_no_pattern: bool,
    /// Without files it reads its input, if that is a pipe.
    pub(super) reads_pipe: bool,
    /// The dash before its first word may be missing: `tar tf x`.
    has_optional_dash: bool,
    /// Names and signs that no word may contain, because a script with them reaches more than its input.
    /// `.` at the beginning: a name after a dot is harmless.
    never: &'static str,
}

impl ReadOnlyProgram {
    const fn search(mut self, search: SearchSpec) -> Self {
        self.search = Some(search);
        self
    }

    const fn needs(mut self, needs: &'static [&'static str]) -> Self {
        self.needs = needs;
        self
    }

    const fn never(mut self, never: &'static str) -> Self {
        self.never = never;
        self
    }

    /// Whether the call prints names instead of content.
    pub(super) fn lists_names(&self, parts: &ParsedOptions<'_>) -> bool {
        parts.has(self.names_with)
    }

    /// The words with the dash that the first one may lack. Without it, a letter with a value takes the
    /// next word wherever it stands, so that only a last one has the same meaning in both forms.
    pub(super) fn with_dash(&self, words: &[Word]) -> Option<Vec<Word>> {
        let first = words.get(1).filter(|word| self.has_optional_dash && !word.text.starts_with('-'))?;
        let is_same = first.text.find('f').is_none_or(|at| at + 1 == first.text.len());
        let mut dashed = words.to_vec();
        dashed[1].text = format!("-{}", first.text);
        is_same.then_some(dashed)
    }

    /// Whether a word contains something that the program must not get.
    pub(super) fn refuses_text(&self, words: &[Word]) -> bool {
        let (fields_pass, names) = match self.never.strip_prefix(". ") {
            Some(names) => (true, names),
            None => (false, self.never),
        };
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let contains = |text: &str, name: &str| {
            text.match_indices(name).any(|(at, _)| {
                let (before, behind) = (&text[..at], &text[at + name.len()..]);
                let is_field = before.ends_with('.') && !before.ends_with("..");
                let is_whole =
                    !name.chars().all(is_name) || !before.ends_with(is_name) && !behind.starts_with(is_name);
                is_whole && !(fields_pass && is_field)
            })
        };
        names.split_whitespace().any(|name| words[1..].iter().any(|word| contains(&word.text, name)))
    }
}

const fn read_only_program(
    names: &'static str,
    shows: FileOutput,
    operands: Operands,
    letters: &'static str,
    long: &'static str,
) -> ReadOnlyProgram {
    ReadOnlyProgram {
        names,
        shows,
        operands,
        options: OptionSpec { letters, long: [long, NONE] },
        search: None,
        needs: &[],
        names_with: &[],
        prints_names: false,
        needs_no_pattern: false,
        reads_pipe: false,
        has_optional_dash: false,
        never: NONE,
    }
}

use FileOutput::{Content, Names};
use Operands::{Format, Nothing, Numbers, One, Paths, PatternThenPaths, Texts};

const PROGRAMS: &[ReadOnlyProgram] = &[
    read_only_program(
        "ls",
        Names,
        Paths,
        "aAbBcCdfFgGhHiI:klLmnNopqQrRsStT#uUvw#xXZ1",
        "--all --almost-all --author --escape --block-size: --ignore-backups --color? --directory --dired --classify? --file-type --format: --full-time --group-directories-first --no-group --human-readable --si --dereference --dereference-command-line --hide: --hyperlink? --indicator-style: --inode --ignore: --kibibytes --numeric-uid-gid --literal --quote-name --quoting-style: --reverse --recursive --size --sort: --time: --time-style: --tabsize# --width# --zero",
    ),
    read_only_program("pwd", Names, Texts, "LP", "--logical --physical"),
    read_only_program("basename", Names, Texts, "as~z", "--multiple --suffix~ --zero"),
    read_only_program("dirname", Names, Texts, "z", "--zero"),
    read_only_program(
        "realpath",
        Names,
        Paths,
        "eELmPqsz",
        "--canonicalize --canonicalize-existing --canonicalize-missing --logical --physical --quiet --relative-to: --relative-base: --strip --no-symlinks --zero",
    ),
    read_only_program(
        "readlink",
        Names,
        Paths,
        "efmnqsvz",
        "--canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent --verbose --zero",
    ),
    read_only_program(
        "stat",
        Names,
        Paths,
        "c:fLt",
        "--dereference --file-system --format: --printf: --terse",
    ),
    read_only_program(
        "du",
        Names,
        Paths,
        "0aB:bcd#DhHklLmPsSt#x",
        "--all --apparent-size --block-size: --bytes --total --max-depth# --dereference-args --human-readable --inodes --dereference --null --no-dereference --separate-dirs --si --summarize --threshold# --time? --time-style: --exclude: --one-file-system",
    ),
    // Each letter with a value takes the next word, whatever follows it in its own word.
    read_only_program(
        "tree",
        Names,
        Paths,
        "acCdDfFghiI.L.nNpP.qQrsStuUvx",
        "--dirsfirst --filesfirst --noreport --prune --du --si --inodes --device --matchdirs --ignore-case --sort= --timefmt= --charset= --filelimit= --metafirst",
    ),
    // With another kind of operand it sets the clock.
    read_only_program(
        "date",
        Names,
        Format,
        "uRI?d:r:",
        "--date: --utc --universal --rfc-email --rfc-3339= --iso-8601? --reference: --debug",
    ),
    read_only_program(
        "uname",
        Names,
        Texts,
        "asnrvmpio",
        "--all --kernel-name --nodename --kernel-release --kernel-version --machine --processor --hardware-platform --operating-system",
    ),
    read_only_program("whoami", Names, Texts, "", ""),
    read_only_program(
        "id",
        Names,
        Texts,
        "agGnruzZ",
        "--group --groups --name --real --user --zero --context",
    ),
    read_only_program("nproc", Names, Texts, "", "--all --ignore#"),
    read_only_program("which", Names, Paths, "a", NONE),
    read_only_program("type", Names, Paths, "aftpP", ""),
    read_only_program("seq", Names, Numbers, "#s~w", "--separator~ --equal-width"),
    read_only_program(
        "file",
        Content,
        Paths,
        "bhikLnNr0F~",
        "--brief --dereference --no-dereference --extension --keep-going --mime --mime-type --mime-encoding --no-buffer --no-pad --print0 --raw --separator~",
    ),
    read_only_program(
        "cat",
        Content,
        Paths,
        "AbeEnstTuv",
        "--show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting",
    ),
    read_only_program("tac", Content, Paths, "brs~", "--before --regex --separator~"),
    read_only_program(
        "head",
        Content,
        Paths,
        "#c#n#qvz",
        "--bytes# --lines# --quiet --silent --verbose --zero-terminated",
    ),
    // `-f` never ends.
    read_only_program(
        "tail",
        Content,
        Paths,
        "#c#n#qvz",
        "--bytes# --lines# --quiet --silent --verbose --zero-terminated",
    ),
    read_only_program(
        "wc",
        Content,
        Paths,
        "clLmw",
        "--bytes --chars --lines --max-line-length --words --total=",
    ),
    read_only_program(
        "nl",
        Content,
        Paths,
        "b~d~f~h~i#l#n:ps~v#w#",
        "--body-numbering~ --section-delimiter~ --footer-numbering~ --header-numbering~ --line-increment# --join-blank-lines# --number-format: --no-renumber --number-separator~ --starting-line-number# --number-width#",
    ),
    read_only_program(
        "cut",
        Content,
        Paths,
        "b:c:d~f:nsz",
        "--bytes: --characters: --delimiter~ --fields: --complement --only-delimited --output-delimiter~ --zero-terminated",
    ),
    read_only_program("tr", Names, Texts, "cCdst", "--complement --delete --squeeze-repeats --truncate-set1"),
    read_only_program("rev", Content, Paths, "", ""),
    read_only_program(
        "sort",
        Content,
        Paths,
        "bcCdfghik:MmnrRst~uVz",
        "--ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse --sort= --version-sort --check? --debug --key: --merge --stable --field-separator~ --unique --zero-terminated",
    ),
    read_only_program(
        "uniq",
        Content,
        One,
        "cdDf#is#uw#z",
        "--count --repeated --all-repeated? --skip-fields# --group? --ignore-case --skip-chars# --unique --zero-terminated --check-chars#",
    ),
    read_only_program(
        "comm",
        Content,
        Paths,
        "123z",
        "--check-order --nocheck-order --output-delimiter= --total --zero-terminated",
    ),
    read_only_program(
        "cmp",
        Content,
        Paths,
        "bi:ln#s",
        "--print-bytes --ignore-initial: --verbose --bytes# --quiet --silent",
    ),
    read_only_program(
        "diff",
        Content,
        Paths,
        "abBcC#deEiI~nNpqrstTuU#wW#x~yZ",
        "--recursive --new-file --no-dereference --exclude~ --normal --brief --report-identical-files --context? --unified? --ed --rcs --side-by-side --width# --left-column --suppress-common-lines --show-c-function --expand-tabs --initial-tab --ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines~ --text --strip-trailing-cr --minimal --speed-large-files --color?",
    )
    .search(search::DIFF),
    read_only_program("column", Content, Paths, "c#o~s~tx", "--table --separator~ --output-separator~"),
    read_only_program(
        "md5sum|sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum",
        Content,
        Paths,
        "btz",
        "--binary --tag --text --zero",
    ),
    read_only_program("cksum", Content, Paths, "", "--untagged --tag --zero"),
    read_only_program(
        "od",
        Content,
        Paths,
        "A:abcdfij#lN#ost:vx",
        "--address-radix: --skip-bytes# --read-bytes# --format: --output-duplicates --width?",
    ),
    read_only_program("fold", Content, Paths, "#bcsw#", "--bytes --characters --spaces --width#"),
    // The table of escape options decides which of its scripts pass.
    read_only_program(
        "sed",
        Content,
        PatternThenPaths,
        "e~Enrsuz",
        "--expression~ --regexp-extended --quiet --silent --separate --unbuffered --null-data --posix --debug --sandbox",
    ),
    read_only_program(
        "grep|egrep|fgrep",
        Content,
        PatternThenPaths,
        "#A#aB#bC#cEe~FGhHiIlLm#noPqrRsTUvwxyZz",
        "--after-context# --before-context# --context# --text --byte-offset --color? --colour? --count --extended-regexp --regexp~ --fixed-strings --basic-regexp --perl-regexp --no-filename --with-filename --ignore-case --no-ignore-case --files-with-matches --files-without-match --max-count# --line-number --only-matching --quiet --silent --no-messages --initial-tab --invert-match --word-regexp --line-regexp --null --null-data --recursive --dereference-recursive --include~ --exclude~ --exclude-dir~ --binary-files~",
    )
    .search(search::GREP),
    ReadOnlyProgram {
        names_with: &["--files", "--type-list"],
        reads_pipe: true,
        ..read_only_program(
            "rg|ripgrep",
            Content,
            PatternThenPaths,
            "#A#aB#bC#cd#E~e~FHg~Iij#LlM#m#NnoPpqr~Sst~UuvwxT~0",
            "--after-context# --auto-hybrid-regex --before-context# --binary --byte-offset --case-sensitive --color~ --colors~ --column --context# --context-separator~ --count --count-matches --crlf --encoding~ --engine~ --files --files-with-matches --files-without-match --fixed-strings --follow --glob~ --heading --hidden --ignore-case --include-zero --invert-match --json --line-number --line-regexp --max-columns# --max-columns-preview --max-count# --max-depth# --max-filesize~ --mmap --multiline --multiline-dotall --no-config --no-filename --no-heading --no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-parent --no-ignore-vcs --no-line-number --no-messages --no-mmap --no-unicode --null --null-data --one-file-system --only-matching --passthru --pcre2 --pretty --quiet --regexp~ --replace~ --smart-case --sort~ --sortr~ --stats --text --threads# --trim --type~ --type-list --type-not~ --unrestricted --vimgrep --with-filename --word-regexp",
        )
        .search(search::RIPGREP)
    },
    // It prints names only.
    ReadOnlyProgram {
        prints_names: true,
        needs_no_pattern: true,
        ..read_only_program(
            "fd|fdfind",
            Names,
            PatternThenPaths,
            "ac~d#E~e~FgHIij#psS~t~u01",
            "--absolute-path --and~ --case-sensitive --changed-after~ --changed-before~ --changed-within~ --color~ --exact-depth# --exclude~ --extension~ --fixed-strings --full-path --glob --hidden --ignore-case --max-depth# --max-results# --min-depth# --no-ignore --no-ignore-parent --no-ignore-vcs --one-file-system --print0 --prune --quiet --regex --relative-path --show-errors --size~ --strip-cwd-prefix --threads# --type~ --unrestricted",
        )
        .search(search::FD)
    },
    read_only_program(
        "jq",
        Content,
        PatternThenPaths,
        "acCejMnrRsS",
        "--arg& --argjson& --ascii-output --color-output --compact-output --exit-status --indent# --join-output --monochrome-output --null-input --raw-input --raw-output --raw-output0 --seq --slurp --sort-keys --stream --tab",
    )
    .never(". env ENV input_filename import include modulemeta get_search_list __prog_args __loc__"),
    // The table of escape options decides which of its programs pass.
    read_only_program(
        "awk|gawk|mawk|nawk",
        Content,
        PatternThenPaths,
        "F~v~",
        "--field-separator~ --assign~ --posix --csv --re-interval",
    )
    .never("ENVIRON ARGV PROCINFO SYMTAB FUNCTAB"),
    read_only_program("free", Names, Nothing, "bghklmtvw", "--bytes --kibi --mebi --gibi --kilo --mega --giga --human --lohi --total --wide --si"),
    read_only_program("df", Names, Paths, "ahHiklPTx~t~", "--all --human-readable --si --inodes --local --portability --print-type --total"),
    read_only_program("uptime", Names, Nothing, "ps", "--pretty --since"),
    read_only_program("xxd", Content, One, "abc#Cdeg#il#o#ps#u", NONE),
    read_only_program(
        "hexdump|hd",
        Content,
        Paths,
        "bcCdn#os#vx",
        "--canonical --no-squeezing --length# --skip#",
    ),
    read_only_program(
        "strings",
        Content,
        Paths,
        "#ae~fn#ot~ws~",
        "--all --bytes# --encoding~ --print-file-name --radix~ --include-all-whitespace",
    )
    .never("@"),
    read_only_program("readelf|nm|size", Content, Paths, "aACdDeghlnrsStuWw", "--all --demangle? --dynamic --headers --sections --segments --symbols --syms --wide --file-header --program-headers --section-headers --defined-only --undefined-only --extern-only --numeric-sort --size-sort").never("@"),
    read_only_program("paste", Content, Paths, "d~sz", "--delimiters~ --serial --zero-terminated"),
    read_only_program("join", Content, Paths, "a#e~ij#o~t~v#1#2#z", "--ignore-case --check-order --nocheck-order --header"),
    read_only_program("expand|unexpand", Content, Paths, "ait~", "--initial --tabs~ --all --first-only"),
    read_only_program("base64|base32", Content, One, "diw#", "--decode --ignore-garbage --wrap#"),
    // With `-x`, `-c`, `-r`, `-u`, `-A` or `-d` it writes. A name with a colon is on another machine.
    ReadOnlyProgram {
        has_optional_dash: true,
        ..read_only_program("tar|gtar", Content, Paths, "f:jJtvz", "--list --file: --gzip --bzip2 --xz --verbose --zstd")
            .needs(&["t", "--list"])
            .never(":")
    },
    read_only_program("unzip", Content, Paths, "1hlqtTvzZ", NONE).needs(&["l", "t", "v", "z", "Z"]),
    read_only_program("zipinfo", Content, Paths, "12hlmstTvz", NONE),
];

/// Programs that print their version: names, the only word of the call, and files that may choose the
/// program that runs instead, besides [`PINS`].
const VERSIONS: &[(&str, &str, &str)] = &[
    ("python|pip", "--version -V", NONE),
    ("node|npm|npx|ruby|gem|perl|php|lua|deno|bun", "--version -v", NONE),
    ("java|javac|kotlin", "--version -version", NONE),
    (
        "gcc|g++|cc|c++|clang|clang++|ld|make|cmake|ctest|ninja|meson|git|docker|podman|tsc|bash|zsh|curl|wget|jq|rg|fd|psql|mysql|sqlite3|uv|ruff|black|tar|gzip|sed|awk|grep|find|protoc|ffmpeg|pandoc|ghc|swift|zig|nim|dart|elixir|julia|ocaml|terraform|kubectl|helm|gh",
        "--version",
        NONE,
    ),
    ("git|docker", "version", NONE),
    ("go", "version", "go.mod go.work"),
    (
        "cargo|rustc|rustup|rustfmt|clippy-driver|rust-analyzer|cargo-clippy",
        "--version -V",
        "rust-toolchain rust-toolchain.toml",
    ),
    ("dotnet", "--version", NONE),
    ("mvn", "--version -v", ".mvn"),
];

/// Version managers read these files in the current folder and in all folders above. They name versions,
/// which may be folders with programs.
const PINS: &str = ".tool-versions mise.toml .mise.toml mise.local.toml .mise.local.toml .mise mise/config.toml .config/mise.toml .config/mise/config.toml .rtx.toml .prototools aqua.yaml .aqua.yaml .sdkmanrc .nvmrc .fvmrc .fvm .dvmrc .zigversion global.json .python-version .node-version .ruby-version .rbenv-version .java-version .go-version .terraform-version .opentofu-version .perl-version .php-version .lua-version .swift-version .elixir-version .exenv-version .erlang-version .kotlin-version .deno-version .bun-version .helm-version .kubectl-version .julia-version .dart-version .zig-version .nim-version .ghc-version .ocaml-version";

/// For a call that only prints the version of its program: the files that may choose the program.
pub(super) fn version_pins(words: &[Word]) -> Option<Vec<String>> {
    let [name, word] = words else { return None };
    let is_in = |list: &str, sign: char, text: &str| list.split(sign).any(|own| own == text);
    let mut known = VERSIONS.iter().filter(|(_, options, _)| is_in(options, ' ', &word.text));
    let is_plain = name.is_literal() && word.is_literal() && !name.text.contains('/');
    let found = known.find(|(names, ..)| {
        let versioned =
            name.text.starts_with(|c: char| c.is_ascii_lowercase()) && is_in(names, '|', stem(&name.text));
        versioned || is_in(names, '|', &name.text)
    });
    let (.., pins) = found.filter(|_| is_plain)?;
    Some(PINS.split(' ').chain(pins.split_whitespace()).map(str::to_owned).collect())
}

/// The entry of a program.
pub(super) fn program(name: &str) -> Option<&'static ReadOnlyProgram> {
    static INDEX: LazyLock<FxHashMap<&str, &ReadOnlyProgram>> = LazyLock::new(|| {
        let mut index = FxHashMap::default();
        for row in PROGRAMS {
            for name in row.names.split('|') {
                index.entry(name).or_insert(row);
            }
        }
        index
    });
    INDEX.get(name).copied()
}

/// Options that select how a change is shown.
const CHANGES: &str = "--patch --no-patch --stat? --numstat --shortstat --summary --compact-summary --name-only --name-status --raw --minimal --patience --histogram --diff-algorithm= --word-diff? --word-diff-regex= --color? --no-color --color-words? --color-moved? --no-color-moved --no-renames --find-renames? --find-copies? --find-copies-harder --irreversible-delete --check --full-index --binary --abbrev? --no-abbrev --diff-filter= --pickaxe-all --pickaxe-regex --ignore-space-at-eol --ignore-cr-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --inter-hunk-context= --unified= --function-context --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules? --src-prefix= --dst-prefix= --no-prefix --text --output-indicator-new= --output-indicator-old= --output-indicator-context= --relative";

/// Options that select which commits are shown, and how.
const COMMITS: &str = "--oneline --graph --all --decorate? --no-decorate --abbrev-commit --no-abbrev-commit --pretty? --format= --author~ --committer~ --grep~ --all-match --invert-grep --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --since: --until: --after: --before: --max-count# --skip# --merges --no-merges --first-parent --reverse --date: --relative-date --follow --branches? --tags? --remotes? --topo-order --date-order --author-date-order --left-right --left-only --right-only --cherry-pick --cherry-mark --cherry --full-history --simplify-by-decoration --simplify-merges --boundary --ancestry-path? --parents --children --walk-reflogs --no-walk? --not --cc --no-notes --show-pulls --source";

/// Option letters for both.
const LETTERS: &str = "#abB?C?EFgG~iL:mM?n#pPRsS~tuU?wWz";

const NONE: &str = "";

/// A read-only verb of git.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verb {
    name: &'static str,
    pub(super) options: OptionSpec,
    pub(super) operands: OperandKinds,
    /// It shows names of files, not their content.
    pub(super) lists_names: bool,
}

/// Kinds of operands of a git verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandKinds {
    /// Revisions and paths.
    Shown,
    /// A pattern, then revisions and paths.
    Searched,
    /// Names and patterns of names, together with one of these options; without an option, the verb
    /// creates something.
    Listed(&'static [&'static str]),
}

const fn verb(name: &'static str, letters: &'static str, long: [&'static str; 2]) -> Verb {
    Verb { name, options: OptionSpec { letters, long }, operands: OperandKinds::Shown, lists_names: false }
}

const fn lists(
    name: &'static str,
    letters: &'static str,
    long: &'static str,
    flags: &'static [&'static str],
) -> Verb {
    Verb { operands: OperandKinds::Listed(flags), ..verb(name, letters, [long, NONE]) }
}

/// With one of these options `branch` and `tag` list, whatever follows (git-branch(1), git-tag(1)).
/// Before git 2.19 `branch -l` created a branch.
const LIST: &[&str] = &["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
const LIST_TAGS: &[&str] =
    &["l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];

const GIT: &[Verb] = &[
    verb(
        "status",
        "bsu?vz",
        [
            "--short --branch --porcelain? --long --verbose --show-stash --untracked-files? --ignored? --null --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames? --ignore-submodules?",
            NONE,
        ],
    ),
    verb("log", LETTERS, [COMMITS, CHANGES]),
    verb("show", LETTERS, [COMMITS, CHANGES]),
    verb("diff", LETTERS, [CHANGES, "--cached --staged --merge-base"]),
    verb("shortlog", "#censw?", [COMMITS, "--numbered --summary --email --group="]),
    verb(
        "blame",
        "bcC?eflL:M?npstw",
        [
            "--root --show-stats --porcelain --line-porcelain --incremental --show-name --show-number --show-email --date: --since: --abbrev? --first-parent --color-lines --color-by-age --no-progress --minimal",
            NONE,
        ],
    ),
    verb(
        "describe",
        NONE,
        [
            "--all --tags --contains --abbrev? --candidates= --exact-match --debug --long --match= --exclude= --always --first-parent --dirty?",
            NONE,
        ],
    ),
    verb("merge-base", "a", ["--all --octopus --independent --is-ancestor --fork-point", NONE]),
    verb(
        "rev-parse",
        "q",
        [
            "--verify --quiet --revs-only --no-revs --flags --no-flags --short? --abbrev-ref? --symbolic --symbolic-full-name --all --branches? --tags? --remotes? --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir --is-inside-git-dir --is-inside-work-tree --is-bare-repository --is-shallow-repository --show-superproject-working-tree --show-object-format",
            NONE,
        ],
    ),
    verb(
        "ls-files",
        "cdfikmostuvz",
        [
            "--cached --deleted --modified --others --ignored --stage --directory --no-empty-directory --unmerged --killed --exclude-standard --error-unmatch --full-name --abbrev? --debug --eol --deduplicate --resolve-undo",
            NONE,
        ],
    ),
    verb("rev-list", "#n#", [COMMITS, "--count --objects --no-object-names"]),
    verb(
        "ls-tree",
        "drtlz",
        ["--name-only --name-status --object-only --full-name --full-tree --long --abbrev?", NONE],
    ),
    verb(
        "stash list",
        "#n#",
        ["--oneline --stat --name-only --name-status --format= --pretty? --date:", NONE],
    ),
    Verb {
        operands: OperandKinds::Searched,
        ..verb(
            "grep",
            "#A#aB#C#cEe~FGhHIiLlm#noPpqvWwz",
            [
                "--after-context# --all-match --and --basic-regexp --before-context# --break --cached --color? --column --context# --count --extended-regexp --files-with-matches --files-without-match --fixed-strings --full-name --function-context --heading --ignore-case --invert-match --line-number --max-count# --max-depth# --name-only --no-color --not --null --only-matching --or --perl-regexp --quiet --show-function --text --threads# --word-regexp",
                NONE,
            ],
        )
    },
    verb("cat-file", "epst", [NONE, NONE]),
    Verb {
        lists_names: true,
        ..verb("check-ignore", "nqvz", ["--quiet --verbose --non-matching --no-index", NONE])
    },
    verb("reflog show", "#n#", [COMMITS, NONE]),
    Verb { operands: OperandKinds::Listed(&[]), ..verb("reflog", "#n#", [COMMITS, NONE]) },
    verb(
        "show-ref",
        "dhqs?",
        ["--branches --heads --tags --head --dereference --hash? --abbrev? --quiet --verify", NONE],
    ),
    verb(
        "for-each-ref",
        NONE,
        ["--count= --points-at= --merged? --no-merged? --contains? --no-contains? --ignore-case", NONE],
    ),
    verb("name-rev", NONE, ["--tags --name-only --always", NONE]),
    verb("count-objects", "Hv", ["--human-readable --verbose", NONE]),
    verb("worktree list", "vz", ["--verbose --porcelain", NONE]),
    lists(
        "branch",
        "alrv",
        "--list --all --remotes --show-current --verbose --contains? --no-contains? --merged? --no-merged? --points-at= --color? --no-color --no-column --no-abbrev --ignore-case",
        LIST,
    ),
    lists("remote", "v", "--verbose", &[]),
    lists(
        "tag",
        "ln?",
        "--list --contains? --no-contains? --merged? --no-merged? --points-at= --no-column --color? --ignore-case",
        LIST_TAGS,
    ),
];

/// The entry of a git verb.
pub(super) fn git(name: &str) -> Option<&'static Verb> {
    GIT.iter().find(|row| row.name == name)
}

/// The entry of a verb of two words: `stash list`.
pub(super) fn git_in_two(first: &str, second: &str) -> Option<&'static Verb> {
    GIT.iter().find(|row| row.name.split_once(' ') == Some((first, second)))
}
