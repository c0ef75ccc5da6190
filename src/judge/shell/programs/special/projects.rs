//! Programs that work on a project: the arguments that they treat as code, and where the code may come
//! from.

use crate::shell::lex::word::Word;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::{find_own_verb, find_records, stem};
use crate::shell::programs::operands::operands;
use crate::shell::programs::special::{reason_for, reason_for_any};

/// The arguments of `deno test` and similar may be code from any address.
pub(crate) fn deno(call: &CommandCall<'_>) -> Option<String> {
    reason_for_any(call, "another project", |text| {
        let path = text.split_once('=').map_or(text, |(_, path)| path);
        let leaves_workspace = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
        path.contains("://")
            || path.starts_with("npm:")
            || path.starts_with("jsr:")
            || leaves_workspace && call.is_outside(path)
    })
}

/// `coverage run FILE`, `coverage run -m MODULE`: the code is not part of the grant.
pub(crate) fn coverage(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    if stem(&words[0].text) != "coverage" {
        return None;
    }
    let takes_value = "-m --source --include --omit --data-file --rcfile --context --concurrency";
    let index = find_own_verb(words).filter(|index| words[*index].text == "run")?;
    let joined = call.ungranted_words().find(|(_, text)| text.starts_with("-m") && text.len() > 2);
    if let Some((_, text)) = joined {
        return reason_for(text, "code named on the command line");
    }
    let module = words.iter().position(|word| word.text == "-m");
    let code = match module {
        Some(index) => index + 1,
        None => operands(words, takes_value)
            .into_iter()
            .map(|(operand_index, _)| operand_index)
            .find(|operand_index| *operand_index > index)?,
    };
    let named = words.get(code)?;
    (call.is_ungranted(code)).then(|| format!("{}: code named on the command line", named.text))
}

/// `python -m pytest …`, `coverage run -m pytest …`: position of the module that is part of the grant.
pub(crate) fn python_module(words: &[Word], granted_count: usize) -> Option<usize> {
    let index = words.iter().take(granted_count).position(|word| word.text == "-m")?;
    let python = index == 1 && stem(&words[0].text) == "python";
    let coverage = stem(&words[0].text) == "coverage" && words.get(1).is_some_and(|word| word.text == "run");
    let is_known = |words: &[Word]| find_records(words).is_known();
    (granted_count > index + 1 && (python || coverage) && words.get(index + 1..).is_some_and(is_known))
        .then_some(index + 1)
}
