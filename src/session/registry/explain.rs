//! Explains the verdict of a call from the given values only, without a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::effective_rules::resolve_linked_rules;
use crate::error::SessionError;
use judge::{BypassGuard, FileFacts, Policy, Rules};
use project::workspace::repository;
use tools::{Access, Jail};
use types::permission::{ExplainParams, Verdict, VerdictKind};
use types::tool::Subject;

/// Judges the call in the given folder, with its files, as if no sandbox hid any of them. Without a home folder of
/// its own, `home` applies. Nothing runs and nothing changes. Resolving paths and inspecting files reads the disk, so
/// this must run on a blocking thread.
pub fn explain(question: &ExplainParams, home: &Path) -> Result<Verdict, SessionError> {
    let rules = |name: &'static str, list: &[String]| {
        match name {
            "allow" => Rules::parse(list, &[], &[]),
            "ask" => Rules::parse(&[], list, &[]),
            _ => Rules::parse(&[], &[], list),
        }
        .map_err(|bad| SessionError::BadParam(name, bad.to_string()))
    };
    let rules = Rules {
        allow: rules("allow", &question.allow)?.allow,
        ask: rules("ask", &question.ask)?.ask,
        deny: rules("deny", &question.deny)?.deny,
    };
    let workspace = resolve_folder("workspace", &question.workspace)?;
    let home = resolve_folder("home", question.home.as_deref().unwrap_or(home))?;
    let rules = resolve_linked_rules(Arc::new(rules), &workspace, &home);
    let text = |key: &str| question.input.get(key).and_then(Value::as_str);
    let path_of = |name: &'static str| {
        let key = name.trim_start_matches("input.");
        text(key)
            .ok_or_else(|| SessionError::BadParam(name, format!("{} takes a text {key:?}", question.tool)))
    };
    let subject = match question.tool.as_str() {
        "Bash" => Ok(Subject::command(path_of("input.command")?)),
        "Read" => file_subject(path_of("input.file_path")?, Access::Read, &workspace, &home, |path| {
            Subject::Read { path }
        }),
        "LS" => file_subject(path_of("input.path")?, Access::Read, &workspace, &home, |path| Subject::Read {
            path,
        }),
        "Write" | "Edit" => {
            file_subject(path_of("input.file_path")?, Access::Edit, &workspace, &home, |path| Subject::Edit {
                path,
            })
        }
        "Delete" => file_subject(path_of("input.file_path")?, Access::Edit, &workspace, &home, |path| {
            Subject::Delete { path }
        }),
        tool => {
            let why = format!("{tool:?} is not explained; Bash, Read, Write, Edit, Delete and LS are");
            return Err(SessionError::Unsupported("tool", why));
        }
    };
    let policy = Policy {
        mode: question.mode.unwrap_or_default(),
        rules: &rules,
        grants: &[],
        workspace: &workspace,
        additional: &[],
        home: &home,
        safe_mode: false,
        safe_commands: question.safe_commands.unwrap_or(true),
        repository: repository(&workspace),
        bypass_guard: BypassGuard::Ask,
        key_folders: &judge::key_folders(&home),
        file_facts: &FileFacts::default(),
    };
    Ok(match subject {
        Ok(subject) => {
            let reads = judge::file_reads(&policy, &subject);
            let file_facts = tools::inspect_reads(reads, &workspace, &home);
            judge::explain(&Policy { file_facts: &file_facts, ..policy }, &question.tool, &subject)
        }
        Err(reason) => Verdict {
            verdict: VerdictKind::Deny,
            rule: None,
            reason,
            suggestions: Vec::new(),
            parts: Vec::new(),
            read_only_command: false,
            read_only: false,
        },
    })
}

/// Resolves the symbolic links of a folder. A missing folder is used as written.
fn resolve_folder(name: &'static str, path: &Path) -> Result<PathBuf, SessionError> {
    if !path.is_absolute() {
        return Err(SessionError::BadParam(name, "expected an absolute path".into()));
    }
    Ok(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))
}

/// Resolves a path. The error is the reason why no call may open it.
fn file_subject(
    text: &str,
    access: Access,
    workspace: &Path,
    home: &Path,
    subject: impl Fn(types::tool::ResolvedPath) -> Subject,
) -> Result<Subject, String> {
    let jail = Jail::open(&[workspace.to_path_buf()], home, &[]);
    match jail.decide(text, workspace, access) {
        Ok(held) => Ok(subject(held.resolved().clone())),
        Err(refusal) => Err(refusal.text),
    }
}
