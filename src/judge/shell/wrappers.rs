//! Programs that run the command they are given.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::hatch::{is_understood, own_verb, stem};
use super::through::{Through, through};
use super::word::Word;

/// What a command runs beyond itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Inside {
    /// Where commands begin among its words.
    pub(super) at: Vec<usize>,
    /// Texts that a shell will read.
    pub(super) texts: Vec<String>,
    /// More words come from elsewhere (`xargs`), or what runs is not literal.
    pub(super) open: bool,
    /// It runs something that the words do not show.
    pub(super) hidden: bool,
    /// Whether it is a program of this kind at all.
    pub(super) runs: bool,
    /// Where commands may begin, if the program is of this kind or its options are other than we think.
    pub(super) maybe: Vec<usize>,
}

/// Programs that run a command: options with a value, words between the options and the command.
const RUNNERS: &[(&str, &str, usize)] = &[
    ("sudo", "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot", 0),
    ("doas", "-u -C", 0),
    ("env", "-u -C -S --unset --chdir", 0),
    ("nice", "-n --adjustment", 0),
    ("ionice", "-c -n -p --class --classdata", 0),
    ("timeout", "-s -k --signal --kill-after", 1),
    ("time", "-f -o --format --output", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("stdbuf", "-i -o -e --input --output --error", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("exec", "-a", 0),
    ("xargs", XARGS_VALUES, 0),
    ("strace", "-e -o -p -s -u -a -b -E -I -O -P -S -X", 0),
    ("ltrace", "-e -o -p -s -u -a -l -n", 0),
    ("valgrind", "", 0),
    ("chroot", "", 1),
    ("unshare", "-R -w -S -G", 0),
    ("nsenter", "-t -S -G", 0),
    ("chrt", "-T -P -D -p", 1),
    ("taskset", "-p", 1),
    ("numactl", "-N -m -i -C", 0),
    ("setarch", "", 1),
    ("linux32", "", 0),
    ("linux64", "", 0),
    ("prlimit", "-p", 0),
    ("systemd-run", "-u -p -t -E --unit --property --setenv --uid --gid", 0),
    ("systemd-inhibit", "", 0),
    ("firejail", "", 0),
    ("unbuffer", "", 0),
    ("runuser", "-u -g -G -c -s", 0),
    ("setpriv", "", 0),
    ("capsh", "", 0),
    ("pkexec", "--user", 0),
    ("gosu", "", 1),
    ("su-exec", "", 1),
    ("dumb-init", "", 0),
    ("tini", "-p -e", 0),
    ("catchsegv", "", 0),
    ("caffeinate", "-t -w", 0),
    ("fakeroot", "-l -s -i -f", 0),
    ("proot", "-r -b -w", 0),
    ("eatmydata", "", 0),
    ("proxychains", "-f", 0),
    ("torsocks", "", 0),
    ("dbus-run-session", "", 0),
    ("xvfb-run", "-n -s -e -f -p -w", 0),
    ("chronic", "", 0),
    ("ifne", "", 0),
    ("errno", "", 0),
    ("busybox", "", 0),
    ("toybox", "", 0),
    ("ssh-agent", "-a -t", 0),
    ("cross-env", "", 0),
    ("dotenv", "-e -f -c", 0),
    ("aws-vault", "", 2),
    ("perf", "-e -o -p -F", 1),
    ("gdb", "-x -ex -p -iex -ix", 0),
    ("lldb", "-o -s -S -O", 0),
    ("rr", "", 1),
    ("entr", "", 0),
    ("watchexec", "-w -e -i -f", 0),
    ("cpulimit", "-l -e -p", 0),
    ("softlimit", "", 0),
    ("chpst", "-u -U -/ -n -m -d", 0),
    ("setuidgid", "", 1),
    ("envdir", "", 1),
    ("start-stop-daemon", "-p -n -u -c", 0),
    ("npx", "-p --package", 0),
    ("bunx", "", 0),
    ("uvx", "--from --with -p", 0),
    ("pnpx", "", 0),
    ("xcrun", "--sdk", 0),
];

pub(super) const XARGS_VALUES: &str = "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-lines --max-args \
    --max-procs --max-chars --replace --process-slot-var";

/// Programs that always run something else, found by their name alone; none of their arguments
/// is looked at but for texts.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "rbash"];

/// Runners of which only the name is known.
const OTHERS: &[&str] = &[
    "parallel",
    "sem",
    "watch",
    "ssh",
    "mosh",
    "autossh",
    "sshpass",
    "su",
    "script",
    "flock",
    "eval",
    "source",
    ".",
    "trap",
    "expect",
    "tmux",
    "screen",
    "at",
    "batch",
    "bwrap",
    "nix-shell",
    "hyperfine",
    "reflex",
    "nodemon",
    "concurrently",
    "run-parts",
    "socat",
    "ncat",
    "osascript",
    "adb",
    "distrobox",
    "toolbox",
    "lxc",
    "machinectl",
    "ansible",
    "ansible-playbook",
    "pdsh",
    "fabric",
    "fab",
    "invoke",
    "mux",
    "coproc",
    "direnv",
    "mise",
    "asdf",
    "op",
    "doppler",
    "chamber",
    "act",
    "ccache",
    "sccache",
    "distcc",
    "icecc",
    "bear",
    "scan-build",
    "mpirun",
    "mpiexec",
    "srun",
    "proxychains4",
    "proxychains-ng",
    "tsocks",
    "torify",
    "trickle",
    "faketime",
    "rlwrap",
    "cgexec",
    "execlineb",
    "foreground",
    "logsave",
    "pee",
    "mispipe",
    "lckdo",
    "zrun",
    "daemon",
    "daemonize",
    "nq",
    "tsp",
    "gtime",
    "gtimeout",
    "gnice",
    "gxargs",
    "genv",
    "gnohup",
    "gstdbuf",
    "gchroot",
    "schroot",
    "arch-chroot",
    "systemd-nspawn",
    "systemd-cat",
    "systemd-socket-activate",
    "run0",
    "pidproxy",
    "dtach",
    "abduco",
    "zellij",
    "cset",
    "aa-exec",
    "runcon",
    "sg",
    "sandbox-exec",
    "minijail0",
    "nsjail",
    "bubblewrap",
    "fakechroot",
    "pseudo",
    "kcov",
    "gdbserver",
    "uftrace",
    "heaptrack",
    "bpftrace",
    "samply",
    "flamegraph",
    "wine",
    "box64",
    "i386",
    "x86_64",
    "uname26",
    "linux",
    "coreutils",
    "when-changed",
    "onchange",
    "chokidar",
    "dotenvx",
    "dotenv-cli",
    "env-cmd",
    "envchain",
    "with-contenv",
    "teller",
    "infisical",
    "multipass",
    "limactl",
    "colima",
    "orb",
    "wsl",
    "lxc-attach",
    "yash",
    "posh",
    "osh",
    "oksh",
    "bash-static",
    "pwsh",
    "nu",
    "elvish",
    "xonsh",
];

/// Of those, what their options take as the next word, and how many words stand before the command.
const KNOWN: &[(&str, &str, usize)] = &[
    ("flock", "-w -E --wait --timeout --conflict-exit-code", 1),
    ("watch", "-n --interval", 0),
    ("ssh", "-p -l -i -o -F -J -L -R -D -b -c -e -m -O -Q -S -W -w -B -E -I", 1),
    ("parallel", "-j --jobs -N -n -L -S -a -I --colsep --joblog --timeout --delay", 0),
    ("sem", "-j --jobs --id", 0),
    ("nodemon", "-w -e -i --watch --ext --ignore", 0),
    ("su", "-s -g -G --shell", 1),
    ("gtimeout", "-s -k", 1),
    ("gnice", "-n", 0),
    ("genv", "-u -C", 0),
    ("mpirun", "-n -np -c --hostfile --host", 0),
    ("srun", "-n -N -c -p", 0),
    ("systemd-cat", "-t -p", 0),
    ("sg", "", 1),
    ("runcon", "-t -u -r -l", 0),
    ("bear", "--output", 0),
    ("sshpass", "-p -f -d -e", 0),
    ("kcov", "", 1),
    ("gdbserver", "", 1),
    ("arch-chroot", "-u", 1),
    ("faketime", "", 1),
    ("logsave", "", 1),
    ("lckdo", "", 1),
];

/// Whether a program is a runner of which only the name is known.
fn is_other(name: &str) -> bool {
    static INDEX: OnceLock<HashSet<&'static str>> = OnceLock::new();
    let index = INDEX.get_or_init(|| OTHERS.iter().copied().collect());
    index.contains(name)
        || index.contains(stem(name))
        || ["s6-", "qemu-"].iter().any(|begin| name.starts_with(begin))
}

/// Builtins that take names of commands and do not run them.
const BUILTINS: &[&str] = &[
    "cd",
    "set",
    "shopt",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "alias",
    "unalias",
    "enable",
    "hash",
    "bind",
    "pushd",
    "popd",
    "umask",
    "ulimit",
    "getopts",
    "read",
    "mapfile",
    "readarray",
    "let",
    "shift",
    "history",
    "fc",
    "complete",
    "compopt",
    "compgen",
    "return",
    "break",
    "continue",
    "dirs",
    "times",
    "caller",
    "exit",
    "help",
    "type",
    "wait",
    "disown",
    "fg",
    "bg",
    "jobs",
    "[[",
    "((",
];

/// Verbs that run a command: `npm exec`, `docker run`.
const VERBS: &[(&str, &[&str])] = &[
    ("npm", &["exec", "x", "explore"]),
    ("pnpm", &["exec", "dlx", "x"]),
    ("yarn", &["exec", "dlx"]),
    ("bun", &["x"]),
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("pipx", &["run"]),
    ("conda", &["run"]),
    ("mamba", &["run"]),
    ("bundle", &["exec"]),
    ("rbenv", &["exec"]),
    ("pyenv", &["exec"]),
    ("nodenv", &["exec"]),
    ("volta", &["run"]),
    ("fnm", &["exec"]),
    ("rustup", &["run"]),
    ("opam", &["exec"]),
    ("stack", &["exec", "runghc", "runhaskell"]),
    ("cabal", &["exec"]),
    ("dune", &["exec"]),
    ("composer", &["exec"]),
    ("lerna", &["exec"]),
    ("rush", &["exec"]),
    ("docker", &["run", "exec"]),
    ("podman", &["run", "exec"]),
    ("nerdctl", &["run", "exec"]),
    ("docker-compose", &["run", "exec"]),
    ("kubectl", &["exec", "run", "debug"]),
    ("oc", &["exec", "rsh", "run", "debug"]),
    ("vagrant", &["ssh"]),
    ("heroku", &["run"]),
    ("flyctl", &["ssh"]),
    ("fly", &["ssh"]),
    ("nix", &["run", "shell", "develop"]),
    ("guix", &["shell", "environment"]),
    ("repo", &["forall"]),
    ("mix", &["cmd"]),
    ("gcloud", &["ssh"]),
    ("mvn", &["exec:exec", "exec:java"]),
];

/// What stands inside a command. `words` begins with the program.
pub(super) fn inside(words: &[Word]) -> Inside {
    let mut found = known(words);
    let Some(first) = words.first().filter(|first| first.is_literal()) else { return found };
    let name = first.text.rsplit('/').next().unwrap_or(&first.text);
    if found.runs {
        let by_mark = matches!(name, "find" | "fd" | "fdfind" | "git" | "eval" | "trap" | "source" | ".");
        if !by_mark && !SHELLS.contains(&stem(name)) && matches!(through(words), Through::No | Through::Odd) {
            starts(words, name, &mut found);
        }
    } else if !is_understood(words) && !BUILTINS.contains(&name) && name != "command" {
        unknown(words, &mut found);
    }
    found
}

/// So many words in front of its command a runner may have, for us to look at each.
const MOST_AHEAD: usize = 32;

/// Where the command of a runner may begin: behind its options, the values that these may take, and
/// the words that belong to the runner.
fn starts(words: &[Word], name: &str, found: &mut Inside) {
    let (values, mut skips) = RUNNERS
        .iter()
        .chain(KNOWN)
        .find(|(runner, _, _)| *runner == name)
        .map_or(("", 0), |(_, values, skips)| (*values, *skips));
    let mut after_option = false;
    let mut is_value = false;
    let mut doubt = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if at > MOST_AHEAD || doubt {
            found.maybe.extend(at..words.len());
            return;
        }
        if std::mem::take(&mut is_value) && !text.starts_with('-') {
            after_option = false;
            continue;
        }
        if text.starts_with(['-', '+']) && text.len() > 1 {
            is_value = values.split_whitespace().any(|value| value == text);
            after_option = text != "--" && !text.contains('=');
            if let Some((_, value)) = text.split_once('=').filter(|(_, value)| value.contains(' ')) {
                found.texts.push(value.to_owned());
            }
            continue;
        }
        if word.is_assignment() {
            continue;
        }
        let number = text.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'.' | b':' | b'-'));
        if text.contains([' ', '\t', '\n']) {
            join(std::slice::from_ref(word), found);
        }
        if std::mem::take(&mut after_option) {
            if !number {
                found.at.push(at);
                // Either this is the command, or it is a value and the next is.
                doubt = !text.contains([' ', '\t', '\n']);
            }
        } else if skips > 0 {
            skips -= 1;
            found.maybe.push(at);
        } else {
            found.at.push(at);
            return;
        }
    }
}

/// What a program that nobody knows may run: any of its words, and the text behind an option that says
/// so.
fn unknown(words: &[Word], found: &mut Inside) {
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let Some(option) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            found.maybe.push(at);
            continue;
        };
        let (option, joined) = option.split_once('=').map_or((option, None), |(o, value)| (o, Some(value)));
        let long = option.trim_start_matches('-');
        let takes_code = ["command", "cmd", "exec", "execute", "eval", "shell", "run", "call", "script"]
            .iter()
            .any(|word| long.split(['-', '_']).any(|part| part == *word))
            || !option.starts_with('-') && option.ends_with(['c', 'e', 'x']);
        let value = joined.or_else(|| words.get(at + 1).map(|next| next.text.as_str()));
        if let Some(value) = value.filter(|value| takes_code && value.trim().contains(' ')) {
            found.texts.push(value.to_owned());
        }
    }
}

/// What stands inside a command, by what the tables say of it.
fn known(words: &[Word]) -> Inside {
    let mut found = Inside::default();
    let Some(first) = words.first() else { return found };
    let name = first.text.rsplit('/').next().unwrap_or(&first.text);
    let plain = stem(name);
    if name == "command"
        && words.iter().skip(1).take_while(|w| w.text.starts_with('-')).any(|w| w.text.contains(['v', 'V']))
    {
        // It only says where a command is.
        return found;
    }
    if let Some((_, values, skips)) = RUNNERS.iter().find(|(runner, _, _)| *runner == name) {
        found.runs = true;
        found.open = name == "xargs";
        after_options(words, values, *skips, &mut found);
        if name == "env" {
            split_string(words, &mut found);
        }
        if matches!(name, "runuser" | "npx" | "unshare" | "gdb") {
            text_of(words, &["-c", "--command", "--call", "-ex"], &mut found);
        }
        return found;
    }
    if SHELLS.contains(&plain) {
        found.runs = true;
        shell_text(words, &mut found);
        return found;
    }
    match name {
        "find" => by_marks(words, &["-exec", "-execdir", "-ok", "-okdir"], &mut found),
        "fd" | "fdfind" => by_marks(words, &["-x", "--exec", "-X", "--exec-batch"], &mut found),
        "eval" | "watch" | "ssh" | "parallel" | "sem" => {
            found.runs = true;
            found.open = name == "parallel";
            let mut from = 1;
            while words.get(from).is_some_and(|word| word.text.starts_with('-') && name != "eval") {
                from += 1;
            }
            if name == "ssh" {
                from += 1;
            }
            // `ssh -p 22 host cmd`: the value of an option moves the command on.
            for from in from..(from + 2).min(words.len()) {
                found.at.push(from);
            }
            join(&words[from.min(words.len())..], &mut found);
        }
        "source" | "." => {
            found.runs = true;
            found.hidden = true;
        }
        "trap" => {
            found.runs = true;
            if let Some(word) = words.iter().skip(1).find(|word| !word.text.starts_with('-')) {
                join(std::slice::from_ref(word), &mut found);
            }
        }
        "alias" => {
            for word in words.iter().skip(1) {
                if let Some((_, value)) = word.text.split_once('=') {
                    found.texts.push(value.to_owned());
                }
            }
        }
        "su" | "script" | "flock" | "nix-shell" | "hyperfine" | "tmux" | "screen" | "expect" => {
            found.runs = true;
            text_of(words, &["-c", "--command", "--run"], &mut found);
            for word in words.iter().skip(1).filter(|word| word.text.contains(' ')) {
                join(std::slice::from_ref(word), &mut found);
            }
            found.at.extend(2..words.len().min(6));
        }
        "mapfile" | "readarray" => text_of(words, &["-C"], &mut found),
        "git" => git(words, &mut found),
        _ => {}
    }
    if name == "jobs" && words.iter().any(|word| word.text == "-x") {
        found.runs = true;
    }
    if is_other(name) {
        found.runs = true;
        text_of(words, &["-c"], &mut found);
        if found.at.is_empty() && found.texts.is_empty() {
            found.at.extend(1..words.len().min(12));
        }
    }
    if let Some((_, verbs)) = VERBS.iter().find(|(program, _)| *program == plain || *program == name)
        && let Some(at) = own_verb(words)
    {
        // `docker compose exec`: the verb may be the second one.
        let later = words.iter().enumerate().skip(at).take(3);
        if let Some((at, _)) = later.into_iter().find(|(_, word)| verbs.contains(&word.text.as_str())) {
            found.runs = true;
            text_of(&words[at..], &["-c", "--call"], &mut found);
            found.at.extend((at + 1)..words.len().min(at + 12));
        }
    }
    found
}

fn after_options(words: &[Word], values: &str, skips: usize, found: &mut Inside) {
    let values: Vec<&str> = values.split_whitespace().collect();
    let mut at = 1;
    let mut doubt = false;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            doubt = false;
            break;
        }
        if !text.starts_with('-') || text == "-" && at > 1 {
            break;
        }
        doubt = false;
        if values.contains(&text) {
            at += 1;
        } else if !text.contains('=') && !values.iter().any(|v| v.len() == 2 && text.starts_with(v)) {
            // Perhaps it takes the next word.
            doubt = text != "-";
        }
        at += 1;
    }
    let mut begin = at + skips;
    while words.get(begin).is_some_and(|word| word.is_assignment() || skips > 0 && word.text.starts_with('-'))
    {
        begin += 1;
    }
    if begin < words.len() {
        found.at.push(begin);
    }
    if doubt && begin + 1 < words.len() {
        found.at.push(begin + 1);
    }
}

/// `env -S 'cmd args'`, also joined, abbreviated and in a cluster.
fn split_string(words: &[Word], found: &mut Inside) {
    let mut after_option = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if !text.starts_with('-') && !std::mem::take(&mut after_option) {
            break;
        }
        after_option = text.starts_with('-');
        let next = || words.get(at + 1).map(|next| next.text.as_str());
        let value = if let Some(long) = text.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if name.is_empty() || !"split-string".starts_with(name) {
                continue;
            }
            value.or_else(next)
        } else {
            let Some(place) = text.strip_prefix('-').and_then(|letters| letters.find('S')) else { continue };
            Some(&text[place + 2..]).filter(|rest| !rest.is_empty()).or_else(next)
        };
        found.texts.extend(value.map(str::to_owned));
    }
}

/// `sh -c TEXT`, with any options around.
fn shell_text(words: &[Word], found: &mut Inside) {
    let mut wants_text = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        let is_option = (text.starts_with('-') || text.starts_with('+')) && text.len() > 1;
        if !is_option || text == "--" {
            at += usize::from(text == "--");
            break;
        }
        let letters = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        wants_text |= letters.is_some_and(|letters| letters.contains('c')) || text == "--command";
        // Every `o` of a cluster takes a word: `bash -euo pipefail -c TEXT`.
        let mut takes = match text.strip_prefix("--") {
            Some(long) => usize::from(matches!(long, "rcfile" | "init-file")),
            None => text.matches(['o', 'O']).count(),
        };
        at += 1;
        while takes > 0 && words.get(at).is_some_and(|word| !word.text.starts_with(['-', '+'])) {
            at += 1;
            takes -= 1;
        }
    }
    if !wants_text {
        found.hidden = true;
        return;
    }
    match words.get(at) {
        Some(word) => join(std::slice::from_ref(word), found),
        None => found.hidden = true,
    }
}

/// Words as one text for a shell.
fn join(words: &[Word], found: &mut Inside) {
    if words.iter().any(|word| !word.is_literal()) {
        found.hidden = true;
    }
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    if !text.is_empty() {
        found.texts.push(text.join(" "));
    }
}

/// The text behind an option.
fn text_of(words: &[Word], options: &[&str], found: &mut Inside) {
    for (at, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        if options.contains(&text)
            && let Some(next) = words.get(at + 1)
        {
            join(std::slice::from_ref(next), found);
        } else if let Some((option, value)) = text.split_once('=')
            && options.contains(&option)
        {
            found.texts.push(value.to_owned());
        } else if let Some(value) = text.strip_prefix("-c").filter(|value| value.contains(' ')) {
            found.texts.push(value.to_owned());
        }
    }
}

/// Commands behind marks, as in `find . -exec cmd`.
fn by_marks(words: &[Word], marks: &[&str], found: &mut Inside) {
    for (at, word) in words.iter().enumerate().skip(1) {
        if marks.contains(&word.text.as_str()) && at + 1 < words.len() {
            found.runs = true;
            found.at.push(at + 1);
        }
    }
}

/// So many words of a git command line may be the verb that runs a command.
const GIT_RUNS: usize = 8;

/// Commands that git runs.
fn git(words: &[Word], found: &mut Inside) {
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if matches!(text, "run" | "foreach") && at > 1 {
            if found.at.len() == GIT_RUNS {
                found.hidden = true;
                return;
            }
            let from = at + 1 + words[at + 1..].iter().take_while(|word| word.text.starts_with('-')).count();
            if from < words.len() {
                found.at.push(from);
                join(&words[from..], found);
            }
        } else if matches!(text, "-x" | "--exec" | "--tree-filter" | "--index-filter" | "--msg-filter")
            && let Some(next) = words.get(at + 1)
        {
            found.texts.push(next.text.clone());
        } else if let Some(value) = text.strip_prefix("--exec=") {
            found.texts.push(value.to_owned());
        } else if let Some((_, value)) = text.split_once("=!").filter(|(name, _)| name.contains("alias.")) {
            found.texts.push(value.to_owned());
        }
    }
}
