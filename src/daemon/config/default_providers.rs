//! Providers that need no configuration: those whose key or address is in the environment, or whose key
//! `agentctl login` has stored.

use api::endpoint::{self, Env};
use model::{Provider, ProviderKind, kind_of_vendor};
use types::vendor::{VENDORS, Vendor};

use super::Config;

impl Config {
    /// Defines providers from keys and addresses in the environment, if no provider is configured.
    pub(super) fn fill_from_environment(&mut self, env: Env<'_>) {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let is_stored = |name: &str| endpoint::key_file(env, name).is_some_and(|file| file.exists());
        let provider = |kind, base_url: Option<String>, api_key_env: Option<&str>| Provider {
            base_url,
            api_key_env: api_key_env.map(String::from),
            ..Provider::new(kind)
        };
        let mut main = None;
        if let Some(host) = set("OLLAMA_HOST") {
            let host = if host.contains("://") { host } else { format!("http://{host}") };
            let base_url = format!("{}/v1", host.trim_end_matches('/'));
            self.providers.insert("ollama".into(), provider(ProviderKind::OpenAiChat, Some(base_url), None));
            self.from_environment.insert("providers.ollama".into(), "OLLAMA_HOST");
        }
        for vendor in &VENDORS {
            let Vendor { name, key_variable, .. } = *vendor;
            if set(key_variable).is_none() && !is_stored(name) {
                continue;
            }
            let own_url = vendor.url_variable.map(|variable| (variable, set(variable)));
            let base_url = own_url.as_ref().map(|(_, url)| url.clone().unwrap_or(vendor.base_url.into()));
            // Most servers like a vendor support one of its APIs only.
            let kind = kind_of_vendor(vendor, base_url.as_deref().unwrap_or(vendor.base_url));
            let Some(kind) = kind else { continue };
            self.providers.insert(name.into(), provider(kind, base_url, Some(key_variable)));
            if set(key_variable).is_some() {
                self.from_environment.insert(format!("providers.{name}"), key_variable);
            }
            if let Some((variable, Some(_))) = own_url {
                self.from_environment.insert(format!("providers.{name}.base_url"), variable);
            }
            main.get_or_insert((vendor.main_model, key_variable));
        }
        if let Some((model, variable)) = main
            && self.models.main.is_none()
        {
            self.models.main = Some(model.to_owned());
            if set(variable).is_some() {
                self.from_environment.insert("models.main".into(), variable);
            }
        }
    }

    /// Gives each provider the file in which `agentctl login` stores its key. The file need not exist yet.
    pub(super) fn name_stored_keys(&mut self, env: Env<'_>) {
        for (name, provider) in &mut self.providers {
            provider.stored_key = endpoint::key_file(env, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_api_keys_create_providers() {
        let mut config = Config::default();
        config.fill_from_environment(&|name| (name == "OLLAMA_HOST").then(|| "127.0.0.1:11434".into()));
        assert_eq!(config.providers["ollama"].base_url.as_deref(), Some("http://127.0.0.1:11434/v1"));
        assert_eq!(config.models.main, None);
        config.fill_from_environment(&|name| (name == "ANTHROPIC_API_KEY").then(|| "k".into()));
        assert_eq!(config.models.main.as_deref(), Some("anthropic/claude-sonnet-5-5"));
    }

    #[test]
    fn stored_key_creates_vendor_provider_and_backs_configured_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join("agentd/keys").join(name);
        std::fs::create_dir_all(folder.path().join("agentd/keys")).expect("made");
        let env = |name: &str| (name == "XDG_CONFIG_HOME").then(|| folder.path().display().to_string());
        for (name, model) in [("anthropic", "anthropic/claude-sonnet-5-5"), ("openai", "openai/gpt-6.2-sol")]
        {
            std::fs::write(file(name), "sk").expect("written");
            let config = Config::load(&env, None).expect("right");
            assert_eq!(config.models.main.as_deref(), Some(model));
            assert_eq!(config.providers.keys().collect::<Vec<_>>(), [name]);
            assert_eq!(config.providers[name].stored_key, Some(file(name)));
            std::fs::remove_file(file(name)).expect("removed");
        }
        let own = folder.path().join("agentd/config.toml");
        std::fs::write(&own, "[providers.acme]\nkind = \"openai_chat\"\nbase_url = \"http://127.0.0.1:1\"\n")
            .expect("written");
        std::fs::write(file("anthropic"), "sk").expect("written");
        let config = Config::load(&env, None).expect("right");
        assert_eq!(config.providers.keys().collect::<Vec<_>>(), ["acme"], "a file names the providers");
        assert_eq!(config.providers["acme"].stored_key, Some(file("acme")));
    }

    #[test]
    fn openai_key_creates_responses_provider_for_vendor_url() {
        for (base_url, kind) in [
            (None, ProviderKind::OpenAiResponses),
            (Some("https://api.openai.com/v1"), ProviderKind::OpenAiResponses),
            (Some("https://api.openai.com/v1/"), ProviderKind::OpenAiResponses),
            (Some("https://eu.api.openai.com/v1"), ProviderKind::OpenAiResponses),
            (Some("http://127.0.0.1:8080/v1"), ProviderKind::OpenAiChat),
            (Some("https://openrouter.ai/api/v1"), ProviderKind::OpenAiChat),
            (Some("https://API.openai.com:443/v1"), ProviderKind::OpenAiResponses),
            (Some("https://api.openai.com.example.org/v1"), ProviderKind::OpenAiChat),
            (Some("https://api.openai.com@example.org/v1"), ProviderKind::OpenAiChat),
            (Some("https://example.org/api.openai.com"), ProviderKind::OpenAiChat),
        ] {
            let mut config = Config::default();
            config.fill_from_environment(&|name| match name {
                "OPENAI_API_KEY" => Some("k".into()),
                "OPENAI_BASE_URL" => base_url.map(String::from),
                _ => None,
            });
            assert_eq!(config.providers["openai"].kind, kind, "{base_url:?}");
            assert_eq!(config.models.main.as_deref(), Some("openai/gpt-6.2-sol"));
        }
    }
}
