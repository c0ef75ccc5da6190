//! Programs that run a command given by their arguments.

use crate::shell::lex::word::Word;
use crate::shell::programs::exceptions::names_follow;
use crate::shell::programs::granted::is_understood;
use crate::shell::programs::lookup::{Runner, find_own_verb, find_runner};
use crate::shell::programs::operands::{has_word, names_a_script};
use crate::shell::programs::transparent_wrappers::{WrapperMatch, match_wrapper};

/// The inner commands of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct InnerCommands {
    /// Positions of the words at which commands begin.
    pub(crate) starts: Vec<usize>,
    /// Texts that a shell will parse.
    pub(crate) texts: Vec<String>,
    /// More words come from elsewhere (`xargs`), or the command is not literal.
    pub(crate) gets_more_words: bool,
    /// It runs something that the words do not show.
    pub(crate) may_run_more: bool,
    /// Whether the program runs other commands at all.
    pub(crate) runs: bool,
    /// Positions at which commands may begin, if the program runs commands or has unknown options.
    pub(crate) possible_starts: Vec<usize>,
}

/// Whether options or verbs of a program mark where a command begins: `find -exec`, `git bisect run`.
pub(crate) fn marks_inner_commands(program: &str) -> bool {
    has_word("find fd fdfind git", program)
}

/// The inner commands. `words` begins with the program.
pub(crate) fn inner_commands(words: &[Word]) -> InnerCommands {
    let Some(first) = words.first() else { return InnerCommands::default() };
    let name = first.text.rsplit('/').next().unwrap_or(&first.text);
    let runner = find_runner(name);
    let mut inner = recorded_inner_commands(words, name, runner);
    if !first.is_literal() {
        return inner;
    }
    if inner.runs {
        let shows_its_commands =
            marks_inner_commands(name) || matches!(name, "eval" | "trap" | "source" | ".");
        if !shows_its_commands
            && !runner.is_shell
            && matches!(match_wrapper(words), WrapperMatch::No | WrapperMatch::Unparsed)
        {
            add_runner_starts(words, runner, &mut inner);
        }
    } else if !runner.never_runs && name != "command" && !is_understood(words) {
        add_unknown_starts(words, &mut inner);
    }
    inner
}

/// Maximum number of words before a runner's command that are inspected.
const MAX_WORDS_BEFORE_COMMAND: usize = 32;

/// Possible positions of a runner's command: after its options, their possible values, and the words
/// that belong to the runner.
fn add_runner_starts(words: &[Word], runner: Runner, inner: &mut InnerCommands) {
    let mut words_before = runner.words_before;
    let mut after_option = false;
    let mut is_value = false;
    let mut is_uncertain = false;
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if index > MAX_WORDS_BEFORE_COMMAND || is_uncertain {
            inner.possible_starts.extend(index..words.len());
            return;
        }
        if std::mem::take(&mut is_value) && !text.starts_with('-') {
            after_option = false;
            continue;
        }
        if text.starts_with(['-', '+']) && text.len() > 1 {
            is_value = runner.takes_value.contains(&text);
            after_option = text != "--" && !text.contains('=');
            if let Some((_, value)) = text.split_once('=').filter(|(_, value)| value.contains(' ')) {
                inner.texts.push(value.to_owned());
            }
            continue;
        }
        if word.is_assignment() {
            continue;
        }
        let number = text.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'.' | b':' | b'-'));
        if text.contains([' ', '\t', '\n']) {
            add_joined_text(std::slice::from_ref(word), inner);
        }
        if std::mem::take(&mut after_option) {
            if !number {
                inner.starts.push(index);
                // Either this word is the command, or it is the option's value and the next word is the
                // command.
                is_uncertain = !text.contains([' ', '\t', '\n']);
            }
        } else if words_before > 0 {
            words_before -= 1;
            inner.possible_starts.push(index);
        } else {
            inner.starts.push(index);
            return;
        }
    }
}

/// Possible inner commands of an unknown program: any of its words, and the text after an option for a
/// command.
fn add_unknown_starts(words: &[Word], inner: &mut InnerCommands) {
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let Some(option) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            inner.possible_starts.push(index);
            continue;
        };
        let (option, joined) = option.split_once('=').map_or((option, None), |(o, value)| (o, Some(value)));
        let value = joined.or_else(|| words.get(index + 1).map(|next| next.text.as_str()));
        let Some(value) = value.filter(|value| value.trim().contains(' ')) else { continue };
        let says_code = |part: &str| {
            matches!(
                part,
                "command" | "cmd" | "exec" | "execute" | "eval" | "shell" | "run" | "call" | "script"
            )
        };
        let long = option.trim_start_matches('-');
        let takes_code = long.split(['-', '_']).any(says_code)
            || !option.starts_with('-') && option.ends_with(['c', 'e', 'x']);
        if takes_code {
            inner.texts.push(value.to_owned());
        }
    }
}

/// The inner command by the tables.
fn recorded_inner_commands(words: &[Word], name: &str, runner: Runner) -> InnerCommands {
    let mut inner = InnerCommands::default();
    if name == "command"
        && words.iter().skip(1).take_while(|w| w.text.starts_with('-')).any(|w| w.text.contains(['v', 'V']))
    {
        // `command -v` only prints the location of a command.
        return inner;
    }
    if runner.runs_command {
        inner.runs = true;
        inner.gets_more_words = name == "xargs";
        add_start_after_options(words, runner, &mut inner);
        if name == "env" {
            add_env_split_string(words, &mut inner);
        }
        if matches!(name, "runuser" | "npx" | "unshare" | "gdb") {
            add_option_texts(words, &["-c", "--command", "--call", "-ex"], &mut inner);
        }
        return inner;
    }
    if runner.is_shell {
        inner.runs = true;
        add_shell_text(words, &mut inner);
        return inner;
    }
    match name {
        "find" => add_starts_after_marks(words, &["-exec", "-execdir", "-ok", "-okdir"], &mut inner),
        "fd" | "fdfind" => add_starts_after_marks(words, &["-x", "--exec", "-X", "--exec-batch"], &mut inner),
        "eval" | "watch" | "ssh" | "parallel" | "sem" => {
            inner.runs = true;
            inner.gets_more_words = name == "parallel";
            let mut from = 1;
            while words
                .get(from)
                .is_some_and(|word| word.text == "--" || word.text.starts_with('-') && name != "eval")
            {
                from += 1;
            }
            if name == "ssh" {
                from += 1;
            }
            // `ssh -p 22 host cmd`: an option's value moves the command.
            for from in from..(from + 2).min(words.len()) {
                inner.starts.push(from);
            }
            add_joined_text(&words[from.min(words.len())..], &mut inner);
        }
        "source" | "." => {
            inner.runs = true;
            inner.may_run_more = true;
        }
        "trap" => {
            inner.runs = true;
            if let Some(word) = words.iter().skip(1).find(|word| !word.text.starts_with('-')) {
                add_joined_text(std::slice::from_ref(word), &mut inner);
            }
        }
        "alias" => {
            for word in words.iter().skip(1) {
                if let Some((_, value)) = word.text.split_once('=') {
                    inner.texts.push(value.to_owned());
                }
            }
        }
        "su" | "script" | "flock" | "nix-shell" | "hyperfine" | "tmux" | "screen" | "expect" => {
            inner.runs = true;
            add_option_texts(words, &["-c", "--command", "--run"], &mut inner);
            for word in words.iter().skip(1).filter(|word| word.text.contains(' ')) {
                add_joined_text(std::slice::from_ref(word), &mut inner);
            }
            inner.starts.extend(2..words.len().min(6));
        }
        "mapfile" | "readarray" => add_option_texts(words, &["-C"], &mut inner),
        "git" => add_git_commands(words, &mut inner),
        _ => {}
    }
    if name == "jobs" && words.iter().any(|word| word.text == "-x") {
        inner.runs = true;
    }
    if runner.is_unknown {
        inner.runs = true;
        add_option_texts(words, &["-c"], &mut inner);
        if inner.starts.is_empty() && inner.texts.is_empty() {
            inner.starts.extend(1..words.len().min(12));
        }
    }
    if !runner.verbs.is_empty()
        && !names_a_script(words)
        && let Some(index) = find_own_verb(words)
    {
        // `docker compose exec`: the verb may be the second word.
        let later = words.iter().enumerate().skip(index).take(3);
        let runs = |index: usize, word: &Word| {
            runner.verbs.contains(&word.text.as_str()) && !names_follow(words, index)
        };
        if let Some((index, _)) = later.into_iter().find(|(index, word)| runs(*index, word)) {
            inner.runs = true;
            add_option_texts(&words[index..], &["-c", "--call"], &mut inner);
            inner.starts.extend((index + 1)..words.len().min(index + 12));
        }
    }
    inner
}

/// The command after the options of a runner and the words that belong to it.
fn add_start_after_options(words: &[Word], runner: Runner, inner: &mut InnerCommands) {
    let (takes_value, words_before) = (runner.takes_value, runner.words_before);
    let mut index = 1;
    let mut is_uncertain = false;
    while let Some(word) = words.get(index) {
        let text = word.text.as_str();
        if text == "--" {
            index += 1;
            is_uncertain = false;
            break;
        }
        if !text.starts_with('-') || text == "-" && index > 1 {
            break;
        }
        is_uncertain = false;
        if takes_value.contains(&text) {
            index += 1;
        } else if !text.contains('=')
            && !takes_value.iter().any(|option| option.len() == 2 && text.starts_with(option))
        {
            // The option may take the next word as its value.
            is_uncertain = text != "-";
        }
        index += 1;
    }
    let mut start = index + words_before;
    let is_skipped = |word: &Word| word.is_assignment() || words_before > 0 && word.text.starts_with('-');
    while words.get(start).is_some_and(is_skipped) {
        start += 1;
    }
    if start < words.len() {
        inner.starts.push(start);
    }
    if is_uncertain && start + 1 < words.len() {
        inner.starts.push(start + 1);
    }
}

/// `env -S 'cmd args'`, also joined, abbreviated and in a cluster.
fn add_env_split_string(words: &[Word], inner: &mut InnerCommands) {
    let mut after_option = false;
    let mut is_split = false;
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if !text.starts_with('-') && !std::mem::take(&mut after_option) {
            break;
        }
        after_option = text.starts_with('-');
        let next = || words.get(index + 1).map(|next| next.text.as_str());
        let joined = if let Some(long) = text.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if name.is_empty() || !"split-string".starts_with(name) {
                continue;
            }
            value
        } else {
            let Some(offset) = text.strip_prefix('-').and_then(|letters| letters.find('S')) else { continue };
            Some(&text[offset + 2..]).filter(|rest| !rest.is_empty())
        };
        let Some(value) = joined.or_else(next) else { continue };
        // In the value `\_` is a blank, and the value ends at `\c` and `#` (env(1)). env appends the
        // words that follow.
        let value = value.replace("\\_", " ");
        let ends = value.find("\\c").into_iter().chain(value.find('#')).min().unwrap_or(value.len());
        let rest = words.get(index + 1 + usize::from(joined.is_none())..).unwrap_or_default();
        // env splits only the first value. A later one is an ordinary word.
        if !std::mem::replace(&mut is_split, true) && !rest.is_empty() {
            inner.may_run_more |= rest.iter().any(|word| !word.is_literal());
            let quoted = |word: &Word| format!(" '{}'", word.text.replace('\'', "'\\''"));
            inner.texts.push(format!("{}{}", &value[..ends], rest.iter().map(quoted).collect::<String>()));
        }
        inner.texts.push(value);
    }
}

/// `sh -c TEXT`, with any other options.
fn add_shell_text(words: &[Word], inner: &mut InnerCommands) {
    let mut wants_text = false;
    let mut index = 1;
    while let Some(word) = words.get(index) {
        let text = word.text.as_str();
        let is_option = (text.starts_with('-') || text.starts_with('+')) && text.len() > 1;
        if !is_option || text == "--" {
            index += usize::from(text == "--");
            break;
        }
        let letters = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        wants_text |= letters.is_some_and(|letters| letters.contains('c')) || text == "--command";
        // Every `o` of a cluster takes a word: `bash -euo pipefail -c TEXT`.
        let mut value_count = match text.strip_prefix("--") {
            Some(long) => usize::from(matches!(long, "rcfile" | "init-file")),
            None => text.matches(['o', 'O']).count(),
        };
        index += 1;
        while value_count > 0 && words.get(index).is_some_and(|word| !word.text.starts_with(['-', '+'])) {
            index += 1;
            value_count -= 1;
        }
    }
    if !wants_text {
        inner.may_run_more = true;
        return;
    }
    match words.get(index) {
        Some(word) => add_joined_text(std::slice::from_ref(word), inner),
        None => inner.may_run_more = true,
    }
}

/// Joins words into one text for a shell.
fn add_joined_text(words: &[Word], inner: &mut InnerCommands) {
    if words.iter().any(|word| !word.is_literal()) {
        inner.may_run_more = true;
    }
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    if !text.is_empty() {
        inner.texts.push(text.join(" "));
    }
}

/// Adds the values of these options as texts for a shell.
fn add_option_texts(words: &[Word], options: &[&str], inner: &mut InnerCommands) {
    for (index, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        if options.contains(&text)
            && let Some(next) = words.get(index + 1)
        {
            add_joined_text(std::slice::from_ref(next), inner);
        } else if let Some((option, value)) = text.split_once('=')
            && options.contains(&option)
        {
            inner.texts.push(value.to_owned());
        } else if let Some(value) = text.strip_prefix("-c").filter(|value| value.contains(' ')) {
            inner.texts.push(value.to_owned());
        }
    }
}

/// Commands after marks, as in `find . -exec cmd`.
fn add_starts_after_marks(words: &[Word], marks: &[&str], inner: &mut InnerCommands) {
    for (index, word) in words.iter().enumerate().skip(1) {
        if marks.contains(&word.text.as_str()) && index + 1 < words.len() {
            inner.runs = true;
            inner.starts.push(index + 1);
        }
    }
}

/// Maximum number of words of a git command line that may be a verb that runs a command.
const MAX_GIT_VERBS: usize = 4;

/// Commands that git runs.
fn add_git_commands(words: &[Word], inner: &mut InnerCommands) {
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if matches!(text, "run" | "foreach") && index > 1 {
            if inner.starts.len() == MAX_GIT_VERBS {
                inner.may_run_more = true;
                return;
            }
            let from =
                index + 1 + words[index + 1..].iter().take_while(|word| word.text.starts_with('-')).count();
            if from < words.len() {
                inner.starts.push(from);
                add_joined_text(&words[from..], inner);
            }
        } else if matches!(text, "-x" | "--exec" | "--tree-filter" | "--index-filter" | "--msg-filter")
            && let Some(next) = words.get(index + 1)
        {
            inner.texts.push(next.text.clone());
        } else if let Some(value) = text.strip_prefix("--exec=") {
            inner.texts.push(value.to_owned());
        } else if let Some((_, value)) = text.split_once("=!").filter(|(name, _)| name.contains("alias.")) {
            inner.texts.push(value.to_owned());
        }
    }
}
