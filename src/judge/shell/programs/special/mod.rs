//! Checks of programs whose arguments have a grammar of their own: programs within arguments (sed, awk, SQL),
//! words that several options share, values with a leading sign.
//!
//! Each check returns why a call needs a request, and `None` if it finds no reason. Words that a grant contains give no
//! reason ([`CommandCall::is_ungranted`]).

mod archives;
mod build;
mod clients;
mod code;
mod databases;
mod git;
mod network;
mod projects;
mod rust;
mod scripts;
mod tools;

pub(crate) use projects::python_module;

use crate::shell::lex::word::{Marks, Word};
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::{find_own_verb, find_verb, stem};
use crate::shell::programs::operands::operands_by;
use crate::shell::programs::record::Record;
use crate::shell::programs::record::check::Check;
use crate::shell::programs::record::runs::verbs_of;

impl Check {
    /// Why an argument beyond the grant needs a request, if one does.
    pub(crate) fn reason(self, call: &CommandCall<'_>) -> Option<String> {
        match self {
            Self::Awk => scripts::awk(call),
            Self::Aws => clients::aws(call),
            Self::Cargo => rust::cargo(call),
            Self::Clone => git::clone(call),
            Self::Cmake => build::cmake(call),
            Self::Compiler => build::compiler(call),
            Self::Coverage => projects::coverage(call),
            Self::Curl => network::curl(call),
            Self::Date => tools::date(call),
            Self::Deno => projects::deno(call),
            Self::Docker => clients::docker(call),
            Self::Gh => clients::gh(call),
            Self::Git => git::git(call),
            Self::GitConfig => git::git_config(call),
            Self::Go => code::go(call),
            Self::Gpg => clients::gpg(call),
            Self::JavaProperties => build::java_properties(call),
            Self::Jq => tools::jq(call),
            Self::Kill => tools::kill(call),
            Self::Kubectl => clients::kubectl(call),
            Self::Mysql => databases::mysql(call),
            Self::Npm => code::npm(call),
            Self::PlusCommand => tools::plus_command(call),
            Self::Printf => tools::printf(call),
            Self::Protoc => build::protoc(call),
            Self::MediaFilter => network::media_filter(call),
            Self::Psql => databases::psql(call),
            Self::PsqlClient => databases::psql_client(call),
            Self::Pytest => code::pytest(call),
            Self::Redis => databases::redis(call),
            Self::RemoteCopy => network::remote_copy(call),
            Self::CodeArgument => tools::code_argument(call),
            Self::Rsync => network::rsync(call),
            Self::Rustc => rust::rustc(call),
            Self::Sed => scripts::sed(call),
            Self::SevenZip => archives::seven_zip(call),
            Self::Sqlite => databases::sqlite(call),
            Self::Tar => archives::tar(call),
            Self::Test => tools::test(call),
            Self::Uv => code::uv(call),
        }
    }
}

/// The reason for a request: the text that needs it, and what it does.
fn reason_text(text: &str, what: &str) -> String {
    format!("{text}: {what}")
}

/// Same as [`reason_text`], for a check that ends with this reason.
fn reason_for(text: &str, what: &str) -> Option<String> {
    Some(reason_text(text, what))
}

/// The reason for the first ungranted word for which `needs_request` holds; `None` if there is no such word.
fn reason_for_any(
    call: &CommandCall<'_>,
    what: &str,
    needs_request: impl Fn(&str) -> bool,
) -> Option<String> {
    call.ungranted_words().find(|(_, text)| needs_request(text)).and_then(|(_, text)| reason_for(text, what))
}

/// The reason for the first ungranted word after `--` for which `needs_request` holds. These words are for another
/// program. `needs_request` gets each of them with the word after it.
fn reason_after_dashes(call: &CommandCall<'_>, needs_request: impl Fn(&str, &str) -> bool) -> Option<String> {
    let words = call.words;
    let dashes = words.iter().position(|word| word.text == "--")?;
    words.iter().enumerate().skip((dashes + 1).max(call.granted_count)).find_map(|(index, word)| {
        let next = words.get(index + 1).map_or("", |word| word.text.as_str());
        if needs_request(&word.text, next) {
            reason_for(&word.text, "this makes the program behind run another")
        } else {
            None
        }
    })
}

/// Why the verb of a call needs a request, if the program itself does not have it.
pub(crate) fn unknown_verb_reason(record: &Record, call: &CommandCall<'_>) -> Option<String> {
    let known_verbs = verbs_of(&record.known_verbs, stem(&call.words[0].text))?;
    // Without a verb, the value of an option may be one.
    let verb_index = find_own_verb(call.words).or_else(|| find_verb(call.words, None))?;
    let verb_index = Some(verb_index).filter(|index| call.is_ungranted(*index))?;
    let text = call.words[verb_index].text.as_str();
    (!known_verbs.has(text))
        .then(|| format!("{text}: not a command that is known; it may be a plugin, which runs anything"))
}

/// Why an operand needs a request that a program writes because it is the second one.
pub(crate) fn second_operand_reason(record: &Record, call: &CommandCall<'_>) -> Option<String> {
    if !record.second_operand_written {
        return None;
    }
    let operands = operands_by(call.words, |option| record.takes_value.has(option));
    // One word may expand to several.
    let may_be_several = |word: &Word| word.marks.has_any(Marks::GLOB) || word.marks.has_any(Marks::BRACE);
    let mut ungranted = operands.iter().enumerate().filter(|(_, (index, _))| call.is_ungranted(*index));
    let written = ungranted.find(|(nth, (_, word))| *nth > 0 || may_be_several(word));
    written.and_then(|(_, (_, word))| reason_for(&word.text, "the second operand is written"))
}
