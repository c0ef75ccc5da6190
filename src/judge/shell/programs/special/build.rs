//! Build tools and compilers: variables, properties and argument files that name programs.

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::special::{reason_after_dashes, reason_for, reason_for_any};

/// cmake -D: variables that name programs or code.
pub(crate) fn cmake(call: &CommandCall<'_>) -> Option<String> {
    let words = call.words;
    // The following words are for the build tool.
    let is_harmless = |text: &str| {
        !text.contains('=')
            && text.strip_prefix('-').is_none_or(|letters| {
                letters.trim_start_matches(['j', 'k', 's', 'v', 'n']).bytes().all(|c| c.is_ascii_digit())
            })
    };
    if let Some(reason) = reason_after_dashes(call, |text, _| !is_harmless(text)) {
        return Some(reason);
    }
    for (index, text) in call.ungranted_words() {
        let target = text.strip_prefix("--target=").or_else(|| text.strip_prefix("-t")).unwrap_or(text);
        if target.starts_with("install") && target != "installcheck" {
            return reason_for(text, "this installs");
        }
        let definition = text.strip_prefix("-D").map(|rest| {
            if rest.is_empty() { words.get(index + 1).map_or("", |word| word.text.as_str()) } else { rest }
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
            return reason_for(definition, "a setting that may name a program");
        }
    }
    None
}

/// Properties that replace the program or the code that runs.
pub(crate) fn java_properties(call: &CommandCall<'_>) -> Option<String> {
    let maven = call.words[0].text.rsplit('/').next().is_some_and(|name| name.starts_with("mvn"));
    reason_for_any(call, "a property that may run a program", |text| {
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

/// Options of linkers that name an output file, perhaps abbreviated (ld(1)).
const LINKER_OUTPUT: &[&str] = &["-o", "--o", "-Map", "--Map", "-M", "--M", "-dep", "--dep"];

/// Compilers: options from a file, and options for other programs such as the linker and plugins.
pub(crate) fn compiler(call: &CommandCall<'_>) -> Option<String> {
    reason_for_any(call, "options from a file, or for the programs behind", |text| {
        text.starts_with('@')
            || text.starts_with("-Wl,")
                && text.split(',').any(|part| part.starts_with("-plugin") || part.starts_with("--plugin"))
            || text.starts_with("-B")
            || text.starts_with("-fplugin")
            || text.starts_with("-specs")
            || text.starts_with("-fuse-ld")
            || text.starts_with("-Wp,")
            || text.starts_with("-Xplugin")
            || text == "-p" && call.words[0].text == "javac"
            || text.starts_with("-f") && text.split_once('=').is_some_and(|(_, path)| call.is_outside(path))
            || text.starts_with("-Wl,")
                && text.split(',').any(|part| LINKER_OUTPUT.iter().any(|listed| part.starts_with(listed)))
                && text.split([',', '=']).any(|part| call.is_outside(part))
            || ["-MF", "-MJ"]
                .iter()
                .filter_map(|listed| text.strip_prefix(listed))
                .any(|path| call.is_outside(path))
            || text.starts_with("-Wa,") && text.split([',', '=']).any(|part| call.is_outside(part))
            || text.starts_with("-fpass-plugin")
            || text.strip_prefix("-o").is_some_and(|path| !path.is_empty() && call.is_outside(path))
    })
}

/// protoc: plugins, options from a file, and output outside the workspace.
pub(crate) fn protoc(call: &CommandCall<'_>) -> Option<String> {
    reason_for_any(call, "a plugin, a list of options, or output outside", |text| {
        text.starts_with('@')
            || text.starts_with("--plugin")
            || text
                .strip_prefix("--")
                .and_then(|text| text.split_once("_out="))
                .is_some_and(|(_, path)| call.is_outside(path.rsplit(':').next().unwrap_or(path)))
    })
}
