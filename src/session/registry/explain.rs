//! What the rules would say of a call: judged from just what is given, without a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::judge::{self, BypassGuard, Policy, Rules};
use crate::session::effective_rules::with_links;
use crate::session::error::SessionError;
use crate::tools::{Access, Jail};
use crate::types::permission::{Mode, Verdict, VerdictKind};
use crate::types::tool::Subject;
use crate::workspace::repository;

/// A call to be judged, and all that the judgement depends on.
#[derive(Clone, Debug)]
pub struct Question {
    /// The folder of the session that would call.
    pub workspace: PathBuf,
    /// The user's home folder.
    pub home: PathBuf,
    /// The session's mode.
    pub mode: Mode,
    /// Whether commands that only look pass without a rule.
    pub safe_commands: bool,
    /// Allow rules.
    pub allow: Vec<String>,
    /// Ask rules.
    pub ask: Vec<String>,
    /// Deny rules.
    pub deny: Vec<String>,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
}

/// Judges the call. Runs nothing and changes nothing; paths are looked up, so it may wait for the
/// file system and belongs on a thread that may.
///
/// # Errors
/// A parameter is wrong.
pub fn explain(question: &Question) -> Result<Verdict, SessionError> {
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
    let workspace = absolute("workspace", &question.workspace)?;
    let home = absolute("home", &question.home)?;
    let rules = with_links(Arc::new(rules), &workspace, &home);
    let text = |key: &str| question.input.get(key).and_then(Value::as_str);
    let path_of = |name: &'static str| {
        let key = name.trim_start_matches("input.");
        text(key)
            .ok_or_else(|| SessionError::BadParam(name, format!("{} takes a text {key:?}", question.tool)))
    };
    let subject = match question.tool.as_str() {
        "Bash" => Ok(Subject::command(path_of("input.command")?)),
        "Read" => {
            file(path_of("input.file_path")?, Access::Read, &workspace, &home, |path| Subject::Read { path })
        }
        "LS" => file(path_of("input.path")?, Access::Read, &workspace, &home, |path| Subject::Read { path }),
        "Write" | "Edit" => {
            file(path_of("input.file_path")?, Access::Edit, &workspace, &home, |path| Subject::Edit { path })
        }
        "Delete" => file(path_of("input.file_path")?, Access::Edit, &workspace, &home, |path| {
            Subject::Delete { path }
        }),
        tool => {
            let why = format!("{tool:?} is not explained; Bash, Read, Write, Edit, Delete and LS are");
            return Err(SessionError::Unsupported("tool", why));
        }
    };
    let policy = Policy {
        mode: question.mode,
        rules: &rules,
        grants: &[],
        workspace: &workspace,
        additional: &[],
        home: &home,
        safe_mode: false,
        safe_commands: question.safe_commands,
        repository: repository(&workspace),
        bypass_guard: BypassGuard::Ask,
        key_folders: &judge::key_folders(&home),
    };
    Ok(match subject {
        Ok(subject) => judge::explain(&policy, &question.tool, &subject),
        Err(reason) => Verdict {
            verdict: VerdictKind::Deny,
            rule: None,
            reason,
            suggestions: Vec::new(),
            parts: Vec::new(),
            only_looks: false,
            read_only: false,
        },
    })
}

/// The folder without links; one that does not exist counts as it is written.
fn absolute(name: &'static str, path: &Path) -> Result<PathBuf, SessionError> {
    if !path.is_absolute() {
        return Err(SessionError::BadParam(name, "expected an absolute path".into()));
    }
    Ok(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))
}

/// What a path is, or why nothing may open it.
fn file(
    text: &str,
    access: Access,
    workspace: &Path,
    home: &Path,
    subject: impl Fn(crate::types::tool::ResolvedPath) -> Subject,
) -> Result<Subject, String> {
    let jail = Jail::open(&[workspace.to_path_buf()], home, &[]);
    match jail.decide(text, workspace, access) {
        Ok(held) => Ok(subject(held.resolved().clone())),
        Err(refusal) => Err(refusal.text),
    }
}
