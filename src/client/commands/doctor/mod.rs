//! `agentctl doctor`: finds problems of the set-up and says how to fix them. Starts no daemon.

mod daemon;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use self::daemon::{answers, daemon, storage};
use crate::connection::connector::{Connector, daemon_command};
use crate::failure::{Failure, code};
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::render::untrusted_parts;
use api::methods;
use api::params::{NoParams, RestrictionsParams, WorkspaceParams};
use types::restriction::Restriction;
use types::trust::TrustStatus;

/// How long the daemon program may take to check a configuration.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One line of the report; `fix` says how to fix the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    grade: Grade,
    what: String,
    fix: Option<String>,
}

fn ok(what: impl Into<String>) -> Finding {
    Finding { grade: Grade::Ok, what: what.into(), fix: None }
}

fn warn(what: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { grade: Grade::Warn, what: what.into(), fix: Some(fix.into()) }
}

fn fail(what: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { grade: Grade::Fail, what: what.into(), fix: Some(fix.into()) }
}

pub(crate) async fn doctor(reach: &Connector, out: &mut OutputStreams) -> Result<(), Failure> {
    let mut findings = Vec::new();
    for (file, required) in &reach.places.config_files {
        findings.push(check_config_file(file, *required));
    }
    findings.push(check_config(reach).await);
    if let Some(folder) = reach.places.socket.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        findings.push(check_private_folder("socket", folder, "[daemon] socket or AGENTD_SOCKET"));
    }
    findings.push(check_private_folder(
        "data",
        &reach.places.data_dir,
        "[daemon] data_dir or AGENTD_DATA_DIR",
    ));
    findings.extend(check_disk_space(&reach.places.data_dir));
    findings.extend(daemon(reach).await);
    findings.extend(check_project_trust(reach).await);
    findings.extend(list_restrictions(reach).await);
    let path = std::env::var("PATH").unwrap_or_default();
    findings.push(find_program(&path, "bash", "the Bash tool runs commands with it"));
    report(&findings, out)
}

/// Whether the daemon answers and can write, and nothing else: fast enough for a health check, and no provider is
/// called.
pub(crate) async fn quick(reach: &Connector, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.connect().await?;
    let status = client.call::<methods::daemon::Status>(&NoParams {}).await?;
    report(&[answers(&status), storage(&status)], out)
}

fn report(findings: &[Finding], out: &mut OutputStreams) -> Result<(), Failure> {
    for finding in findings {
        let (tone, word) = match finding.grade {
            Grade::Ok => (Tone::Good, "ok  "),
            Grade::Warn => (Tone::Warn, "warn"),
            Grade::Fail => (Tone::Bad, "fail"),
        };
        out.wrapped_line(
            &StyledLine::new(tone, word).and(Tone::Plain, format!("  {}", escape::line(&finding.what))),
        )?;
        if let Some(fix) = &finding.fix {
            out.wrapped_line(&StyledLine::new(Tone::Dim, format!("      → {}", escape::line(fix))))?;
        }
    }
    let failed = findings.iter().any(|f| f.grade == Grade::Fail);
    if failed { Err(Failure::silent(code::INTERNAL)) } else { Ok(()) }
}

fn check_config_file(file: &Path, required: bool) -> Finding {
    let name = file.display();
    match fs::read_to_string(file) {
        Ok(text) => match text.parse::<toml::Table>() {
            Ok(_) => ok(format!("config {name} is readable")),
            Err(error) => {
                let line = error
                    .span()
                    .map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
                fail(format!("config {name}, line {line}: {}", error.message()), "correct that line")
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => {
            ok(format!("config {name} does not exist; defaults hold"))
        }
        Err(error) => {
            fail(format!("config {name}: {error}"), "make it readable for you, or name another with --config")
        }
    }
}

/// Lets the daemon program check the configuration, because only that program knows every key.
async fn check_config(reach: &Connector) -> Finding {
    let mut command = tokio::process::Command::from(daemon_command(&reach.places));
    let output = command.arg("--check-config").kill_on_drop(true).output();
    let name = "the configuration";
    match tokio::time::timeout(CHECK_TIMEOUT, output).await {
        Ok(Ok(output)) if output.status.success() => ok(String::from_utf8_lossy(&output.stdout).trim()),
        Ok(Ok(output)) => {
            let error_text = String::from_utf8_lossy(&output.stderr);
            let error_text = error_text.trim();
            fail(
                error_text.strip_prefix("agentd: ").unwrap_or(error_text),
                "correct that; the daemon does not start with it",
            )
        }
        Ok(Err(error)) => warn(
            format!("{name} was not judged: agentd: {error}"),
            "install agentd in the folder of agentctl or in PATH",
        ),
        Err(_) => {
            warn(format!("{name} was not judged: agentd did not answer in time"), "agentd --check-config")
        }
    }
}

/// Checks that only the owner can access a folder of the daemon, by the same rules as the daemon.
fn check_private_folder(what: &str, folder: &Path, choose: &str) -> Finding {
    let name = folder.display();
    let meta = match fs::symlink_metadata(folder) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return ok(format!("{what} folder {name} does not exist yet; the daemon makes it"));
        }
        Err(error) => {
            return fail(format!("{what} folder {name}: {error}"), format!("choose another with {choose}"));
        }
    };
    let Err(error) = transport::check_folder(folder) else {
        return ok(format!("{what} folder {name} is yours alone"));
    };
    let is_mode = meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o1002 == 0;
    let fix = match is_mode && meta.mode() & 0o777 != 0o700 {
        true => format!("chmod 700 {name}"),
        false => format!("choose another with {choose}"),
    };
    fail(format!("{what}: {error}"), fix)
}

/// Free space below which new sessions soon cannot be written.
const CRITICAL_SPACE_BYTES: u64 = 100 << 20;
/// Free space below which the user gets a warning.
const LOW_SPACE_BYTES: u64 = 1 << 30;

/// The free space of the disk that holds the data folder. `None` if it cannot be read.
fn check_disk_space(folder: &Path) -> Option<Finding> {
    // The folder may not exist yet. Its nearest existing ancestor is on the same disk.
    let existing = folder.ancestors().find(|folder| folder.is_dir())?;
    let stat = nix::sys::statvfs::statvfs(existing).ok()?;
    let free = stat.blocks_available().saturating_mul(stat.fragment_size());
    Some(judge_disk(free, &existing.display().to_string()))
}

fn judge_disk(free: u64, folder: &str) -> Finding {
    let what = format!("{} MB are free for {folder}", free >> 20);
    match free {
        0..CRITICAL_SPACE_BYTES => fail(what, "free space; `agentctl prune -A` deletes ended sessions"),
        CRITICAL_SPACE_BYTES..LOW_SPACE_BYTES => {
            warn(what, "free space soon; `agentctl prune -A` deletes ended sessions")
        }
        _ => ok(what),
    }
}

/// The restrictions of the current folder, and those that could not be read. Without a daemon there is none to ask.
async fn list_restrictions(reach: &Connector) -> Vec<Finding> {
    let Ok(cwd) = crate::connection::paths::current_folder() else { return Vec::new() };
    let Ok(client) = reach.connect().await else { return Vec::new() };
    let params = RestrictionsParams { cwd: cwd.to_string_lossy().into_owned() };
    let restrictions = match client.call::<methods::workspace::Restrictions>(&params).await {
        Ok(restrictions) => restrictions,
        Err(error) => return vec![fail(format!("restrictions: {error}"), "agentctl daemon logs")],
    };
    let place = |it: &Restriction| match (&it.file, it.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.clone(),
        (None, _) => "configuration".into(),
    };
    let heading = format!(
        "restrictions in {}: {} in force, {} not readable",
        restrictions.cwd,
        restrictions.in_force.len(),
        restrictions.unread.len()
    );
    let mut findings = vec![ok(heading)];
    findings.extend(restrictions.in_force.iter().map(|it| ok(format!("  {}  ({})", it.text, place(it)))));
    findings.extend(restrictions.unread.iter().map(|it| {
        warn(
            format!("{}: {}", place(it), it.text),
            "correct it there; until then what it may restrict asks, or is not used",
        )
    }));
    findings
}

/// The project of the current folder, if a daemon runs: the folder whose files count, and whether they are trusted.
async fn check_project_trust(reach: &Connector) -> Option<Finding> {
    let client = reach.connect().await.ok()?;
    let cwd = crate::connection::paths::current_folder().ok()?.to_str()?.to_owned();
    let params = WorkspaceParams { cwd, count_changes: false };
    let status = client.call::<methods::workspace::Status>(&params).await.ok()?;
    Some(project_finding(&status))
}

fn project_finding(status: &TrustStatus) -> Finding {
    let root = status.project_root.as_deref().unwrap_or(&status.cwd);
    let what = format!("project root of {}: {root}", status.cwd);
    match status.trusted || untrusted_parts(&status.parts).is_empty() {
        true => ok(what),
        false => warn(
            format!("{what}; its files are not trusted as they are"),
            "agentctl trust shows them; sessions work without them",
        ),
    }
}

fn find_program(path: &str, program: &str, purpose: &str) -> Finding {
    let file = std::env::split_paths(path).map(|dir| dir.join(program)).find(|file| {
        fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    });
    match file {
        Some(file) => ok(format!("{program}: {}", file.display())),
        None => warn(format!("{program} is not in PATH: {purpose}"), format!("install {program}")),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::doctor::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use serde_json::json;

    #[test]
    fn doctor_names_line_of_invalid_config() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("config.toml");
        let check = |text: Option<&str>, required, grade| {
            match text {
                Some(text) => fs::write(&file, text).expect("written"),
                None => drop(fs::remove_file(&file)),
            }
            let finding = check_config_file(&file, required);
            assert_eq!(finding.grade, grade, "{finding:?}");
            finding.what
        };
        check(Some("[daemon]\n"), true, Grade::Ok);
        assert!(check(Some("[daemon]\nlog = \n"), true, Grade::Fail).contains("line 2"));
        check(None, true, Grade::Fail);
        check(None, false, Grade::Ok);
    }

    #[test]
    fn doctor_fails_shared_socket_folder_with_advice() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("run");
        let look = || check_private_folder("socket", &folder, "AGENTD_SOCKET");
        assert_eq!(look().grade, Grade::Ok, "the daemon makes it");
        fs::create_dir(&folder).expect("made");
        for (mode, grade, fix) in [
            (0o700, Grade::Ok, None),
            (0o755, Grade::Fail, Some("chmod 700")),
            (0o1777, Grade::Fail, Some("choose another with AGENTD_SOCKET")),
        ] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("changed");
            let finding = look();
            assert_eq!(finding.grade, grade, "{finding:?}");
            assert_eq!(finding.fix.is_some(), fix.is_some());
            assert!(
                finding.fix.iter().all(|advice| advice.starts_with(fix.unwrap_or_default())),
                "{finding:?}"
            );
        }
    }

    #[tokio::test]
    async fn doctor_fails_on_storage_and_warns_on_models() {
        let fake = FakeDaemon::start(|_, method, _| {
            if method == "daemon.check" {
                return Ok(json!({"problems": ["row 7 missing from index x"]}));
            }
            Ok(
                json!({"version": "9.9.9", "protocol_version": 1, "pid": 42, "started_at_ms": 0, "socket": "/s",
                "data_dir": "/d", "config_files": [], "providers": [], "main_model": null, "sessions": 0,
                "active_sessions": 0, "loaded_sessions": 0, "storage": "read-only", "confinement": "rlimits",
                "sandbox": {"attended": {"level": 2, "network": true, "text": "landlock"},
                    "unattended": {"network": false, "text": "there is none"},
                    "bubblewrap": "not found", "landlock": "works"}}),
            )
        });
        let grades: Vec<Grade> = daemon(&fake.connector()).await.iter().map(|f| f.grade).collect();
        let [grey, yellow, red] = [Grade::Ok, Grade::Warn, Grade::Fail];
        assert_eq!(grades, [grey, yellow, red, grey, grey, yellow, yellow, yellow, red]);
    }

    #[tokio::test]
    async fn quick_check_fails_without_daemon_or_storage_only() {
        for (storage, code) in [("ok", None), ("read-only", Some(4))] {
            let fake = FakeDaemon::start(move |_, _, _| {
                Ok(
                    json!({"version": "1", "protocol_version": 1, "pid": 42, "started_at_ms": 0, "socket": "/s",
                    "data_dir": "/d", "config_files": [], "providers": [], "main_model": null, "sessions": 0,
                    "active_sessions": 0, "storage": storage}),
                )
            });
            let reach = fake.connector();
            let (mut out, text, _) = captured_output();
            assert_eq!(quick(&reach, &mut out).await.err().map(|failure| failure.code), code, "{storage}");
            assert_eq!(text.text().lines().filter(|line| !line.starts_with("      ")).count(), 2);
            drop(fake);
            assert_eq!(quick(&reach, &mut out).await.expect_err("none answers").code, 69);
        }
    }

    #[test]
    fn doctor_exit_code_changes_on_failure_only() {
        let (mut out, text, _) = captured_output();
        assert!(report(&[ok("a"), warn("b\u{1b}", "c")], &mut out).is_ok());
        assert_eq!(report(&[fail("d", "e")], &mut out).expect_err("failed").code, 4);
        assert_eq!(text.text(), "ok    a\nwarn  b⟦ESC⟧\n      → c\nfail  d\n      → e\n");
    }

    #[test]
    fn doctor_reports_scarce_disk_space() {
        for (free, grade) in [(5 << 20, Grade::Fail), (500 << 20, Grade::Warn), (5 << 30, Grade::Ok)] {
            assert_eq!(judge_disk(free, "/d").grade, grade);
        }
        assert!(check_disk_space(Path::new("/nonexistent/below")).is_some());
    }

    #[test]
    fn doctor_names_project_root_and_missing_trust() {
        let found = |trusted, parts: &[&str], root: Option<&str>| TrustStatus {
            cwd: "/r/sub".into(),
            project_root: root.map(str::to_owned),
            trusted,
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
            ..TrustStatus::default()
        };
        for (status, grade, root) in [
            (found(true, &["/r/.mcp.json (x)"], Some("/r")), Grade::Ok, "/r/sub: /r"),
            (found(false, &["/r/.mcp.json (x)"], Some("/r")), Grade::Warn, "/r/sub: /r;"),
            (found(false, &[], None), Grade::Ok, "/r/sub: /r/sub"),
        ] {
            let finding = project_finding(&status);
            assert_eq!(finding.grade, grade, "{finding:?}");
            assert!(
                finding.what.starts_with("project root of ") && finding.what.contains(root),
                "{finding:?}"
            );
        }
    }

    #[test]
    fn doctor_searches_programs_in_path() {
        assert_eq!(find_program("/nonexistent:/bin:/usr/bin", "sh", "x").grade, Grade::Ok);
        assert_eq!(find_program("/nonexistent", "sh", "x").grade, Grade::Warn);
    }
}
