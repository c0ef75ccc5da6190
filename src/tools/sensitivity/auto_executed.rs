//! Files that programs execute or apply automatically: shells, editors, version control, package managers,
//! agents. Files that a user runs by name (`Makefile`, `package.json`, `build.rs`) are not included, because
//! they are the work itself.

/// Folders in which a program executes or applies every file.
const AUTO_EXECUTED_FOLDERS: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".claude",
    ".kode",
    ".agent",
    ".agents",
    ".codex",
    ".cursor",
    ".gemini",
    ".windsurf",
    ".husky",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".circleci",
    ".cargo",
    ".githooks",
    ".buildkite",
    ".woodpecker",
    ".direnv",
    ".mvn",
    ".yarn",
    ".ssh",
    ".gnupg",
    ".roo",
    ".continue",
    ".zed",
    ".fleet",
];

/// Files that programs execute or apply automatically.
const AUTO_EXECUTED_FILES: &[&str] = &[
    // Shells and sessions.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    "config.fish",
    ".inputrc",
    ".xinitrc",
    ".xsession",
    ".xprofile",
    ".xsessionrc",
    ".pam_environment",
    ".envrc",
    ".direnvrc",
    ".rvmrc",
    ".mise.toml",
    "mise.toml",
    ".tmux.conf",
    ".screenrc",
    "crontab",
    ".crontab",
    // Version control and package managers.
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".hgrc",
    ".lfsconfig",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".yarnrc.yaml",
    ".pnpmfile.cjs",
    ".pnp.cjs",
    "bunfig.toml",
    ".bazelrc",
    "pip.conf",
    ".condarc",
    ".gemrc",
    ".bundlerc",
    ".curlrc",
    ".wgetrc",
    // Editors, debuggers, interpreters.
    ".vimrc",
    ".gvimrc",
    ".exrc",
    ".nvimrc",
    ".emacs",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    ".irbrc",
    ".pryrc",
    ".pythonrc",
    ".pythonstartup",
    ".rprofile",
    ".psqlrc",
    ".sqliterc",
    ".editrc",
    ".nanorc",
    ".ideavimrc",
    ".exrc.lua",
    ".nvim.lua",
    ".tmux.conf.local",
    ".rspec",
    ".mailcap",
    "sitecustomize.py",
    "usercustomize.py",
    "conftest.py",
    // Hooks of tools.
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".gitlab-ci.yml",
    ".gitlab-ci.yaml",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker.yml",
    ".cirrus.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "jenkinsfile",
    "action.yml",
    "action.yaml",
    "renovate.json",
    "dependabot.yml",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".devcontainer.json",
    ".lintstagedrc",
    ".huskyrc",
    ".overcommit.yml",
    ".tool-versions",
    ".mise.toml",
    "mise.toml",
    ".rtx.toml",
    // Instructions for agents.
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "agent.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".aider.conf.yml",
    "copilot-instructions.md",
    "skill.md",
    ".mcp.json",
    "mcp.json",
    ".mcprc",
];

pub(super) fn is_auto_executed(parts: &[&str], below_home: Option<&[&str]>) -> bool {
    let Some((name, folders)) = parts.split_last() else { return false };
    folders.iter().chain([name]).any(|folder| AUTO_EXECUTED_FOLDERS.contains(folder))
        || AUTO_EXECUTED_FILES.contains(name)
        || name.ends_with(".pth")
        || folders
            .windows(2)
            .any(|pair| matches!(pair, [".github", "workflows" | "actions" | "instructions" | "prompts"]))
        || name.ends_with(".code-workspace")
        || name.ends_with(".gitconfig")
        || matches!(
            below_home,
            Some(
                ["bin", ..]
                    | [".local", "bin", ..]
                    | [".config", "autostart" | "systemd" | "fish" | "git" | "nvim" | "environment.d", ..]
                    | [".bashrc.d" | ".zshrc.d" | ".profile.d" | ".oh-my-zsh" | ".vim" | ".emacs.d", ..]
                    | [
                        ".config",
                        "pip" | "zed" | "helix" | "alacritty" | "kitty" | "sway" | "i3" | "hypr",
                        ..
                    ]
                    | [
                        ".config",
                        "code" | "vscodium" | "cursor" | "tmux" | "zsh" | "bash" | "mimeapps.list",
                        ..
                    ]
                    | [
                        ".config",
                        "direnv" | "emacs" | "mise" | "readline" | "gdb" | "starship.toml" | "plasma-workspace",
                        ..
                    ]
                    | [".nvm" | ".pyenv" | ".rbenv" | ".nodenv" | ".goenv" | ".asdf" | ".sdkman", ..]
                    | [".bun" | ".deno" | "go" | ".volta" | ".krew", "bin", ..]
                    | [".local", "share", "applications" | "systemd" | "dbus-1", ..]
                    | [".ipython" | ".jupyter" | ".gradle" | ".m2" | ".sbt" | ".bundle" | ".rustup", ..]
                    | ["library", "launchagents", ..]
            )
        )
        || matches!(parts, ["etc" | "proc" | "sys" | "boot", ..] | ["var", "spool", "cron", ..])
        // Folders with commands of all users.
        || matches!(
            parts,
            ["bin" | "sbin" | "lib" | "lib64", ..]
                | ["usr", "bin" | "sbin" | "lib" | "lib64" | "libexec", ..]
                | ["usr", "local", "bin" | "sbin" | "lib" | "libexec", ..]
        )
}
