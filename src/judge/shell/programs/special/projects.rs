//! Programs that work on a project: the arguments that they treat as code, and where the code may come
//! from.

use crate::shell::lex::word::Word;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::escape_options::operands;
use crate::shell::programs::lookup::{own_verb, rows, stem};
use crate::shell::programs::special::{any, reason_for};

/// `just NAME=value`: its recipes are commands.
pub(crate) fn just(call: &CommandCall<'_>) -> Option<String> {
    if stem(&call.words[0].text) != "just" {
        return None;
    }
    crate::shell::programs::special::make(call).or_else(|| {
        any(call, "another project", |text| {
            let folder = text.rsplit_once('/').map_or("", |(folder, _)| folder);
            !text.starts_with('-') && folder.split('/').any(|part| part == "..") && (call.outside)(text)
        })
    })
}

/// Variables of scons on the command line work like those of make.
pub(crate) fn scons(call: &CommandCall<'_>) -> Option<String> {
    if stem(&call.words[0].text) == "scons" { crate::shell::programs::special::make(call) } else { None }
}

/// `cargo watch -- COMMAND`.
pub(crate) fn cargo_watch(call: &CommandCall<'_>) -> Option<String> {
    let watches = call.words.iter().any(|word| word.text == "watch");
    if watches { any(call, "a command to run", |text| text == "--") } else { None }
}

/// Letters and operands that mean code or settings in one of the test runners.
pub(crate) fn tests(call: &CommandCall<'_>) -> Option<String> {
    let letters: &[&str] = match stem(&call.words[0].text) {
        "mocha" => &["-u", "-n", "-O"],
        "cypress" => &["-C", "-P"],
        "phpunit" => &["-d"],
        "karma" => {
            return any(call, "a file of settings", |text| !text.starts_with('-') && text.contains('.'));
        }
        _ => return None,
    };
    any(call, "code, settings or another project", |text| {
        !text.starts_with("--") && letters.iter().any(|letter| text.starts_with(letter))
    })
}

/// sbt: settings and commands of its shell.
pub(crate) fn sbt(call: &CommandCall<'_>) -> Option<String> {
    any(call, "this is code, or a list of options", |text| {
        let begins = ["set ", "eval ", "!", "@", "apply ", "alias ", "project ", "load ", "<"];
        begins.iter().any(|begin| text.trim_start().starts_with(begin))
            || text.contains(":=")
            || text.contains("; !")
    })
}

/// `swift x.swift`, `dart x.dart`: the file is run.
pub(crate) fn operands_are_code(call: &CommandCall<'_>) -> Option<String> {
    let at = own_verb(call.words)?;
    let text = call.words[at].text.as_str();
    (at >= call.granted && (text.contains('/') || text.ends_with(".swift") || text.ends_with(".dart")))
        .then(|| format!("{text}: code named on the command line"))
}

/// The arguments of `deno test` and similar may be code from any address.
pub(crate) fn deno(call: &CommandCall<'_>) -> Option<String> {
    any(call, "another project", |text| {
        let path = text.split_once('=').map_or(text, |(_, path)| path);
        let leaves = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
        path.contains("://")
            || path.starts_with("npm:")
            || path.starts_with("jsr:")
            || leaves && (call.outside)(path)
    })
}

/// `coverage run FILE`, `coverage run -m MODULE`: the code is not part of the grant.
pub(crate) fn coverage(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    if stem(&words[0].text) != "coverage" {
        return None;
    }
    let values = "-m --source --include --omit --data-file --rcfile --context --concurrency";
    let at = own_verb(words).filter(|at| words[*at].text == "run")?;
    let joined = call.ungranted_words().find(|(_, text)| text.starts_with("-m") && text.len() > 2);
    if let Some((_, text)) = joined {
        return reason_for(text, "code named on the command line");
    }
    let module = words.iter().position(|word| word.text == "-m");
    let code = match module {
        Some(at) => at + 1,
        None => operands(words, values).into_iter().map(|(place, _)| place).find(|place| *place > at)?,
    };
    let named = words.get(code)?;
    (code >= call.granted).then(|| format!("{}: code named on the command line", named.text))
}

/// `python -m pytest …`, `coverage run -m pytest …`: position of the module that is part of the grant.
pub(crate) fn python_module(words: &[Word], granted_count: usize) -> Option<usize> {
    let at = words.iter().take(granted_count).position(|word| word.text == "-m")?;
    let python = at == 1 && stem(&words[0].text) == "python";
    let coverage = stem(&words[0].text) == "coverage" && words.get(1).is_some_and(|word| word.text == "run");
    let known = |words: &[Word]| rows(words).is_known();
    (granted_count > at + 1 && (python || coverage) && words.get(at + 1..).is_some_and(known))
        .then_some(at + 1)
}

/// Python modules that treat their arguments like a separate program.
pub(crate) fn module(call: &CommandCall<'_>) -> Option<String> {
    let name = call.words[0].text.as_str();
    let found = operands(call.words, "");
    let free = |at: usize| at >= call.granted;
    let written = |nth: usize| found.get(nth).filter(|(at, _)| free(*at));
    match name {
        "json.tool" => {
            written(1).and_then(|(_, word)| reason_for(&word.text, "the second operand is written"))
        }
        _ => {
            let (_, word) = found.iter().find(|(at, word)| free(*at) && (call.outside)(&word.text))?;
            reason_for(&word.text, "outside the workspace")
        }
    }
}
