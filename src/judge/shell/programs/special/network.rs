//! Programs that contact other machines: the files that they send or remove.

use std::borrow::Cow;

use crate::shell::lex::word::Word;
use crate::shell::programs::call::CommandCall;
use crate::shell::programs::special::{reason_for, reason_for_any};

/// curl: values with a leading `@` send a file or read options, `%output` writes one.
pub(crate) fn curl(call: &CommandCall<'_>) -> Option<String> {
    for (index, text) in call.ungranted_words() {
        let before = call.words[index - 1].text.as_str();
        if is_file_address(text, before) {
            return reason_for(text, "a local file is read through its address");
        }
        let Some((option, value)) = curl_option_and_value(text, before) else { continue };
        let is_cluster = option.starts_with('-') && !option.starts_with("--");
        if !is_curl_data_option(&option) && !is_cluster {
            if text.to_ascii_lowercase().starts_with("file:") {
                return reason_for(text, "a local file is read through its address");
            }
            continue;
        }
        if curl_value_uses_file(&option, value, before) {
            return reason_for(text, "a local file is sent or read, or a file is written");
        }
    }
    None
}

/// Whether a word is the address of a local file. `before` is the word before it, which may take it as a text to send.
fn is_file_address(text: &str, before: &str) -> bool {
    // The address may be composed of parts: `fil{e}:///x`.
    let scheme = text.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let scheme = scheme.strip_prefix("--url=").unwrap_or(&scheme);
    text.contains(':')
        && !text.contains(' ')
        && (scheme == "file" || scheme.contains(['{', '[']))
        && !matches!(
            before,
            "-d" | "--data" | "--data-raw" | "--json" | "-w" | "--write-out" | "--data-binary"
        )
}

/// The option to which a word belongs, and the value in the word; `None` if the word holds no value. For a word
/// that no option takes, the option is the word before it.
fn curl_option_and_value<'w>(text: &'w str, before: &'w str) -> Option<(Cow<'w, str>, &'w str)> {
    if let Some((option, value)) = text.split_once('=').filter(|(option, _)| option.starts_with("--")) {
        return Some((option.into(), value));
    }
    if text.starts_with("--") {
        return None;
    }
    if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
        // A cluster; the text after the letter is its value. The first letter that takes a
        // value takes the rest.
        let offset = letters.find(CURL_VALUES)?;
        let sends = letters[offset..].starts_with(['d', 'H', 'w', 'F', 'b']);
        return (sends && offset + 1 < letters.len())
            .then(|| (format!("-{}", &letters[offset..=offset]).into(), &letters[offset + 1..]));
    }
    match letter_awaiting_value(before) {
        Some(letter) => Some((format!("-{letter}").into(), text)),
        None => Some((before.into(), text)),
    }
}

/// Whether a long option of curl, perhaps abbreviated, takes data to send or a format.
fn is_curl_data_option(option: &str) -> bool {
    const DATA: &[&str] = &[
        "-d",
        "--data",
        "--data-ascii",
        "--data-binary",
        "--data-urlencode",
        "--json",
        "--url-query",
        "-H",
        "--header",
        "--proxy-header",
        "-w",
        "--write-out",
        "-F",
        "--form",
        "-b",
        "--cookie",
        "--url",
        "-u",
    ];
    option.len() > 3 && option.starts_with("--") && DATA.iter().any(|listed| listed.starts_with(option))
}

/// Whether the value of an option of curl names a file to send, to read or to write.
fn curl_value_uses_file(option: &str, value: &str, before: &str) -> bool {
    let value = value.strip_prefix('=').unwrap_or(value);
    let is_encoded = option.starts_with("--data-u") || before.starts_with("--data-u");
    let is_form = before.starts_with("--form")
        || before.ends_with('F')
        || option.starts_with("--form")
        || option == "-F";
    let is_cookie = option == "-b" || before == "--cookie" || option == "--cookie";
    value.starts_with('@')
        || value.contains("%output")
        || (is_encoded || option.contains("url-query")) && value.contains('@')
        || is_form
            && (value.contains("=@")
                || value.contains("=<")
                || value.contains(";type")
                || value.contains('@'))
        || is_cookie && !value.contains('=')
}

/// The last letter of a curl cluster, if it takes the next word.
fn letter_awaiting_value(word: &str) -> Option<char> {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let letter = letters.chars().next_back()?;
    let is_first = letters.find(CURL_VALUES) == Some(letters.len() - letter.len_utf8());
    is_first.then_some(letter)
}

/// Letters of curl that take a value.
const CURL_VALUES: &[char] = &[
    'd', 'H', 'w', 'F', 'b', 'X', 'A', 'e', 'm', 'u', 'x', 'r', 'C', 'y', 'Y', 'z', 'P', 'U', 'D', 'E', 'K',
    'Q', 'T', 't', 'o', 'c', 'h',
];

/// ffmpeg: addresses of files, and filters that load code or files, or write some.
pub(crate) fn media_filter(call: &CommandCall<'_>) -> Option<String> {
    const FILTERS: &[&str] = &[
        "ladspa",
        "lv2",
        "frei0r",
        "movie",
        "opencl",
        "dnn_",
        "sendcmd",
        "zmq",
        "file=",
        "filename=",
        "=f=",
        ":f=",
        "model",
        "whisper",
        "result=",
    ];
    let is_filter = |before: &str| {
        let name = before.trim_start_matches('-').split(':').next().unwrap_or_default();
        before.starts_with('-') && matches!(name, "vf" | "af" | "filter" | "filter_complex" | "lavfi")
    };
    let filter = call.ungranted_words().find(|(index, text)| {
        // Its own quoting is not parsed here (ffmpeg-utils(1), "Quoting and escaping").
        is_filter(&call.words[index - 1].text)
            && (FILTERS.iter().any(|listed| text.contains(listed))
                || text.contains(['\\', '\''])
                || text
                    .split(['=', ':', ',', ';', '|'])
                    .any(|part| part.contains('/') && call.is_outside(part)))
    });
    if let Some((_, text)) = filter {
        return reason_for(text, "a filter that loads or writes a file");
    }
    reason_for_any(call, "this lies outside the workspace", |text| {
        text.split([':', '|'])
            .skip(1)
            .any(|path| !path.starts_with("//") && path.contains('/') && call.is_outside(path))
    })
}

/// `host:path`: a file is sent or fetched.
pub(crate) fn remote_copy(call: &CommandCall<'_>) -> Option<String> {
    reason_for_any(call, "this names another machine", |text| {
        !text.starts_with('-')
            && (text.contains("://")
                || text.split_once(':').is_some_and(|(host, _)| !host.contains('/') && !host.is_empty()))
    })
}

/// rsync: files that it removes in the target folder.
pub(crate) fn rsync(call: &CommandCall<'_>) -> Option<String> {
    let removes = |word: &Word| word.text.starts_with("--del");
    let last = call.words.iter().rfind(|word| !word.text.starts_with('-'))?;
    let whole = last.text.trim_end_matches('/');
    let everything = whole.is_empty()
        || whole.split('/').all(|part| matches!(part, "." | ".."))
        || call.is_outside(&format!("{whole}/.."));
    if everything && call.words.iter().any(removes) {
        return reason_for(&last.text, "files that are not in the other folder are removed");
    }
    remote_copy(call)
}
