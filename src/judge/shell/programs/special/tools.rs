//! Programs whose operands or values decide what they do: `test`, `printf`, pagers, `date`, `kill` and others.

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::stem;
use crate::shell::programs::operands::operands;
use crate::shell::programs::special::{reason_for, reason_for_any};

/// `test -v 'a[$(id)]'` evaluates the subscript, and so do `-R` and arithmetic comparison in `[`.
pub(crate) fn test(call: &CommandCall<'_>) -> Option<String> {
    let risky = call.words.iter().any(|word| {
        matches!(word.text.as_str(), "-v" | "-R" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-t")
    });
    if risky && call.words.iter().any(|word| word.text.contains('[') && word.text.len() > 1) {
        return reason_for("test", "a subscript is evaluated");
    }
    reason_for_any(call, "the name of a variable is evaluated", |text| matches!(text, "-v" | "-R"))
}

/// `printf %n NAME` assigns to a variable, for example `PATH` (printf(3), which bash follows).
pub(crate) fn printf(call: &CommandCall<'_>) -> Option<String> {
    let index = match call.words.get(1) {
        Some(word) if word.text == "--" => 2,
        _ => 1,
    };
    let format = call.words.get(index).filter(|_| call.is_ungranted(index))?;
    let assigns = format.text.split('%').skip(1).any(|rest| {
        let flags = |c: char| c.is_ascii_digit() || "-+ #'*.hlLjqtzI".contains(c);
        rest.trim_start_matches(flags).starts_with('n')
    });
    if assigns || !format.is_literal() {
        return reason_for(&format.text, "a format may assign a variable");
    }
    None
}

/// Pagers run `+cmd` as a command. A line number, the end and a pattern of plain characters are
/// harmless, because they are positions in the text.
pub(crate) fn plus_command(call: &CommandCall<'_>) -> Option<String> {
    let is_place = |text: &str| {
        let is_pattern = |rest: &str| rest.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_'));
        matches!(text, "G" | "F")
            || !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
            || text.strip_prefix('/').is_some_and(is_pattern)
    };
    reason_for_any(call, "a command of the pager can run programs", |text| {
        text.strip_prefix('+').is_some_and(|rest| !is_place(rest))
    })
}

/// jq: modules are code from files.
pub(crate) fn jq(call: &CommandCall<'_>) -> Option<String> {
    let loads = |part: &str| {
        ["import", "include"].iter().any(|word| {
            part.trim_start().strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with('"'))
        })
    };
    reason_for_any(call, "a module is loaded", |text| text.split([';', '\n']).any(loads))
}

/// Options from a file: `@file`; code after a colon; a class that writes the report.
pub(crate) fn code_argument(call: &CommandCall<'_>) -> Option<String> {
    let class = |text: &str| text.contains('.') && !text.contains('/');
    let is_program = |name: &str| stem(&call.words[0].text) == name;
    let named = call.ungranted_words().find(|(index, text)| {
        let before = call.words[index - 1].text.as_str();
        text.starts_with("--output-format=") && class(text)
            || before == "--output-format" && class(text)
            || (before == "-f" && class(text) || text.starts_with("-f") && class(text))
                && is_program("pylint")
            || text.starts_with("-p") && is_program("rollup")
    });
    if let Some((_, text)) = named {
        return reason_for(text, "code named on the command line");
    }
    reason_for_any(call, "options from a file, or code", |text| {
        text.starts_with('@') || text.starts_with("--inject:") || text.starts_with("--alias:")
    })
}

/// `date MMDDhhmm` sets the clock.
pub(crate) fn date(call: &CommandCall<'_>) -> Option<String> {
    if call.words[..call.granted_count].iter().any(|word| matches!(word.text.as_str(), "-s" | "--set")) {
        return None;
    }
    let operands = operands(call.words, "-d --date -f --file -r --reference");
    let set = operands.iter().find(|(index, word)| {
        call.is_ungranted(*index) && word.text.starts_with(|c: char| c.is_ascii_digit())
    });
    set.and_then(|(_, word)| reason_for(&word.text, "this sets the clock"))
}

/// `kill -9 -1` ends all processes.
pub(crate) fn kill(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    if let Some(reason) = reason_for_any(call, "this may end the daemon", |text| text.contains("agentd")) {
        return Some(reason);
    }
    if matches!(words[0].text.as_str(), "pkill" | "killall" | "skill") {
        let takes_value =
            "-s --signal -u --euid -U --uid -g --pgroup -G --group -t --terminal -P --parent -o -y";
        let operands = operands(words, takes_value);
        // A pattern matches anywhere in a name.
        let matches_daemon =
            |text: &str| "agentd".contains(text) || text.bytes().all(|c| !c.is_ascii_alphanumeric());
        if operands.is_empty()
            && call.granted_count < words.len()
            && !words.iter().any(|word| matches!(word.text.as_str(), "-l" | "-V" | "-h"))
        {
            return reason_for(&words[0].text, "this ends all processes of a user");
        }
        if let Some((_, word)) =
            operands.iter().find(|(index, word)| call.is_ungranted(*index) && matches_daemon(&word.text))
        {
            return reason_for(&word.text, "this may end the daemon");
        }
        return None;
    }
    call.ungranted_words().find_map(|(index, text)| {
        let signal = index == 1 && text.starts_with('-');
        let everything = text.starts_with('-')
            && !signal
            && text[1..].bytes().all(|c| c.is_ascii_digit())
            && text.len() > 1;
        let is_group_or_init =
            matches!(text, "1" | "0") && !matches!(words[index - 1].text.as_str(), "-s" | "-n" | "--signal");
        // The last background process of the line, or empty.
        let last = text == "$!";
        (everything || is_group_or_init || text.starts_with('$') && !last)
            .then(|| format!("{text}: this ends more than one process"))
    })
}
