//! Names of files that probably contain credentials, shared by the file tools and the judgement of commands.

use super::credentials;

/// Names of folders with credentials.
const SECRET_FOLDERS: &[&str] =
    &[".ssh", ".aws", ".azure", ".gnupg", ".kube", ".password-store", ".secrets", ".gcloud"];

/// Names of files with credentials.
const SECRET_FILES: &[&str] = &[
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".vault_pass",
    ".vault-pass",
    ".ansible_vault_pass",
    "kubeconfig",
    ".kubeconfig",
    "kdc.keytab",
    "krb5.keytab",
    ".terraformrc",
    "auth.json",
    "token.json",
    ".token",
    "secring.gpg",
    "wallet.dat",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".dockercfg",
    ".vault-token",
    ".boto",
    ".s3cfg",
    ".rclone.conf",
    "rclone.conf",
    ".envrc",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "client_secret.json",
    "credentials.yml",
    "credentials.yaml",
    "credentials.db",
    "credentials.yml.enc",
    "client_secrets.json",
    "google-services-key.json",
    "gcp-key.json",
    "application_default_credentials.json",
    "terraform.tfvars",
    "terraform.tfstate",
    "master.key",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".node_repl_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
    ".viminfo",
    ".mysql_history",
];

const SECRET_ENDINGS: &[&str] = &[
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".p8",
    ".pkcs12",
    ".tfstate",
    ".gpg",
    ".age",
    ".keytab",
    ".ovpn",
    ".tfvars",
    ".jceks",
    ".pkcs8",
];

/// Endings of template `.env` files, which contain no secrets.
const HARMLESS_ENV: &[&str] = &["example", "sample", "template", "dist", "defaults", "schema"];

/// Whether a path, split at its slashes and with names folded for comparison, probably contains secrets.
/// `below_home` is its part below the home folder.
#[must_use]
pub fn is_secret(parts: &[&str], below_home: Option<&[&str]>) -> bool {
    let Some((name, folders)) = parts.split_last() else { return false };
    if folders.iter().chain([name]).any(|folder| is_folder(folder)) {
        return !name.ends_with(".pub");
    }
    is_file(name)
        || matches!(
            parts,
            [.., ".docker", "config.json"] | [.., ".cargo", "credentials" | "credentials.toml"]
        )
        || matches!(parts, ["etc", "shadow" | "gshadow" | "shadow-" | "gshadow-"])
        || below_home.is_some_and(credentials::is_credential_path)
}

/// Whether a folder with this name probably contains credentials.
#[must_use]
pub fn is_folder(name: &str) -> bool {
    SECRET_FOLDERS.contains(&name)
}

/// Whether a file with this name probably contains credentials, in any folder.
#[must_use]
pub fn is_file(name: &str) -> bool {
    // Backup copies of editors.
    let name = name.strip_suffix('~').unwrap_or(name);
    let name = name.strip_prefix('#').and_then(|name| name.strip_suffix('#')).unwrap_or(name);
    let is_env = match name.strip_prefix(".env") {
        Some("") => true,
        Some(rest) => rest.strip_prefix('.').is_some_and(|kind| !HARMLESS_ENV.contains(&kind)),
        None => name.ends_with(".env") && !name.starts_with("example."),
    };
    // `secrets.json`, `secret.yaml`, `secrets` – but not `secrets.rs`.
    let is_named_secret = {
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        matches!(stem, "secret" | "secrets")
            && matches!(
                ending,
                "" | "json"
                    | "yaml"
                    | "yml"
                    | "toml"
                    | "env"
                    | "txt"
                    | "ini"
                    | "xml"
                    | "properties"
                    | "enc.yaml"
            )
    };
    let is_key_by_ending = SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending));
    let is_service_account = (name.starts_with("service-account") || name.starts_with("service_account"))
        && name.ends_with(".json");
    // `firebase-adminsdk-x.json`, `client_secret_1234.json`.
    let is_issued =
        (name.contains("adminsdk") || name.starts_with("client_secret")) && name.ends_with(".json");
    // `id_rsa.bak`, `id_ed25519.old`, but not `id_rsa.pub`.
    let is_key_copy = name.split_once('.').is_some_and(|(stem, ending)| {
        stem.starts_with("id_") && SECRET_FILES.contains(&stem) && ending != "pub"
    });
    is_env
        || is_issued
        || is_key_copy
        || is_named_secret
        || is_key_by_ending
        || is_service_account
        || SECRET_FILES.contains(&name)
}
