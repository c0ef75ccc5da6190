//! The programs that the files of a folder name. Users see them before they decide about trust.

use std::path::Path;

use crate::hooks;
use mcp::{ServerConfig, parse_file};
use project::folders::ProjectFolders;
use project::workspace::FolderFiles;

/// The files that name programs.
pub(super) const PROGRAM_FILES: [&str; 5] =
    [hooks::OWN_FILE, ".claude/settings.json", ".claude/settings.local.json", ".mcprc", ".mcp.json"];
/// Maximum number of programs that are listed.
const MAX_PROGRAMS: usize = 50;
/// Maximum characters of one program with its arguments.
const MAX_PROGRAM_CHARS: usize = 300;

/// The programs and addresses of the hooks and MCP servers in these files, one text for each.
/// Unreadable files add nothing, because sessions report them.
pub(super) fn programs(project: &ProjectFolders, found_files: &[FolderFiles]) -> Vec<String> {
    let mut found = Vec::new();
    let files = found_files.iter().flat_map(|of| of.files.iter().map(move |file| (&of.folder, file)));
    for (folder, (path, content)) in files {
        let (Ok(bytes), name) = (content, project.display_name(folder, path)) else { continue };
        if hooks::PROJECT_FILES.iter().any(|file| path == Path::new(file)) {
            let hooks = project::hooks::read_hook_file(path, bytes).hooks;
            let runs = |hook: project::hooks::Hook| {
                format!("{name}: {} runs {}", hook.event.name(), shorten_program(&hook.command))
            };
            found.extend(hooks.into_iter().map(runs));
        } else {
            for server in parse_file(&name, bytes).servers {
                let Ok(config) = server.config else { continue };
                found.extend(
                    server_programs(&config).map(|what| format!("{name}: MCP server {} {what}", server.name)),
                );
            }
        }
    }
    if found.len() > MAX_PROGRAMS {
        let more = found.len() - MAX_PROGRAMS;
        found.truncate(MAX_PROGRAMS);
        found.push(format!("and {more} more"));
    }
    found
}

/// The programs and addresses of one server.
fn server_programs(config: &ServerConfig) -> impl Iterator<Item = String> {
    let started = config.command.iter().map(|command| {
        let argv: Vec<&str> =
            std::iter::once(command.as_str()).chain(config.args.iter().map(String::as_str)).collect();
        format!("starts {}", shorten_program(&argv.join(" ")))
    });
    let reached = config.url.iter().map(|url| format!("is at {}", shorten_program(url)));
    let headers = config.headers_command.iter().map(|command| format!("runs {}", shorten_program(command)));
    started.chain(reached).chain(headers)
}

fn shorten_program(text: &str) -> String {
    match text.char_indices().nth(MAX_PROGRAM_CHARS) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::workspace::ScannedFile;

    fn scanned_file(path: &str, text: &str) -> ScannedFile {
        (path.into(), Ok(text.as_bytes().to_vec()))
    }

    fn programs(files: &[ScannedFile]) -> Vec<String> {
        let project =
            ProjectFolders::find(Path::new("/w/sub"), Path::new("/nonexistent")).widened_to(Path::new("/w"));
        let folder = |folder: &str| FolderFiles { folder: folder.into(), files: files.to_vec() };
        let above = super::programs(&project, &[folder("/w")]);
        let own = super::programs(&project, &[folder("/w/sub")]);
        let named: Vec<String> = own.iter().take(MAX_PROGRAMS).map(|text| format!("/w/{text}")).collect();
        assert_eq!(above[..named.len()], named, "a file above the folder is shown by its whole path");
        own
    }

    #[test]
    fn programs_of_hooks_and_servers_are_listed_with_their_file() {
        let files = [
            scanned_file(".agentd/hooks/hooks.toml", "[[pre_tool_use]]\ncommand = 'sh check.sh'\n"),
            scanned_file(
                ".claude/settings.json",
                r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "date"}]}]}}"#,
            ),
            scanned_file(
                ".mcp.json",
                r#"{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]},
                    "web": {"url": "http://h/mcp", "headers_command": "token"}}}"#,
            ),
        ];
        let listed = [
            ".agentd/hooks/hooks.toml: pre_tool_use runs sh check.sh",
            ".claude/settings.json: stop runs date",
            ".mcp.json: MCP server git starts uvx mcp-server-git",
            ".mcp.json: MCP server web is at http://h/mcp",
            ".mcp.json: MCP server web runs token",
        ];
        assert_eq!(programs(&files), listed);
    }

    #[test]
    fn long_and_many_programs_are_cut() {
        let hooks = "[[stop]]\ncommand = '".to_owned() + &"ü".repeat(400) + "'\n";
        let listed = programs(&[scanned_file(".agentd/hooks/hooks.toml", &hooks.repeat(60))]);
        assert_eq!(listed.len(), MAX_PROGRAMS + 1);
        assert!(listed[0].ends_with("… (800 bytes in all)"), "{}", listed[0]);
        assert_eq!(listed[MAX_PROGRAMS], "and 10 more");
        assert!(programs(&[scanned_file(".mcp.json", "{")]).is_empty());
        assert!(programs(&[(".mcp.json".into(), Err("too large".into()))]).is_empty());
    }
}
