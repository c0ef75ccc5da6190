//! Clients whose first word is one of their commands: an unknown command may be a plugin with any
//! effect. Also programs that are harmless only with certain words.

use crate::shell::programs::call::CommandCall;
use crate::shell::programs::escape_options::operands;
use crate::shell::programs::lookup::{own_verb, stem, verb};
use crate::shell::programs::special::reason_for;

/// Needs a request if the command is not in `known` and not part of the grant.
fn unknown(call: &CommandCall<'_>, known: &str) -> Option<String> {
    let at = own_verb(call.words)?;
    let text = call.words[at].text.as_str();
    let is_free = at >= call.granted;
    (is_free && !known.split_whitespace().any(|own| own == text))
        .then(|| format!("{text}: not a command that is known; it may be a plugin, which runs anything"))
}

/// gh: commands of extensions; the words after `--` are for git.
pub(crate) fn gh(call: &CommandCall<'_>) -> Option<String> {
    const GH: &str = "auth browse codespace gist issue org pr project release repo run cache workflow alias api \
        attestation completion config extension gpg-key label ruleset search secret ssh-key status variable \
        help version accessibility agent-task environment reference cs";
    const GLAB: &str = "auth mr issue ci pipeline repo release label config api alias check-update completion \
        help version variable user ssh-key schedule snippet incident iteration milestone changelog cluster token \
        project opentofu stack duo job securefile deploy-key gpg-key runner-controller attestation";
    let name = stem(&call.words[0].text);
    let found = match name {
        "gh" => unknown(call, GH),
        "glab" => unknown(call, GLAB),
        _ => None,
    };
    let words = call.words;
    let at = own_verb(words).unwrap_or(1);
    let is_word = |nth: usize, text: &str| words.get(at + nth).is_some_and(|word| word.text == text);
    found.or_else(|| {
        let sets = (is_word(0, "variable") || is_word(0, "secret")) && is_word(1, "set");
        if sets && at >= call.granted {
            return reason_for("set", "a value, or a file of them, is sent");
        }
        let clones = is_word(0, "repo") && (is_word(1, "clone") || is_word(1, "fork"));
        if clones
            && let Some((_, text)) = call
                .ungranted_words()
                .find(|(_, text)| *text == "--" || (call.outside)(text) && !text.contains("://"))
        {
            return reason_for(text, "options for git, or a folder outside the workspace");
        }
        // `-F` and similar options are in the table; `-T` is a template from a file.
        let template = call.ungranted_words().find(|(at, text)| {
            text.strip_prefix("-T")
                .is_some_and(|path| !path.is_empty() && (call.outside)(path.trim_start_matches('=')))
                || matches!(*text, "-T" | "--template")
                    && words.get(at + 1).is_some_and(|path| (call.outside)(&path.text))
        });
        template.and_then(|(_, text)| reason_for(text, "a file outside the workspace is sent"))
    })
}

/// kubectl and its aliases: any other word may be a plugin.
pub(crate) fn kubectl(call: &CommandCall<'_>) -> Option<String> {
    const KUBECTL: &str = "get describe logs explain version cluster-info api-resources api-versions top wait diff \
        kustomize events completion options help annotate apply attach auth autoscale certificate config cordon cp \
        create debug delete drain edit exec expose label patch port-forward proxy replace rollout run scale set taint \
        uncordon plugin alpha";
    let found = if stem(&call.words[0].text) == "kubectl" { unknown(call, KUBECTL) } else { None };
    found.or_else(|| {
        let at = verb(call.words, None)?;
        let builds = call.words.iter().any(|word| word.text == "kustomize");
        let path = call.ungranted_words().find(|(_, text)| {
            let reads = ["columns-file=", "template-file=", "templatefile=", "jsonpath-file="];
            builds && (call.outside)(text)
                || text.split_once("-file=").is_some_and(|(_, path)| (call.outside)(path))
                || reads.iter().any(|option| text.contains(option))
        });
        path.filter(|(place, _)| *place > at).and_then(|(_, text)| {
            reason_for(text, "this lies outside the workspace, or says what is done with it")
        })
    })
}

/// helm: plugins, and charts outside the workspace.
pub(crate) fn helm(call: &CommandCall<'_>) -> Option<String> {
    const HELM: &str = "completion create dependency dep env get history hist install lint list ls package plugin pull \
        fetch push registry repo rollback search show inspect status template test uninstall del delete un upgrade \
        verify version help sync apply diff deps build destroy fetch charts write-values";
    unknown(call, HELM).or_else(|| {
        let leaves = |text: &str| {
            (text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..")) && (call.outside)(text)
        };
        call.ungranted_words()
            .find(|(_, text)| leaves(text))
            .and_then(|(_, text)| reason_for(text, "a chart outside the workspace"))
    })
}

/// docker: an unknown command may be a plugin. Terminal input for a container's program runs as a
/// command there.
pub(crate) fn docker_verbs(call: &CommandCall<'_>) -> Option<String> {
    const DOCKER: &str = "ps images logs inspect stats top port version info history diff build pull push tag rm rmi \
        start stop restart kill pause unpause wait rename search run exec cp create save load export import commit \
        attach update login logout events compose buildx builder container image network volume system context \
        plugin swarm service stack node secret config manifest trust scout checkpoint bud from unshare machine pod \
        healthcheck mount umount unmount untag help up down ls config top";
    if !matches!(stem(&call.words[0].text), "docker" | "podman" | "nerdctl") {
        return None;
    }
    unknown(call, DOCKER)
}

/// Clients of clouds must not send local files. For aws only read-only verbs pass; each verb of aws
/// tells its effect.
pub(crate) fn cloud(call: &CommandCall<'_>) -> Option<String> {
    crate::shell::programs::special::local_files(call).or_else(|| aws(call))
}

fn aws(call: &CommandCall<'_>) -> Option<String> {
    if stem(&call.words[0].text) != "aws" {
        return None;
    }
    let values =
        "--profile --region --output --query --endpoint-url --color --cli-read-timeout --cli-connect-timeout";
    let found = operands(call.words, values);
    let (at, action) = found.get(1)?;
    const READ_ONLY_VERBS: &[&str] = &[
        "describe",
        "list",
        "get",
        "ls",
        "help",
        "tail",
        "filter",
        "query",
        "scan",
        "wait",
        "head",
        "batch-get",
        "lookup",
        "search",
        "validate",
        "check",
        "select",
        "estimate",
        "test",
        "view",
        "history",
        "simulate",
        "detect",
        "start-query",
        "decode",
    ];
    let is_read_only = READ_ONLY_VERBS.iter().any(|begin| {
        action.text.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    let secret = action.text.contains("password")
        || action.text.contains("-token")
        || action.text.contains("get-object");
    (*at >= call.granted && (!is_read_only || secret))
        .then(|| format!("{}: this is not read-only", action.text))
}

/// systemctl and similar: only verbs that show something.
pub(crate) fn systemctl(call: &CommandCall<'_>) -> Option<String> {
    const SHOWS: &str = "status show cat help list-units list-unit-files list-timers list-sockets list-dependencies \
        list-jobs list-machines list-paths list-automounts is-active is-enabled is-failed is-system-running get-default \
        show-environment whoami";
    if stem(&call.words[0].text) != "systemctl" {
        return None;
    }
    let at = own_verb(call.words)?;
    let text = call.words[at].text.as_str();
    (at >= call.granted && !SHOWS.split_whitespace().any(|own| own == text))
        .then(|| format!("{text}: this changes the system"))
}

/// gpg: without a read-only verb, it decrypts, signs, encrypts or changes keys.
pub(crate) fn gpg(call: &CommandCall<'_>) -> Option<String> {
    const READ_ONLY_VERBS: &[&str] = &[
        "--verify",
        "-k",
        "-K",
        "--list-keys",
        "--list-key",
        "--list-secret-keys",
        "--list-public-keys",
        "--list-sigs",
        "--list-signatures",
        "--check-sigs",
        "--fingerprint",
        "--version",
        "--help",
        "-h",
        "--list-packets",
        "--print-md",
        "--print-mds",
        "--list-config",
        "--show-keys",
        "--dump-options",
        "--locate-keys",
    ];
    if !matches!(stem(&call.words[0].text), "gpg" | "gpgsm") {
        return None;
    }
    let name = |text: &'_ str| text.split('=').next().unwrap_or_default().to_owned();
    if call.words.iter().any(|word| READ_ONLY_VERBS.contains(&name(&word.text).as_str())) {
        return None;
    }
    let has_granted_option = call.words[..call.granted.min(call.words.len())]
        .iter()
        .skip(1)
        .any(|word| word.text.starts_with("--"));
    if has_granted_option {
        None
    } else {
        reason_for(&call.words[0].text, "this creates or changes something, or shows a secret")
    }
}

/// A statement for a database in lower case, with single blanks and no blank before a bracket.
pub(super) fn statement(text: &str) -> String {
    let mut plain = text.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    while plain.contains(" (") {
        plain = plain.replace(" (", "(");
    }
    plain
}

/// Whether a statement contains one of the words.
pub(super) fn has_word(statement: &str, words: &[&str]) -> bool {
    statement.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| words.contains(&word))
}
