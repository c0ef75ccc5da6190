//! The vendors whose models need only a key. A new vendor is one row here, besides the adapter of its API.

/// A vendor of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vendor {
    /// Name of the provider that exists without configuration; also the vendor's key in the built-in model table.
    pub name: &'static str,
    /// Its own address.
    pub base_url: &'static str,
    /// Environment variable with the key.
    pub key_variable: &'static str,
    /// Environment variable with the address of a server like it.
    pub url_variable: Option<&'static str>,
    /// The main model, unless one is configured.
    pub main_model: &'static str,
}

/// Anthropic.
pub const ANTHROPIC: Vendor = Vendor {
    name: "anthropic",
    base_url: "https://api.anthropic.com",
    key_variable: "ANTHROPIC_API_KEY",
    url_variable: None,
    main_model: "anthropic/claude-sonnet-5-5",
};

/// OpenAI.
pub const OPENAI: Vendor = Vendor {
    name: "openai",
    base_url: "https://api.openai.com/v1",
    key_variable: "OPENAI_API_KEY",
    url_variable: Some("OPENAI_BASE_URL"),
    main_model: "openai/gpt-6.2-sol",
};

/// All vendors. The first vendor whose key is set supplies the default main model.
pub const VENDORS: [Vendor; 2] = [ANTHROPIC, OPENAI];

impl Vendor {
    /// Whether an address is the vendor's own, including its regions (`eu.api.openai.com`).
    #[must_use]
    pub fn owns(&self, base_url: &str) -> bool {
        let (own, host) = (host(self.base_url), host(base_url));
        host.strip_suffix(own.as_str()).is_some_and(|region| region.is_empty() || region.ends_with('.'))
    }
}

/// The host of an address in small letters; empty without a scheme.
fn host(url: &str) -> String {
    let url = url.trim().to_ascii_lowercase();
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().and_then(|host| host.split(':').next());
    host.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendor_owns_its_host_and_regions_only() {
        for (url, expected) in [
            ("https://api.openai.com/v1", true),
            ("https://API.openai.com:443/v1", true),
            ("https://eu.api.openai.com/v1", true),
            ("https://notapi.openai.com/v1", false),
            ("https://api.openai.com.example.org/v1", false),
            ("https://api.openai.com@example.org/v1", false),
            ("api.openai.com", false),
            ("", false),
        ] {
            assert_eq!(OPENAI.owns(url), expected, "{url}");
        }
    }
}
