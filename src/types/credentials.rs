//! Locations below a home folder where programs store credentials, from their manuals and from developers'
//! machines. The file tools, the judgement of commands and the sandbox share this table. The file tools and the
//! sandbox also resolve links and variables in the home folder; the judgement uses only the text of a command.

/// Files and folders with credentials or other private data. Commands in a sandbox cannot see them.
pub const CREDENTIALS: &[&str] = &[
    // Keys, logins and certificates.
    ".ssh",
    ".gnupg",
    ".password-store",
    ".secrets",
    ".env",
    ".netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".git-credentials",
    ".config/git/credentials",
    // A connection to this socket returns the credentials that git remembers.
    ".cache/git/credential",
    ".git-credential-cache",
    ".smbcredentials",
    ".davfs2/secrets",
    ".vnc/passwd",
    ".sentryclirc",
    ".Xauthority",
    ".ICEauthority",
    ".config/age",
    ".age",
    ".config/sops",
    // Clouds and cluster tools.
    ".aws",
    ".azure",
    ".gcloud",
    ".config/gcloud",
    ".kube",
    ".docker",
    ".dockercfg",
    ".config/containers/auth.json",
    ".minikube",
    ".oci",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".vault_pass",
    ".tsh",
    ".fly",
    ".boto",
    ".s3cfg",
    ".mc/config.json",
    ".rclone.conf",
    ".config/rclone",
    ".config/doctl",
    ".config/hcloud",
    ".config/linode-cli",
    ".config/heroku",
    ".config/netlify",
    ".config/stripe",
    ".config/ngrok",
    ".ngrok2",
    ".config/openstack",
    ".pulumi/credentials.json",
    ".config/pulumi",
    ".config/vercel",
    ".config/wrangler",
    ".wrangler",
    ".netlify",
    ".supabase",
    ".dbt/profiles.yml",
    ".ansible/vault",
    ".databrickscfg",
    ".snowsql/config",
    ".snowflake",
    ".kaggle/kaggle.json",
    ".config/kaggle/kaggle.json",
    ".config/.wrangler",
    ".local/share/com.vercel.cli/auth.json",
    ".config/io.datasette.llm/keys.json",
    ".config/argocd",
    ".aliyun",
    ".cloudflared",
    ".railway",
    ".config/scw",
    ".config/helm/registry",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    // Code hosting services and package registries.
    ".config/gh",
    ".config/hub",
    ".config/tea",
    ".jfrog",
    ".hex/hex.config",
    ".local/share/uv/credentials",
    ".config/glab-cli",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".config/pypoetry/auth.toml",
    ".sbt/.credentials",
    ".ivy2/.credentials",
    ".subversion/auth",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings-security.xml",
    // This program's own keys, and other agents.
    ".config/agentd/keys",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".copilot",
    ".cursor/mcp.json",
    ".config/cursor/auth.json",
    ".continue/config.json",
    ".aider.conf.yml",
    ".qwen/oauth_creds.json",
    ".config/anthropic",
    ".config/openai",
    ".config/github-copilot",
    ".local/share/opencode/auth.json",
    // Password managers, browsers, mail, money.
    ".1password",
    ".bitwarden-ssh-agent.sock",
    ".purple/accounts.xml",
    ".config/weechat/sec.conf",
    ".local/share/DBeaverData",
    // Container and virtual machine runtimes that execute commands.
    ".colima",
    ".rd/docker.sock",
    ".orbstack/run",
    ".local/share/containers/podman/machine",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/keepassxc",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/gnome-keyring",
    ".mozilla",
    ".thunderbird",
    ".pki",
    ".config/vivaldi",
    ".config/Slack",
    ".config/Signal",
    ".config/discord",
    "snap/firefox",
    ".var/app/org.mozilla.firefox",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/filezilla",
    ".msmtprc",
    ".muttrc",
    ".mutt",
    ".config/mutt",
    ".config/neomutt",
    ".config/msmtp",
    ".mbsyncrc",
    ".fetchmailrc",
    ".electrum",
    ".bitcoin",
    ".ethereum",
    // Shell histories, which may contain passwords.
    ".bash_history",
    ".zsh_history",
    ".histfile",
    ".ash_history",
    ".local/state/bash/history",
    ".local/share/atuin",
    ".local/share/fish/fish_history",
    ".python_history",
    ".irb_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
    ".viminfo",
];

/// Settings of programs that may contain credentials among other values. Reading them needs a request. Commands
/// in a sandbox see them, because the programs fail without their settings.
pub const SETTINGS: &[&str] = &[
    ".npmrc",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet/NuGet.Config",
    ".config/NuGet/NuGet.Config",
    ".condarc",
    ".config/pip",
    ".pip/pip.conf",
    ".bundle/config",
    ".yarnrc",
    ".yarnrc.yml",
    ".config/configstore",
    ".config/git",
    ".config/containers",
    ".config/nix/nix.conf",
    ".wakatime.cfg",
];

/// Whether the path `parts` below the home folder is an entry of one of the two tables, or lies below one. ASCII case
/// is ignored, because some file systems ignore it.
#[must_use]
pub fn is_credential_path(parts: &[&str]) -> bool {
    let Some(first) = parts.first() else { return false };
    // Compare the first two letters first, because this runs for every word of a command line.
    let begins = first.as_bytes().get(..2);
    let like = |entry: &&&str| begins.is_some_and(|two| entry.as_bytes()[..2].eq_ignore_ascii_case(two));
    CREDENTIALS.iter().chain(SETTINGS).filter(like).any(|entry| {
        let mut names = entry.split('/');
        names.next().is_some_and(|name| name.eq_ignore_ascii_case(first))
            && names
                .zip(parts[1..].iter().map(Some).chain(std::iter::repeat(None)))
                .all(|(name, part)| part.is_some_and(|part| name.eq_ignore_ascii_case(part)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_table_matches_listed_paths_only() {
        for (path, expected) in [
            (".ssh", true),
            (".ssh/id_ed25519", true),
            (".SSH/config", true),
            (".config/bravesoftware/x", true),
            (".m2/settings.xml", true),
            (".m2/repository/a.jar", false),
            (".m2", false),
            (".config", false),
            (".sshx", false),
            ("ssh", false),
            ("", false),
        ] {
            let parts: Vec<&str> = path.split('/').collect();
            assert_eq!(is_credential_path(&parts), expected, "{path}");
        }
        assert!(!is_credential_path(&[]));
    }

    #[test]
    fn credential_tables_contain_unique_relative_names() {
        let mut all: Vec<&str> = CREDENTIALS.iter().chain(SETTINGS).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for name in all {
            assert!(
                name.len() > 1 && !name.starts_with('/') && !name.ends_with('/') && !name.contains("//"),
                "{name}"
            );
        }
    }
}
