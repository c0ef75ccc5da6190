//! Package managers and tools of other languages.

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::lookup::find_verb;
use crate::shell::programs::operands::{names_a_script, operands};
use crate::shell::programs::special::{reason_for, reason_for_any};

/// npm: addresses of code, which npm downloads and runs.
pub(crate) fn npm(call: &CommandCall<'_>) -> Option<String> {
    // `bun file.ts` runs the file.
    let name = call.words[0].text.as_str();
    if name == "bun"
        && let Some(index) = find_verb(call.words, None)
        && call.is_ungranted(index)
        && call.words[index].text.contains(['.', '/'])
    {
        return reason_for(&call.words[index].text, "code named on the command line");
    }
    if name == "bun"
        && let Some((_, text)) = call
            .ungranted_words()
            .find(|(index, text)| *text == "-" || is_code(text) && may_be_run(call, *index))
    {
        return reason_for(text, "code named on the command line");
    }
    // Code from a path or address is not a package by its name.
    const CODE_SOURCES: &[&str] =
        &["git+", "git://", "http://", "https://", "github:", "gitlab:", "bitbucket:", "gist:"];
    let installs = find_verb(call.words, None)
        .is_some_and(|index| matches!(call.words[index].text.as_str(), "install" | "i" | "add" | "ci"));
    if installs
        && let Some(reason) = reason_for_any(call, "code from elsewhere", |text| {
            // `user/repository` is on GitHub; `@scope/package` is a package.
            let repository = !text.starts_with(['@', '-', '.', '/', '~']) && text.matches('/').count() == 1;
            repository && !text.contains("@npm:")
                || CODE_SOURCES
                    .iter()
                    .any(|source| text.starts_with(source) || text.contains(&format!("@{source}")))
        })
    {
        return Some(reason);
    }
    // The words after `--` are for the project's script.
    let dashes = call.words.iter().position(|word| word.text == "--");
    let scripts = names_a_script(call.words);
    let script_words = dashes.filter(|_| scripts).map_or(&[][..], |index| &call.words[index..]);
    let is_for_script = |text: &str| script_words.iter().any(|word| word.text == text);
    // `npm install ../x` runs the install scripts of the folder.
    reason_for_any(call, "another project", |text| {
        let path = text.rsplit_once("file:").map_or(text, |(_, path)| path);
        let leaves_workspace = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
        !text.starts_with('-') && leaves_workspace && !is_for_script(text) && call.is_outside(path)
    })
    .or_else(|| {
        // pnpm treats these words as its own commands.
        let index =
            find_verb(call.words, None).filter(|index| call.is_ungranted(*index) && name == "pnpm")?;
        let text = call.words[index].text.as_str();
        matches!(text, "self-update" | "setup").then(|| format!("{text}: this changes the system"))
    })
}

/// Whether `bun run` treats a text as a file, and not as the name of a script.
fn is_code(text: &str) -> bool {
    const ENDINGS: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "sh", "wasm"];
    let ending = text.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    !text.starts_with('-')
        && (text.contains('/') || ending.is_some_and(|listed| ENDINGS.contains(&listed.as_str())))
}

/// Whether a word may be the one that `bun run` runs: only options and their possible values precede
/// it.
fn may_be_run(call: &CommandCall<'_>, index: usize) -> bool {
    let Some(run) = call.words[..index].iter().position(|word| word.text == "run") else { return false };
    let is_option = |index: usize| call.words[index].text.starts_with('-');
    (run + 1..index).all(|before| is_option(before) || is_option(before - 1))
}

/// uv: a Python that is not a version but a program or a folder (docs.astral.sh/uv, "Python versions").
pub(crate) fn uv(call: &CommandCall<'_>) -> Option<String> {
    const KINDS: &[&str] = &["", "python", "cpython", "pypy", "graalpy", "cp", "pp"];
    let is_version = |text: &str| {
        let text = text.trim_start_matches(['>', '<', '=', '~', '!']);
        let kind = text.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let name = &text[..text.len() - kind.len()];
        let rest = kind.trim_start_matches(['-', '@']);
        KINDS.contains(&name)
            && (rest.starts_with(|c: char| c.is_ascii_digit()) || rest.is_empty() && !name.is_empty())
            && rest.bytes().all(|c| c.is_ascii_alphanumeric() || b".,<>=~!".contains(&c))
    };
    let python = call.ungranted_words().find(|(index, text)| {
        let before = call.words[index - 1].text.as_str();
        // `-qpX`
        let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let rest = cluster.and_then(|rest| rest.split_once('p')).map(|(_, value)| value);
        let joined = text.strip_prefix("--python=").or(rest.filter(|value| !value.is_empty()));
        let awaits_value =
            |word: &str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('p');
        let value = if awaits_value(before) || before == "--python" { Some(*text) } else { joined };
        value.is_some_and(|value| !is_version(value.trim_start_matches('=')))
    });
    python.and_then(|(_, text)| reason_for(text, "a Python that the line names"))
}

/// pytest: tests outside the workspace are foreign code; `-o` sets options.
pub(crate) fn pytest(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    call.ungranted_words().find_map(|(index, text)| {
        if text.starts_with('@') {
            return reason_for(text, "options from a file");
        }
        let value = match text {
            "-o" => words.get(index + 1).map(|word| word.text.as_str()),
            _ => text.strip_prefix("-o").filter(|rest| rest.contains('=')),
        };
        let value = value?;
        ["python_", "addopts", "pythonpath", "required", "usefixtures", "log_file", "cache_dir", "testpaths"]
            .iter()
            .any(|name| value.starts_with(name))
            .then(|| format!("{value}: a setting on the command line"))
    })
}

/// go: addresses of code, and linkers within flags.
pub(crate) fn go(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    let index = find_verb(words, None)?;
    if words[index].text == "run" {
        // `go run ./cmd` is the project; `go run host/path@version` is not.
        if let Some((target_index, target)) = operands(words, "-exec -C -tags -ldflags -gcflags").get(1)
            && call.is_ungranted(*target_index)
            && (call.is_ungranted(index)
                || target.text.contains('@')
                || call.is_outside(&target.text)
                || !(target.text.starts_with('.') || target.text.ends_with(".go")))
        {
            return reason_for(&target.text, "code named on the command line");
        }
    }
    let elsewhere = call.ungranted_words().find(|(index, text)| {
        let path = text.rsplit('=').next().unwrap_or(text);
        let pattern =
            matches!(words[index - 1].text.as_str(), "-run" | "-bench" | "-skip" | "-ldflags" | "-fuzz");
        let leaves_workspace = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
        let named = *text == path || text.contains("-replace") || text.contains("=..");
        !pattern && leaves_workspace && named && !text.starts_with("-run") && call.is_outside(path)
    });
    if let Some((_, text)) = elsewhere {
        return reason_for(text, "another project");
    }
    reason_for_any(call, "flags that name another program", |text| {
        text.contains("-extld")
            || text.contains("-extldflags")
            || text.contains("-toolexec")
            || text.contains("-linkmode")
    })
}
