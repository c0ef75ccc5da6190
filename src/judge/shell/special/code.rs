//! git, build tools, compilers, package managers.

use super::super::hatch::{Call, operands, verb};
use super::{any, hit};

/// Commands of git that are git's own; any other may be an alias that runs anything.
const GIT_VERBS: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "add",
    "commit",
    "push",
    "pull",
    "fetch",
    "clone",
    "checkout",
    "switch",
    "restore",
    "branch",
    "tag",
    "merge",
    "rebase",
    "reset",
    "revert",
    "cherry-pick",
    "stash",
    "remote",
    "rev-parse",
    "rev-list",
    "describe",
    "blame",
    "annotate",
    "grep",
    "ls-files",
    "ls-tree",
    "ls-remote",
    "shortlog",
    "reflog",
    "worktree",
    "submodule",
    "init",
    "mv",
    "rm",
    "clean",
    "config",
    "bisect",
    "archive",
    "bundle",
    "apply",
    "am",
    "format-patch",
    "cat-file",
    "diff-tree",
    "diff-index",
    "diff-files",
    "for-each-ref",
    "show-ref",
    "symbolic-ref",
    "name-rev",
    "merge-base",
    "cherry",
    "count-objects",
    "fsck",
    "gc",
    "prune",
    "repack",
    "notes",
    "range-diff",
    "whatchanged",
    "sparse-checkout",
    "check-ignore",
    "check-attr",
    "hash-object",
    "write-tree",
    "read-tree",
    "commit-tree",
    "update-ref",
    "update-index",
    "pack-refs",
    "version",
    "help",
    "show-branch",
    "verify-commit",
    "verify-tag",
    "mktree",
    "mktag",
    "interpret-trailers",
    "stripspace",
    "check-mailmap",
    "check-ref-format",
    "merge-tree",
    "merge-file",
    "rerere",
    "replace",
    "whatsnew",
    "diff-pairs",
    "refs",
    "patch-id",
    "get-tar-commit-id",
    "cat",
    "lfs",
    "fetch-pack",
    "send-pack",
    "checkout-index",
    "ls-patches",
    "index-pack",
    "pack-objects",
    "unpack-objects",
    "verify-pack",
    "backfill",
];

pub(in crate::judge::shell) fn git(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    const VALUES: &[&str] = &[
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--config-env",
        "--exec-path",
        "--super-prefix",
        "--attr-source",
    ];
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if !text.starts_with('-') {
            break;
        }
        let free = at >= call.granted;
        let name = text.split('=').next().unwrap_or(text);
        let joined = text.split_once('=').map(|(_, value)| value);
        let next = words.get(at + 1).map(|word| word.text.as_str());
        let value_is_free = joined.map_or(at + 1 >= call.granted, |_| free);
        match name {
            "-C" | "--work-tree"
                if value_is_free && joined.or(next).is_none_or(|path| (call.outside)(path)) =>
            {
                return hit(text, "another project");
            }
            "-C" | "--work-tree" => {}
            "--version"
            | "--help"
            | "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-replace-objects"
            | "--no-lazy-fetch"
            | "-v"
            | "-h"
            | "--html-path"
            | "--man-path"
            | "--info-path" => {}
            "--exec-path" if joined.is_none() => {}
            _ if free => return hit(text, "settings or programs for git on the command line"),
            _ => {}
        }
        at += if VALUES.contains(&text) && text != "--exec-path" { 2 } else { 1 };
    }
    let verb = words.get(at)?;
    if at >= call.granted && (!verb.is_literal() || !GIT_VERBS.contains(&verb.text.as_str())) {
        return hit(
            &verb.text,
            "not a command of git itself that is known to be harmless; it may be an alias",
        );
    }
    any(call, "this kind of address runs a program", |text| {
        // The name of a machine that begins with `-` is an option for ssh.
        let machine =
            text.split_once("://").map(|(_, rest)| rest.rsplit_once('@').map_or(rest, |(_, own)| own));
        let option = text.split_once("@-").is_some_and(|(user, own)| {
            own.contains(':') && user.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.'))
        });
        let text = text.rsplit('=').next().unwrap_or(text);
        option
            || machine.is_some_and(|name| name.starts_with('-'))
            || text.contains("://-")
            || text.contains("ext::")
            || text.contains("fd::")
            || text.starts_with('-') && text.contains("::")
    })
    .or_else(|| {
        let outside = |text: &str| {
            (text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..")) && (call.outside)(text)
        };
        match verb.text.as_str() {
            "fetch" | "pull" | "push" | "clone" | "ls-remote" | "remote" | "submodule" => {
                any(call, "another project", |text| outside(text.strip_prefix("--repo=").unwrap_or(text)))
            }
            "diff" | "grep"
                if words.iter().any(|word| word.text.len() > 4 && "--no-index".starts_with(&word.text)) =>
            {
                any(call, "this lies outside the workspace", |text| !text.starts_with('-') && outside(text))
            }
            "clean" => {
                any(call, "this removes what lies there", |text| !text.starts_with('-') && outside(text))
            }
            _ => None,
        }
    })
    .or_else(|| match verb.text.as_str() {
        "pull" => any(call, "this opens an editor", |text| {
            text.split_once('=').is_some_and(|(name, how)| {
                name.len() > 2 && "--rebase".starts_with(name) && how.starts_with('i')
            })
        }),
        // The signature is checked by another program.
        "log" | "show" | "branch" | "tag" | "for-each-ref" | "reflog" | "whatchanged" | "rev-list"
        | "shortlog" => {
            any(call, "this runs gpg", |text| text.contains("%G") || text.contains("%(signature"))
        }
        "rm" => removes_all(call, at),
        "stash" if !words.iter().any(|word| word.text == "show") => {
            any(call, "this asks", |text| text == "-p" || text.len() > 2 && "--patch".starts_with(text))
        }
        _ => None,
    })
    .or_else(|| {
        // `git log --output` and its like are in the table; file: addresses outside are projects.
        any(call, "another project", |text| {
            text.strip_prefix("file://").is_some_and(|path| (call.outside)(path))
        })
    })
}

/// `git rm -r .`: the whole workspace goes.
fn removes_all(call: &Call<'_>, verb: usize) -> Option<String> {
    let words = &call.words[verb + 1..];
    let told = |wanted: &str| words.iter().any(|word| word.text == wanted);
    let recursive = words
        .iter()
        .any(|word| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('r'));
    if told("--cached") || told("-n") || told("--dry-run") || !recursive {
        return None;
    }
    any(call, "all files of the project are removed", |text| {
        let path = text.trim_start_matches("./").trim_end_matches('/');
        matches!(path, "" | "." | ".." | "*" | ":/" | ":" | "**") && !text.is_empty()
            || path.ends_with("..")
            || !text.starts_with('-') && (call.outside)(&format!("{path}/.."))
    })
}

/// The folder a clone goes to.
pub(in crate::judge::shell) fn clone(call: &Call<'_>) -> Option<String> {
    let found = operands(
        call.words,
        "-b --branch -o --origin --depth -j --jobs --filter --shallow-since --shallow-exclude --server-option",
    );
    // git, clone, address, folder
    let (at, folder) = found.get(2)?;
    (*at >= call.granted && (call.outside)(&folder.text))
        .then(|| format!("{}: outside the workspace", folder.text))
}

/// git config: reading is free, and so is a name and an address for commits.
pub(in crate::judge::shell) fn git_config(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let names: Vec<(usize, &str)> = operands(words, "--type --default -f --file --blob --comment --value")
        .into_iter()
        .skip(1)
        .map(|(at, word)| (at, word.text.as_str()))
        .collect();
    // Only the first operand is a verb: in another place it is a value that is set.
    let verb = names.first().map_or("", |(_, name)| *name);
    let options = || words.iter().map(|word| word.text.as_str()).take_while(|text| *text != "--");
    let reads = matches!(verb, "get" | "list")
        || options().any(|text| {
            matches!(
                text,
                "--get"
                    | "--get-all"
                    | "--get-regexp"
                    | "--get-urlmatch"
                    | "--get-color"
                    | "--list"
                    | "-l"
                    | "--get-colorbool"
            )
        });
    const CHANGES: &[&str] = &[
        "--add",
        "--unset",
        "--unset-all",
        "--replace-all",
        "--remove-section",
        "--rename-section",
        "--edit",
    ];
    let changes = matches!(verb, "set" | "unset" | "edit" | "rename-section" | "remove-section")
        || options().any(|text| text.len() > 2 && CHANGES.iter().any(|option| option.starts_with(text)));
    if (reads || names.len() <= 1) && !changes {
        return None;
    }
    let elsewhere = words.iter().any(|word| {
        matches!(word.text.as_str(), "--global" | "--system")
            || word.text.len() > 3
                && ["--global", "--system"].iter().any(|option| option.starts_with(&word.text))
    });
    let harmless = matches!(names.first(), Some((_, "user.name" | "user.email"))) && !elsewhere && !changes;
    let spelled = names.first().is_some_and(|(at, _)| *at < call.granted);
    let reaches = call
        .free()
        .any(|(_, text)| text.len() > 3 && ["--global", "--system"].iter().any(|o| o.starts_with(text)));
    if harmless || spelled && !reaches { None } else { hit("git config", "settings of git can run programs") }
}

/// make: variables on the command line can name programs.
pub(in crate::judge::shell) fn make(call: &Call<'_>) -> Option<String> {
    const HARMLESS: &[&str] = &[
        "V",
        "VERBOSE",
        "DEBUG",
        "CI",
        "JOBS",
        "VERSION",
        "RELEASE",
        "PROFILE",
        "MODE",
        "TARGET",
        "ARCH",
        "FEATURES",
        "N",
        "Q",
        "TEST",
        "NAME",
        "BUILD",
        "BUILD_TYPE",
        "CONFIG",
        "PLATFORM",
        "OS",
        "NO_COLOR",
        "FAST",
        "STRICT",
        "COVERAGE",
        "SILENT",
    ];
    any(call, "a variable of make may name a program", |text| {
        if text.starts_with('-') {
            return false;
        }
        let Some((name, value)) = text.split_once('=') else { return false };
        let name = name.trim_end_matches([':', '+', '?', '!']);
        let tame = value.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-'));
        !(HARMLESS.contains(&name) && tame)
    })
}

/// cmake -D: variables that name programs or code.
pub(in crate::judge::shell) fn cmake(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    // What stands behind is for the build tool.
    let tame = |text: &str| {
        !text.contains('=')
            && text.strip_prefix('-').is_none_or(|letters| {
                letters.trim_start_matches(['j', 'k', 's', 'v', 'n']).bytes().all(|c| c.is_ascii_digit())
            })
    };
    if let Some(reason) = behind_dashes(call, |text, _| !tame(text)) {
        return Some(reason);
    }
    for (at, text) in call.free() {
        let target = text.strip_prefix("--target=").or_else(|| text.strip_prefix("-t")).unwrap_or(text);
        if target.starts_with("install") && target != "installcheck" {
            return hit(text, "this installs");
        }
        let definition = text.strip_prefix("-D").map(|rest| {
            if rest.is_empty() { words.get(at + 1).map_or("", |word| word.text.as_str()) } else { rest }
        });
        let Some(definition) = definition else { continue };
        let name = definition.split(['=', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let harmless = [
            "CMAKE_BUILD_TYPE",
            "CMAKE_EXPORT_COMPILE_COMMANDS",
            "BUILD_SHARED_LIBS",
            "BUILD_TESTING",
            "CMAKE_CXX_STANDARD",
            "CMAKE_C_STANDARD",
            "CMAKE_VERBOSE_MAKEFILE",
        ];
        let simple = definition.split_once('=').is_some_and(|(_, value)| {
            matches!(
                value.to_ascii_uppercase().as_str(),
                "ON" | "OFF" | "TRUE" | "FALSE" | "YES" | "NO" | "0" | "1"
            )
        });
        if !harmless.contains(&name.as_str()) && !simple {
            return hit(definition, "a setting that may name a program");
        }
    }
    None
}

/// Properties that replace the program or the code that runs.
pub(in crate::judge::shell) fn java_properties(call: &Call<'_>) -> Option<String> {
    let maven = call.words[0].text.rsplit('/').next().is_some_and(|name| name.starts_with("mvn"));
    any(call, "a property that may run a program", |text| {
        // `group:plugin:goal` is fetched and run.
        if maven && !text.starts_with('-') && text.matches(':').count() > 1 {
            return true;
        }
        let Some(name) = text.strip_prefix("-D").or_else(|| text.strip_prefix("-P")) else {
            return text.contains("exec:") || text.contains("antrun:") || text.contains("groovy:");
        };
        let lower = name.to_ascii_lowercase();
        [
            "exec",
            "java.home",
            "jvm",
            "argline",
            "path",
            "plugin",
            "settings",
            "classpath",
            "script",
            "init",
            "agent",
            "repo",
        ]
        .iter()
        .any(|word| lower.split('=').next().unwrap_or_default().contains(word))
    })
}

/// Arguments from a file, and options handed on to other programs.
pub(in crate::judge::shell) fn compiler(call: &Call<'_>) -> Option<String> {
    any(call, "options from a file, or for the programs behind", |text| {
        text.starts_with('@')
            || text.starts_with("-Wl,-plugin")
            || text.starts_with("-Wl,--plugin")
            || text.starts_with("-B")
            || text.starts_with("-fplugin")
            || text.starts_with("-specs")
            || text.starts_with("-fuse-ld")
            || text.starts_with("-Wp,")
            || text.starts_with("-Xplugin")
            || text == "-p" && call.words[0].text == "javac"
            || text.starts_with("-f") && text.split_once('=').is_some_and(|(_, path)| (call.outside)(path))
            || text.starts_with("-Wl,")
                && (text.contains(",-o,") || text.contains("-Map"))
                && text.split([',', '=']).any(|part| (call.outside)(part))
            || text.starts_with("-fpass-plugin")
            || text.strip_prefix("-o").is_some_and(|path| !path.is_empty() && (call.outside)(path))
    })
}

/// ldd starts the program it is asked about.
pub(in crate::judge::shell) fn ldd(call: &Call<'_>) -> Option<String> {
    any(call, "ldd may run the program", |text| !text.starts_with('-'))
}

pub(in crate::judge::shell) fn protoc(call: &Call<'_>) -> Option<String> {
    any(call, "a plugin, a list of options, or output outside", |text| {
        text.starts_with('@')
            || text.starts_with("--plugin")
            || text
                .strip_prefix("--")
                .and_then(|text| text.split_once("_out="))
                .is_some_and(|(_, path)| (call.outside)(path.rsplit(':').next().unwrap_or(path)))
    })
}

/// Commands of cargo, and of programs for it that many use.
const CARGO_VERBS: &[&str] = &[
    "build",
    "b",
    "check",
    "c",
    "test",
    "t",
    "bench",
    "run",
    "r",
    "doc",
    "d",
    "rustdoc",
    "rustc",
    "clippy",
    "fix",
    "fmt",
    "add",
    "remove",
    "rm",
    "tree",
    "update",
    "metadata",
    "search",
    "info",
    "new",
    "init",
    "clean",
    "generate-lockfile",
    "fetch",
    "vendor",
    "package",
    "publish",
    "install",
    "uninstall",
    "login",
    "logout",
    "owner",
    "yank",
    "locate-project",
    "pkgid",
    "verify-project",
    "version",
    "help",
    "report",
    "config",
    "read-manifest",
    "nextest",
    "llvm-cov",
    "tarpaulin",
    "watch",
    "expand",
    "make",
    "audit",
    "deny",
    "insta",
    "bloat",
    "flamegraph",
    "criterion",
    "zigbuild",
    "xwin",
    "binstall",
    "miri",
    "outdated",
    "machete",
    "hack",
    "udeps",
    "semver-checks",
    "msrv",
    "upgrade",
    "sort",
    "release",
    "fuzz",
    "mutants",
    "geiger",
    "vet",
    "cross",
    "set-version",
    "readme",
    "license",
    "about",
    "depgraph",
    "modules",
    "asm",
    "careful",
    "leptos",
    "tauri",
    "component",
    "lambda",
    "sqlx",
    "dist",
    "workspaces",
    "hakari",
    "spellcheck",
    "rdme",
    "xtask",
    "auditable",
];

/// cargo: `+toolchain` is fine; what stands behind `--` belongs to another program.
pub(in crate::judge::shell) fn cargo(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let at = verb(words, None)?;
    // The description of a target names the linker.
    let target = call.free().find(|(at, text)| {
        let file = text.strip_prefix("--target=").or((words[at - 1].text == "--target").then_some(*text));
        file.is_some_and(|file| file.contains('/') || file.ends_with(".json"))
    });
    if let Some((_, text)) = target {
        return hit(text, "the description of a target may name any linker");
    }
    if let Some(reason) = toolchain(call) {
        return Some(reason);
    }
    let own = super::super::hatch::own_verb(words).unwrap_or(at);
    if own >= call.granted
        && !words[own].text.starts_with('-')
        && !CARGO_VERBS.contains(&words[own].text.as_str())
    {
        return hit(&words[own].text, "not a command of cargo that is known; it may be any program");
    }
    // Behind `--`, `cargo clippy` and `cargo rustc` hand options to the compiler.
    if matches!(words[at].text.as_str(), "clippy" | "rustc" | "rustdoc" | "c" | "check" | "doc") {
        return behind_dashes(call, |text, next| {
            let option = if text == "-C" || text == "--codegen" {
                next
            } else {
                text.strip_prefix("-C").map_or("", |option| option.trim_start_matches('='))
            };
            ["linker", "link-arg", "link-args", "pre-link", "dlltool", "profile"]
                .iter()
                .any(|word| option.starts_with(word))
                || text.starts_with("-Z")
                || text.starts_with("--sysroot")
                || text.starts_with("--emit") && text.contains('/')
                || text == "-o"
                || text.starts_with("--out-dir")
                || text.starts_with("--codegen=")
                || text.starts_with("--fix")
                || text.starts_with('@')
                || text.starts_with("--config")
        });
    }
    None
}

/// `cargo fmt -- --config …`
pub(in crate::judge::shell) fn cargo_fmt(call: &Call<'_>) -> Option<String> {
    behind_dashes(call, |text, _| text.starts_with("--config") || text.starts_with('@'))
}

fn behind_dashes(call: &Call<'_>, wrong: impl Fn(&str, &str) -> bool) -> Option<String> {
    let words = call.words;
    let dashes = words.iter().position(|word| word.text == "--")?;
    words.iter().enumerate().skip((dashes + 1).max(call.granted)).find_map(|(at, word)| {
        let next = words.get(at + 1).map_or("", |word| word.text.as_str());
        if wrong(&word.text, next) {
            hit(&word.text, "this makes the program behind run another")
        } else {
            None
        }
    })
}

/// All that rustup stands before take `+TOOLCHAIN` first, which may be a folder (rustup's manual, "Overrides").
pub(in crate::judge::shell) fn toolchain(call: &Call<'_>) -> Option<String> {
    any(call, "another toolchain, by its folder", |text| text.starts_with('+') && text.contains('/'))
}

/// rustc: code generation options that name programs, arguments from a file.
pub(in crate::judge::shell) fn rustc(call: &Call<'_>) -> Option<String> {
    if let Some(reason) = toolchain(call) {
        return Some(reason);
    }
    let words = call.words;
    call.free().find_map(|(at, text)| {
        let next = words.get(at + 1).map_or("", |word| word.text.as_str());
        let option = match text {
            "-C" | "--codegen" => next,
            _ => text
                .strip_prefix("--codegen=")
                .or_else(|| text.strip_prefix("-C"))
                .unwrap_or("")
                .trim_start_matches('='),
        };
        let names_program = ["linker", "link-arg", "link-args", "pre-link", "dlltool", "ar"]
            .iter()
            .any(|w| option.starts_with(w));
        let emits = |text: &str| {
            text.split_once('=')
                .is_some_and(|(_, path)| (call.outside)(path.rsplit('=').next().unwrap_or(path)))
        };
        let before = words[at - 1].text.as_str();
        let leaves = text.starts_with("--emit=") && emits(text.strip_prefix("--emit=").unwrap_or(text))
            || matches!(before, "--emit" | "--extern" | "--print") && emits(text)
            || text.starts_with("--print=") && emits(text.strip_prefix("--print=").unwrap_or(text));
        if names_program || leaves || text.starts_with('@') {
            hit(text, "the linker is another program")
        } else {
            None
        }
    })
}

/// npm: addresses of code are loaded and run.
pub(in crate::judge::shell) fn npm(call: &Call<'_>) -> Option<String> {
    // `bun file.ts` runs the file.
    let name = call.words[0].text.as_str();
    if name == "bun"
        && let Some(at) = verb(call.words, None)
        && at >= call.granted
        && call.words[at].text.contains(['.', '/'])
    {
        return hit(&call.words[at].text, "code named on the command line");
    }
    if name == "bun"
        && let Some((_, text)) = call
            .free()
            .find(|(at, text)| *text == "-" || text.starts_with("./") && call.words[at - 1].text == "run")
    {
        return hit(text, "code named on the command line");
    }
    // Code from a place that a word names is not a package by its name.
    const PLACES: &[&str] =
        &["git+", "git://", "http://", "https://", "github:", "gitlab:", "bitbucket:", "gist:"];
    let installs = verb(call.words, None)
        .is_some_and(|at| matches!(call.words[at].text.as_str(), "install" | "i" | "add" | "ci"));
    if installs
        && let Some(reason) = any(call, "code from elsewhere", |text| {
            // `user/repository` lies at GitHub; `@scope/package` is a package.
            let repository = !text.starts_with(['@', '-', '.', '/', '~']) && text.matches('/').count() == 1;
            repository && !text.contains("@npm:")
                || PLACES.iter().any(|place| text.starts_with(place) || text.contains(&format!("@{place}")))
        })
    {
        return Some(reason);
    }
    // What stands behind `--` is for the script of the project.
    let dashes = call.words.iter().position(|word| word.text == "--");
    let scripts = super::super::hatch::names_a_script(call.words);
    let behind = dashes.filter(|_| scripts).map_or(&[][..], |at| &call.words[at..]);
    let is_for_script = |text: &str| behind.iter().any(|word| word.text == text);
    // `npm install ../x` runs what the folder says.
    any(call, "another project", |text| {
        let path = text.rsplit_once("file:").map_or(text, |(_, path)| path);
        let leaves = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
        !text.starts_with('-') && leaves && !is_for_script(text) && (call.outside)(path)
    })
    .or_else(|| {
        // pnpm does what these say to itself.
        let at = verb(call.words, None).filter(|at| *at >= call.granted && name == "pnpm")?;
        let text = call.words[at].text.as_str();
        matches!(text, "self-update" | "setup").then(|| format!("{text}: this changes the system"))
    })
}

/// pytest: tests outside the workspace are code from elsewhere; `-o` sets options.
pub(in crate::judge::shell) fn pytest(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    call.free().find_map(|(at, text)| {
        if text.starts_with('@') {
            return hit(text, "options from a file");
        }
        let value = match text {
            "-o" => words.get(at + 1).map(|word| word.text.as_str()),
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
pub(in crate::judge::shell) fn go(call: &Call<'_>) -> Option<String> {
    let words = call.words;
    let at = verb(words, None)?;
    if words[at].text == "run" {
        // `go run ./cmd` is the project; `go run host/path@version` is not.
        if let Some((place, target)) = operands(words, "-exec -C -tags -ldflags -gcflags").get(1)
            && *place >= call.granted
            && (at >= call.granted
                || target.text.contains('@')
                || (call.outside)(&target.text)
                || !(target.text.starts_with('.') || target.text.ends_with(".go")))
        {
            return hit(&target.text, "code named on the command line");
        }
    }
    let elsewhere = call.free().find(|(at, text)| {
        let path = text.rsplit('=').next().unwrap_or(text);
        let pattern =
            matches!(words[at - 1].text.as_str(), "-run" | "-bench" | "-skip" | "-ldflags" | "-fuzz");
        let leaves = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
        let named = *text == path || text.contains("-replace") || text.contains("=..");
        !pattern && leaves && named && !text.starts_with("-run") && (call.outside)(path)
    });
    if let Some((_, text)) = elsewhere {
        return hit(text, "another project");
    }
    any(call, "flags that name another program", |text| {
        text.contains("-extld")
            || text.contains("-extldflags")
            || text.contains("-toolexec")
            || text.contains("-linkmode")
    })
}

pub(in crate::judge::shell) fn dotnet(call: &Call<'_>) -> Option<String> {
    any(call, "code or properties named on the command line", |text| {
        let lower = text.to_ascii_lowercase();
        lower.ends_with(".dll")
            || lower.ends_with(".exe")
            || lower.ends_with(".csx")
            || lower.starts_with("-p:")
            || lower.starts_with("/p:")
            || lower.starts_with("-property:")
            || lower.starts_with("--property:")
            || lower.starts_with("@")
            || lower.starts_with("-logger:")
            || lower.starts_with("-t:")
            || lower.starts_with("-target:")
            || lower.starts_with("--target:")
    })
}
