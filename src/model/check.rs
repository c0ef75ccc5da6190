//! Tries the address and the key of each provider without spending tokens.

use std::time::{Duration, Instant};

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Url};

use super::models::Models;
use crate::backend::{Address, Backend};
use crate::http::{Exchange, error_body};
use crate::stream::fault;
use crate::stream::fault::Secrets;
use types::model::{FaultKind, ModelFault, ProviderCheck};

/// Time limit of the check of one provider, with its key command.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Statuses of a server that has no list of models.
const NO_LIST: [u16; 3] = [404, 405, 501];
/// Statuses that refuse an empty request to the model. Address and key are accepted before that.
const REFUSES_EMPTY: [u16; 2] = [400, 422];

impl Models {
    /// Tries all providers in parallel, or only this one. The list is sorted by name, and empty if there is no
    /// such provider. Cancel-safe.
    pub async fn check(&self, only: Option<&str>) -> Vec<ProviderCheck> {
        let names = self.providers().into_iter().filter(|name| only.is_none_or(|only| only == name));
        let checks = names.map(|name| {
            let models = self.clone();
            tokio::spawn(async move { models.check_provider(&name).await })
        });
        // Aborts the remaining checks if the caller is dropped.
        let mut running: Vec<_> = checks.map(AbortOnDrop).collect();
        let mut results = Vec::new();
        for check in &mut running {
            results.extend((&mut check.0).await.ok());
        }
        results
    }

    async fn check_provider(&self, name: &str) -> ProviderCheck {
        let began = Instant::now();
        let tried = match self.backend(name) {
            Some(Backend::Http(address)) => self.try_address(name, address).await,
            Some(Backend::Replay(player)) => player.check().await.map(|()| Vec::new()),
            None => Err(ModelFault::new(FaultKind::Unconfigured, "the provider is not configured")),
        };
        let is_ok = tried.is_ok();
        ProviderCheck {
            name: name.to_owned(),
            ok: is_ok,
            latency_ms: is_ok.then(|| u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)),
            error: tried.as_ref().err().map(|fault| fault.message.clone()),
            models: tried.unwrap_or_default(),
        }
    }

    async fn try_address(&self, name: &str, address: &Address) -> Result<Vec<String>, ModelFault> {
        let mut secrets = address.secrets.clone();
        let tried = tokio::time::timeout(CHECK_TIMEOUT, async {
            let first = self.try_key(name, address, &mut secrets).await;
            // The stored output of the key command may be out of date.
            if first.as_ref().is_err_and(|fault| address.doubts_key(fault))
                && address.command_secret().is_some()
            {
                address.forget_key();
                return self.try_key(name, address, &mut secrets).await;
            }
            first
        });
        let outcome = tried.await.unwrap_or_else(|_| {
            let text = format!("{name} did not answer within {} s", CHECK_TIMEOUT.as_secs());
            Err(ModelFault::new(FaultKind::Unreachable, text))
        });
        outcome.map_err(|fault| secrets.scrub_fault(fault))
    }

    /// Requests the list of models. A server without one gets an empty request, which it must refuse.
    async fn try_key(
        &self,
        name: &str,
        address: &Address,
        secrets: &mut Secrets,
    ) -> Result<Vec<String>, ModelFault> {
        let secret = address.secret(name).await?;
        let headers = address.headers(name, secret.as_ref(), None, secrets)?;
        let exchange = async |url: Url, body: &str| -> Result<Exchange<'_>, ModelFault> {
            self.exchange(name, address, url, headers.clone(), body.into()).await
        };
        let list = exchange(address.api.list_url(&address.url), "").await?.send_probe(Method::GET).await?;
        if list.status == 200 && !list.is_json {
            let text =
                format!("{name} answers with a page and not with JSON: check base_url of [providers.{name}]");
            return Err(ModelFault::new(FaultKind::Unconfigured, text));
        }
        if !NO_LIST.contains(&list.status) {
            let offered = model_names(&list.body);
            return list.into_result(name).map(|()| offered);
        }
        let empty = exchange(address.url.clone(), "{}").await?.send_probe(Method::POST).await?;
        if REFUSES_EMPTY.contains(&empty.status) {
            Ok(Vec::new())
        } else {
            empty.into_result(name).map(|()| Vec::new())
        }
    }
}

/// Maximum bytes of a list of models; a longer one is not read.
const MAX_LIST_BYTES: usize = 4 << 20;
/// Maximum number of models of one provider.
const MAX_MODELS: usize = 1_000;
/// Maximum characters of a model's name.
const MAX_NAME_CHARS: usize = 200;

/// The names in a list of models, sorted: `data[].id`, as Anthropic and OpenAI write it. Empty for anything else.
fn model_names(body: &[u8]) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct List {
        data: Vec<Entry>,
    }
    #[derive(serde::Deserialize)]
    struct Entry {
        id: String,
    }
    let Ok(list) = serde_json::from_slice::<List>(body) else { return Vec::new() };
    let mut names: Vec<String> = list.data.into_iter().map(|entry| entry.id).collect();
    names.retain(|name| {
        !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && !name.contains(char::is_whitespace)
    });
    names.sort_unstable();
    names.dedup();
    names.truncate(MAX_MODELS);
    names
}

/// The answer to a check: the status, and the body of a list or of an error.
struct Probe {
    status: u16,
    is_json: bool,
    body: Vec<u8>,
}

impl Probe {
    fn into_result(self, provider: &str) -> Result<(), ModelFault> {
        match self.status {
            200..=299 => Ok(()),
            // Redirects are not followed, because they would give the key to another host.
            300..=399 => {
                let text = format!(
                    "{provider} redirects to another address (status {}): check base_url of [providers.{provider}]",
                    self.status
                );
                Err(ModelFault::new(FaultKind::Unconfigured, text))
            }
            status => Err(fault::from_status(provider, status, None, &self.body)),
        }
    }
}

impl Exchange<'_> {
    /// Sends the request and reads its status, and the body of a list or of an error.
    async fn send_probe(mut self, method: Method) -> Result<Probe, ModelFault> {
        let mut request =
            self.client.request(method.clone(), self.url.clone()).headers(std::mem::take(&mut self.headers));
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/json").body(std::mem::take(&mut self.body));
        }
        let mut response = request.send().await.map_err(|error| self.send_fault(&error))?;
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let is_json = kind.contains("json");
        let body = match status.is_success() {
            true if method == Method::GET && is_json => list_body(&mut response).await,
            true => Vec::new(),
            false => error_body(&mut response).await,
        };
        Ok(Probe { status: status.as_u16(), is_json, body })
    }
}

/// The body of a list, or nothing if it is too long or breaks off: the check itself has succeeded.
async fn list_body(response: &mut reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > MAX_LIST_BYTES {
            return Vec::new();
        }
        body.extend_from_slice(&chunk);
    }
    body
}

/// A check that is aborted when this value is dropped.
struct AbortOnDrop(tokio::task::JoinHandle<ProviderCheck>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offered_models_are_read_from_list_in_order() {
        let check =
            |body: &str, expected: &[&str]| assert_eq!(model_names(body.as_bytes()), expected, "{body}");
        check(r#"{"data":[{"id":"b","object":"model"},{"id":"a"},{"id":"b"}]}"#, &["a", "b"]);
        check(r#"{"data":[{"id":""},{"id":"x y"}]}"#, &[]);
        check(r#"{"models":[]}"#, &[]);
        check("<html>", &[]);
    }
}
