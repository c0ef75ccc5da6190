//! Archives: written members, and programs that the archiver runs.

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::special::{reason_for, reason_for_any};

/// tar: the first word may be a cluster of letters without a dash; a remote archive runs a program.
pub(crate) fn tar(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    let first = words.get(1)?.text.as_str();
    if !first.starts_with('-') {
        if call.granted_count <= 1 && first.contains(['I', 'F', 'T', 'P', 'g']) {
            return reason_for(first, "these letters run a program, read a list or leave the folder");
        }
        // Letters with values take the next words, in their order.
        let mut index = 2;
        for letter in first.chars() {
            let takes_value = matches!(letter, 'f' | 'C' | 'b' | 'X' | 'N' | 'V' | 'L' | 'K' | 'H');
            if !takes_value {
                continue;
            }
            if let Some(word) = words.get(index)
                && call.is_ungranted(index)
                && matches!(letter, 'C' | 'f')
                && word.text != "-"
                && call.is_outside(&word.text)
            {
                return reason_for(&word.text, "this lies outside the workspace");
            }
            index += 1;
        }
    }
    reason_for_any(call, "a remote archive runs a program", |text| {
        let name = match text.strip_prefix('-') {
            Some(long) if long.starts_with("-f") => long.split_once('=').map_or(text, |(_, value)| value),
            Some(letters) => letters.split_once('f').map_or(text, |(_, value)| value),
            None => text,
        };
        name.split_once(':')
            .is_some_and(|(host, _)| !host.contains('/') && !host.is_empty() && !host.starts_with('-'))
    })
}

/// 7z: switches that remove files or name other archives, and paths outside the workspace.
pub(crate) fn seven_zip(call: &CommandCall<'_>) -> Option<String> {
    // `-spf` keeps full paths; list files contain names that the text does not show.
    reason_for_any(call, "this lies outside the workspace, or may", |text| {
        // Its switches are case-insensitive.
        let lower = if text.starts_with('-') { text.to_ascii_lowercase() } else { text.to_owned() };
        let text = lower.as_str();
        if ["-spf", "-sdel", "-sfx"].iter().any(|listed| text.starts_with(listed))
            || text.starts_with('@')
            || ["-i", "-x", "-ai", "-ax"].iter().any(|listed| text.starts_with(listed)) && text.contains('@')
        {
            return true;
        }
        if !text.starts_with('-') {
            return (text.starts_with(['/', '~']) || text.split('/').any(|part| part == ".."))
                && call.is_outside(text);
        }
        // `-u-!NAME` creates another archive, `-i!NAME` reads another file.
        let names = ["-u", "-i", "-x", "-ai", "-ax"];
        let is_named = |listed: &str| names.iter().any(|name| listed.starts_with(name));
        if let Some((_, path)) = text.split_once('!').filter(|(listed, _)| is_named(listed)) {
            return call.is_outside(path);
        }
        text.strip_prefix("-o").or_else(|| text.strip_prefix("-w")).is_some_and(|path| call.is_outside(path))
    })
}
