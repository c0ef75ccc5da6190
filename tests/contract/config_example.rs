//! `config.example.toml` loads without an error, and it contains every key that the daemon knows.

use std::path::{Path, PathBuf};

use agentd::daemon::Config;

fn example() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config.example.toml"))
        .expect("the example")
}

/// Loads a configuration with an empty environment. Returns the error as text.
fn load(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file: PathBuf = folder.path().join("config.toml");
    std::fs::write(&file, text).expect("written");
    Config::load(&|_| None, Some(file)).map_err(|error| error.to_string())
}

#[test]
fn example_config_loads_with_keys_commented_or_active() {
    load(&example()).expect("the example");
    let is_key = |line: &str| {
        let name = line.split(" = ").next().unwrap_or_default();
        line.contains(" = ") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    let in_force = |line: &str| match line.strip_prefix("# ").filter(|rest| is_key(rest)) {
        Some(key) => format!("{key}\n"),
        None => format!("{line}\n"),
    };
    let all: String = example().lines().map(in_force).collect();
    assert_ne!(all, example());
    load(&all).expect("the example with all keys");
}

#[test]
fn example_config_contains_every_known_key() {
    let example = example();
    // The error for an unknown key lists the known keys.
    for table in [
        "",
        "[daemon]",
        "[providers.x]",
        "[models]",
        "[model.\"a/b\"]",
        "[session]",
        "[session.budgets]",
        "[permissions]",
        "[permissions.unattended]",
        "[limits]",
        "[sandbox]",
        "[retry]",
        "[telemetry]",
        "[jobs]",
        "[jobs.notify.x]",
        "[tools]",
        "[knowledge]",
        "[knowledge.embedder]",
        "[knowledge.reranker]",
    ] {
        let refusal = load(&format!("{table}\nno_such_key = 1\n")).expect_err("an unknown key");
        let names: Vec<&str> = refusal.split('`').skip(3).step_by(2).collect();
        assert!(names.len() > 1, "{refusal}");
        for name in names {
            let is_key = example.contains(&format!("{name} = "));
            let tables = [format!("\n[{name}"), format!(".{name}]"), format!(".{name}.")];
            let is_table = tables.iter().any(|table| example.contains(table));
            let is_there = is_key || is_table;
            assert!(is_there, "{table} {name} is missing in config.example.toml");
        }
    }
}
