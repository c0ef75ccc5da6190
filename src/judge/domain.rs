//! Host names of rules: `domain:example.org` and `domain:*.example.org`.

/// A host name, or with a leading `*.` all of its subdomains.
#[derive(Clone)]
pub(super) struct Domain {
    host: String,
    sub_domains: bool,
}

impl Domain {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, sub_domains) = match text.strip_prefix("*.") {
            Some(host) => (host, true),
            None => (text, false),
        };
        is_host(host).then(|| Self { host: host.to_ascii_lowercase(), sub_domains })
    }

    /// The part of `host` (lower case) before the rule's name: empty for the host itself.
    fn prefix_of_host<'h>(&self, host: &'h str) -> Option<&'h str> {
        let before = host.strip_suffix('.').unwrap_or(host).strip_suffix(&self.host)?;
        (before.is_empty() || before.ends_with('.')).then_some(before)
    }

    /// Whether an allow rule covers `host`. Without `*.` only the host itself, because its subdomains
    /// may belong to others (`*.github.io`); with `*.` only the subdomains.
    pub(super) fn covers_host(&self, host: &str) -> bool {
        self.prefix_of_host(host).is_some_and(|before| before.is_empty() != self.sub_domains)
    }

    /// Whether an ask or deny rule covers `host`: the subdomains, and without `*.` also the host
    /// itself.
    pub(super) fn covers(&self, host: &str) -> bool {
        self.prefix_of_host(host).is_some_and(|before| !(before.is_empty() && self.sub_domains))
    }
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
