//! Programs that run the command they are given.

use super::hatch::{stem, verb};
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
    ("taskset", "-c -p", 1),
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
    ("start-stop-daemon", "-p -x -n -u -c", 0),
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
    if OTHERS.contains(&name) {
        found.runs = true;
        if found.at.is_empty() && found.texts.is_empty() {
            found.at.extend(1..words.len().min(12));
        }
    }
    if let Some((_, verbs)) = VERBS.iter().find(|(program, _)| *program == plain || *program == name)
        && let Some(at) = verb(words, None)
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
    while words.get(begin).is_some_and(Word::is_assignment) {
        begin += 1;
    }
    if begin < words.len() {
        found.at.push(begin);
    }
    if doubt && begin + 1 < words.len() {
        found.at.push(begin + 1);
    }
}

/// `env -S 'cmd args'`, also joined.
fn split_string(words: &[Word], found: &mut Inside) {
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let joined = text
            .strip_prefix("--split-string=")
            .or_else(|| text.strip_prefix("-S").filter(|rest| !rest.is_empty()))
            .or_else(|| text.strip_prefix("-vS").filter(|rest| !rest.is_empty()));
        if let Some(rest) = joined {
            found.texts.push(rest.to_owned());
        } else if matches!(text, "-S" | "-vS" | "--split-string")
            && let Some(next) = words.get(at + 1)
        {
            found.texts.push(next.text.clone());
        } else if !text.starts_with('-') {
            break;
        }
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
        if matches!(text, "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file") {
            at += 1;
        }
        at += 1;
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

/// See-through programs (R8), for grants: where the inner command begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Through {
    /// It is none of them.
    No,
    /// The inner command begins there.
    At(usize),
    /// It is `xargs`; the inner command begins there, and gets more words.
    Fed(usize),
    /// It is one, but what it is told is not understood.
    Odd,
}

/// Looks through `time`, `timeout`, `nice`, `nohup`, `stdbuf`, `command` and `xargs`, with the
/// options that do nothing but what these programs are for.
pub(super) fn through(words: &[Word]) -> Through {
    let Some(first) = words.first().filter(|first| first.is_literal()) else { return Through::No };
    // Options with a value, options without, words before the command.
    let (values, flags, skips): (&[&str], &[&str], usize) = match first.text.as_str() {
        "time" => (&[], &["-p", "--portability", "-v", "--verbose"], 0),
        "timeout" => (
            &["-s", "--signal", "-k", "--kill-after"],
            &["--foreground", "--preserve-status", "-v", "--verbose", "-f", "-p"],
            1,
        ),
        "nice" => (&["-n", "--adjustment"], &[], 0),
        "nohup" => (&[], &[], 0),
        "stdbuf" => (&["-i", "-o", "-e", "--input", "--output", "--error"], &[], 0),
        "command" => (&[], &["-p"], 0),
        "xargs" => (
            &[
                "-d",
                "-E",
                "-I",
                "-L",
                "-n",
                "-P",
                "-s",
                "--delimiter",
                "--max-args",
                "--max-procs",
                "--max-lines",
            ],
            &["-0", "--null", "-r", "--no-run-if-empty", "-t", "--verbose", "-x", "--exit"],
            0,
        ),
        _ => return Through::No,
    };
    let name = first.text.as_str();
    let mut at = 1;
    let mut replaces = None;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if !text.starts_with('-') {
            break;
        }
        if !word.is_literal() {
            return Through::Odd;
        }
        at += 1;
        if text == "--" {
            break;
        }
        if name == "command" && matches!(text, "-v" | "-V" | "-pv" | "-pV") {
            return Through::No;
        }
        let (option, joined) = match text.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (text, None),
        };
        if flags.contains(&option) && joined.is_none() {
            continue;
        }
        if values.contains(&option) {
            let value = match joined {
                Some(value) => value,
                None => {
                    let Some(next) = words.get(at).filter(|next| next.is_literal()) else {
                        return Through::Odd;
                    };
                    at += 1;
                    &next.text
                }
            };
            if option == "-I" {
                replaces = Some(value.to_owned());
            }
            continue;
        }
        // Joined: `-n10`, `-oL`, `-I{}`, `-k5s`; for `nice` also `-10`; clusters like `-0r`.
        let short = values.iter().find(|value| value.len() == 2 && text.starts_with(**value));
        if let Some(short) = short {
            if *short == "-I" {
                replaces = Some(text[2..].to_owned());
            }
            continue;
        }
        if name == "nice" && text[1..].trim_start_matches('-').bytes().all(|c| c.is_ascii_digit()) {
            continue;
        }
        let is_flag = |c: char| flags.iter().any(|flag| flag.len() == 2 && flag.ends_with(c));
        let cluster = &text[1..];
        if !cluster.starts_with('-') && cluster.chars().all(is_flag) {
            continue;
        }
        // A cluster that ends with a letter that takes a value: `-0n1`, `-0rI{}`.
        let flags_before = cluster.chars().take_while(|c| is_flag(*c)).count();
        let rest = &cluster[flags_before..];
        let Some(letter) = rest.chars().next().filter(|c| c.is_ascii_alphabetic() && flags_before > 0) else {
            return Through::Odd;
        };
        if !values.iter().any(|value| value.len() == 2 && value.ends_with(letter)) {
            return Through::Odd;
        }
        let value = if rest.len() > 1 {
            rest[1..].to_owned()
        } else {
            let Some(next) = words.get(at).filter(|next| next.is_literal()) else { return Through::Odd };
            at += 1;
            next.text.clone()
        };
        if letter == 'I' {
            replaces = Some(value);
        }
    }
    for _ in 0..skips {
        let is_duration = words.get(at).is_some_and(|word| {
            word.is_literal()
                && word.text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                && word
                    .text
                    .trim_end_matches(['s', 'm', 'h', 'd'])
                    .bytes()
                    .all(|c| c.is_ascii_digit() || c == b'.')
        });
        if !is_duration {
            return Through::Odd;
        }
        at += 1;
    }
    if at >= words.len() {
        return Through::Odd;
    }
    if name == "xargs" {
        let fills = replaces.is_some_and(|mark| mark.is_empty() || words[at].text.contains(&mark));
        return if fills { Through::Odd } else { Through::Fed(at) };
    }
    Through::At(at)
}
