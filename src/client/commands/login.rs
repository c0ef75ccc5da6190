//! `agentctl login`: stores the key of a provider where the daemon reads it, and tries it.

use std::fs::{self, DirBuilder};
use std::io::{IsTerminal as _, Write as _, stdin};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::connection::connector::Connector;
use crate::connection::stdin as piped_input;
use crate::failure::{Failure, code};
use crate::terminal::escape;
use crate::terminal::hidden_input::ask_hidden;
use crate::terminal::out::OutputStreams;
use api::endpoint;
use api::methods;
use api::params::{
    ConfigParams, ConfigValue, ModelCheckParams, ModelCheckReply, NoParams, ReloadParams, StatusReply,
};

pub(crate) async fn login(reach: &Connector, provider: &str, out: &mut OutputStreams) -> Result<(), Failure> {
    let shown = escape::line(provider);
    let Some(file) = endpoint::key_file(&base::proc::variable, provider) else {
        return Err(Failure::usage(format!(
            "{shown} cannot be the name of a provider here: letters, digits, - _ and . are possible, and HOME must be set"
        )));
    };
    let text = match stdin().is_terminal() {
        true => ask_hidden(&format!("Key of {shown} (it is not shown):"))?,
        false => piped_input::read_all()?,
    };
    let key = check_key(&text)?;
    // Without a daemon there is no list of providers, so the key is stored first.
    let before = fs::read(&file).ok();
    store(&file, key)?;
    let client = reach.connect_or_start().await?;
    let reload = client.call::<methods::daemon::Reload>(&ReloadParams::default()).await;
    let status: StatusReply = client.call::<methods::daemon::Status>(&NoParams {}).await?;
    if !status.providers.iter().any(|known| known == provider) {
        restore(&file, before.as_deref())?;
        reload?;
        return Err(unknown_provider(&shown));
    }
    if let Err(error) = reload {
        out.note(&format!("the configuration was not read again: {}", Failure::from(error)))?;
    }
    out.note(&format!("stored the key of {shown} in {}", escape::line(&file.display().to_string())))?;
    let config = client.call::<methods::daemon::Config>(&ConfigParams::default()).await?;
    if let Some(remark) = other_source(provider, &config.values, &base::proc::variable) {
        out.note(&remark)?;
    }
    let params = ModelCheckParams { provider: Some(provider.to_owned()) };
    let reply: ModelCheckReply = client.call::<methods::model::Check>(&params).await?;
    if let Some(error) = reply.providers.first().and_then(|check| check.error.as_ref()) {
        let error_text = escape::line(error);
        return Err(Failure::new(
            code::MODEL,
            format!(
                "the key is stored, but {shown} cannot be used with it: {error_text}; `agentctl login {shown}` replaces it"
            ),
        ));
    }
    let used = match &status.main_model {
        Some(model) if model.split('/').next() == Some(provider) => {
            format!("new sessions use {}", escape::line(model))
        }
        Some(model) => format!(
            "new sessions use {}; --model {shown}/NAME uses {shown}, and `agentctl models` lists names",
            escape::line(model)
        ),
        None => format!(
            "no model is chosen: name one with --model {shown}/NAME or as `[models] main`; `agentctl models --all` lists \
             names"
        ),
    };
    Ok(out.say(&format!("{shown} accepts the key; {used}"))?)
}

/// The key without the blanks around it.
fn check_key(text: &str) -> Result<&str, Failure> {
    let key = text.trim();
    if key.is_empty() {
        return Err(Failure::usage(
            "the key is empty; type it, or pipe it in: agentctl login PROVIDER < FILE",
        ));
    }
    // Never repeat the text, because it may be a key.
    if key.contains(|c: char| c.is_whitespace() || c.is_control()) || !key.is_ascii() {
        return Err(Failure::usage("that is not a key: a key is one word of plain characters"));
    }
    Ok(key)
}

/// Writes the key to a file of its owner. The file is replaced as a whole, so that the daemon never reads half a key.
fn store(file: &Path, key: &str) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        let file = file.display().to_string();
        Failure::internal(format!("could not store the key in {}: {error}", escape::line(&file)))
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed(&error))?;
    // Such a file has mode 0600 from the beginning.
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    new.write_all(format!("{key}\n").as_bytes()).map_err(|error| failed(&error))?;
    new.as_file().sync_all().map_err(|error| failed(&error))?;
    new.persist(file).map_err(|error| failed(&error))?;
    Ok(())
}

/// Brings the state before [`store`] back.
fn restore(file: &Path, before: Option<&[u8]>) -> Result<(), Failure> {
    match before.map(String::from_utf8_lossy) {
        Some(key) => store(file, key.trim()),
        None => Ok(fs::remove_file(file)?),
    }
}

fn unknown_provider(shown: &str) -> Failure {
    Failure::usage(format!(
        "there is no provider {shown}, so no key was stored; define [providers.{shown}] in the configuration first \
         (anthropic and openai need that only if the configuration defines other providers)"
    ))
}

/// Says that another source of the key comes before the stored one.
fn other_source(
    provider: &str,
    values: &[ConfigValue],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let key = |name: &str| {
        let key = format!("providers.{provider}.{name}");
        values.iter().find(|value| value.key == key).filter(|value| !value.value.is_null())
    };
    for name in ["api_key_file", "api_key_command"] {
        if key(name).is_some() && key("api_key_env").is_none() {
            return Some(format!(
                "[providers.{provider}] {name} comes before the stored key; remove that line to use it"
            ));
        }
    }
    let name = key("api_key_env")?.value.as_str()?.to_owned();
    let is_set = variable(&name).is_some_and(|value| !value.is_empty());
    is_set.then(|| format!("{name} is set here, and it comes before the stored key where the daemon has it"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use serde_json::json;

    #[test]
    fn key_is_one_word_and_is_never_repeated_in_error() {
        assert_eq!(check_key(" sk-1\n"), Ok("sk-1"));
        for text in ["", " \n", "sk two-words", "sk-1\nsk-2", "sk-ü", "sk\u{7}"] {
            let failure = check_key(text).expect_err(text);
            assert!(failure.code == code::USAGE && !failure.message.contains("sk"), "{text}: {failure}");
        }
    }

    #[test]
    fn stored_key_is_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("agentd/keys/acme");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        for key in ["sk-1", "sk-2"] {
            store(&file, key).expect("stored");
            assert_eq!(fs::read_to_string(&file).expect("read"), format!("{key}\n"));
            assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
        }
        // A link is replaced and not followed.
        let other = dir.path().join("other");
        fs::write(&other, "kept").expect("written");
        fs::remove_file(&file).expect("removed");
        std::os::unix::fs::symlink(&other, &file).expect("linked");
        store(&file, "sk-3").expect("stored");
        assert_eq!(fs::read_to_string(&other).expect("read"), "kept");
        restore(&file, Some(b"sk-2\n")).expect("restored");
        assert_eq!(fs::read_to_string(&file).expect("read"), "sk-2\n");
        restore(&file, None).expect("removed");
        assert!(!file.exists());
    }

    #[test]
    fn source_before_stored_key_is_named() {
        let values = |pairs: &[(&str, serde_json::Value)]| -> Vec<ConfigValue> {
            let value = |(key, value): &(&str, serde_json::Value)| ConfigValue {
                key: format!("providers.acme.{key}"),
                value: value.clone(),
                origin: "default".into(),
                line: None,
            };
            pairs.iter().map(value).collect()
        };
        let set = |name: &str| (name == "ACME_KEY").then(|| "x".to_owned());
        let named = |pairs: &[(&str, serde_json::Value)]| other_source("acme", &values(pairs), &set);
        assert_eq!(named(&[("api_key_env", json!(null)), ("api_key_file", json!(null))]), None);
        assert_eq!(named(&[("api_key_env", json!("OTHER_KEY"))]), None);
        assert!(named(&[("api_key_env", json!("ACME_KEY"))]).expect("a remark").contains("ACME_KEY is set"));
        for key in ["api_key_file", "api_key_command"] {
            assert!(named(&[(key, json!("x"))]).expect("a remark").contains(key), "{key}");
        }
    }
}
