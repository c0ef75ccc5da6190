//! Embedders and rerankers over HTTP: `POST BASE/embeddings` and `POST BASE/rerank`.
//!
//! The address and the key never appear in errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Url, redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::query::Reranker;
use crate::traits::Embedder;
use crate::types::{ErrorKind, KnowledgeError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of an answer: 256 vectors of 4096 numbers in text.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Characters of an answer that an error shows.
const MAX_SHOWN_CHARS: usize = 200;

/// The address to which requests are sent.
#[derive(Clone)]
pub struct HttpTarget {
    url: Url,
    key: Option<Arc<str>>,
    model: String,
    timeout: Duration,
    client: Arc<OnceCell<Client>>,
}

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpTarget({} at {})", self.model, self.url.host_str().unwrap_or_default())
    }
}

impl HttpTarget {
    /// `base_url` without the last part, for example `http://127.0.0.1:11434/v1`.
    ///
    /// # Errors
    /// `base_url` is not an HTTP address. The error does not contain the address.
    pub fn new(base_url: &str, model: &str, key: Option<&str>, timeout: Duration) -> Result<Self, String> {
        let wrong = "expected an address like http://127.0.0.1:11434/v1";
        let url = Url::parse(base_url.trim()).map_err(|error| format!("{error}: {wrong}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong.into());
        }
        if model.trim().is_empty() {
            return Err("name the model".into());
        }
        Ok(Self { url, key: key.map(Arc::from), model: model.into(), timeout, client: Arc::default() })
    }

    fn address(&self, name: &str) -> Url {
        let mut url = self.url.clone();
        let path = format!("{}/{name}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }

    async fn client(&self) -> Result<&Client, String> {
        let is_local = matches!(self.url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let build = move || {
            // This fails if another part of the program has installed a TLS provider already, which works as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let builder = Client::builder()
                .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
                // A redirect would send the key and the texts to another host.
                .redirect(redirect::Policy::none())
                .referer(false);
            if is_local { builder.no_proxy().tls_certs_only([]) } else { builder }.build()
        };
        let init = || async {
            let built = tokio::task::spawn_blocking(build).await.map_err(|error| error.to_string())?;
            built.map_err(|error| format!("the HTTP client could not be set up: {}", error.without_url()))
        };
        self.client.get_or_try_init(init).await
    }

    /// Posts JSON and reads JSON.
    async fn post(&self, name: &str, body: &Value) -> Result<Value, String> {
        let work = async {
            let client = self.client().await?;
            let mut request = client
                .post(self.address(name))
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
            if let Some(key) = &self.key {
                let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                    .map_err(|_| "the key contains characters that a header cannot hold".to_owned())?;
                value.set_sensitive(true);
                request = request.header(AUTHORIZATION, value);
            }
            let answer = request.send().await.map_err(innermost_cause)?;
            let status = answer.status();
            let mut bytes = Vec::new();
            let mut chunks = answer.bytes_stream();
            while let Some(chunk) = chunks.next().await {
                bytes.extend_from_slice(&chunk.map_err(innermost_cause)?);
                if bytes.len() > MAX_ANSWER_BYTES {
                    return Err(format!("it answered more than {} MiB", MAX_ANSWER_BYTES >> 20));
                }
            }
            if !status.is_success() {
                return Err(format!("it answered {}: {}", status.as_u16(), self.shown_answer(&bytes)));
            }
            serde_json::from_slice(&bytes)
                .map_err(|_| format!("it did not answer JSON: {}", self.shown_answer(&bytes)))
        };
        match tokio::time::timeout(self.timeout, work).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("it did not answer within {} s", self.timeout.as_secs())),
        }
    }

    /// The beginning of an answer, without the key that a server may repeat.
    fn shown_answer(&self, bytes: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        if let Some(key) = &self.key {
            text = text.replace(&**key, "[key]");
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_SHOWN_CHARS).collect()
    }
}

/// The innermost cause of an error, without the address.
fn innermost_cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut deepest: &dyn std::error::Error = &error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// An embedder behind `/embeddings`.
#[derive(Debug)]
pub struct HttpEmbedder {
    target: HttpTarget,
    dimension: AtomicUsize,
    batch_size: usize,
    concurrency: usize,
}

#[derive(Deserialize)]
struct EmbeddingsAnswer {
    data: Vec<EmbeddingRow>,
}

#[derive(Deserialize)]
struct EmbeddingRow {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl HttpEmbedder {
    /// Sends at most `batch_size` texts in one request, and `concurrency` requests at once.
    #[must_use]
    pub fn new(target: HttpTarget, batch_size: usize, concurrency: usize) -> Self {
        Self {
            target,
            dimension: AtomicUsize::new(0),
            batch_size: batch_size.max(1),
            concurrency: concurrency.max(1),
        }
    }

    async fn batch(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, KnowledgeError> {
        let fail = |why: String| {
            let text =
                format!("could not embed with {}: {why}; check [knowledge.embedder]", self.target.model);
            KnowledgeError::new(ErrorKind::Embedder, text)
        };
        let body = json!({ "model": self.target.model, "input": texts, "encoding_format": "float" });
        let answer = self.target.post("embeddings", &body).await.map_err(fail)?;
        let answer: EmbeddingsAnswer = serde_json::from_value(answer)
            .map_err(|error| fail(format!("its answer has another form: {error}")))?;
        if answer.data.len() != texts.len() {
            return Err(fail(format!("it gave {} vectors for {} texts", answer.data.len(), texts.len())));
        }
        let mut vectors = vec![Vec::new(); texts.len()];
        for (position, row) in answer.data.into_iter().enumerate() {
            match vectors.get_mut(row.index.unwrap_or(position)) {
                Some(slot) => *slot = row.embedding,
                None => return Err(fail("it numbered a vector that was not asked for".into())),
            }
        }
        let dimension = vectors.first().map_or(0, Vec::len);
        let is_usable =
            |vector: &Vec<f32>| vector.len() == dimension && vector.iter().all(|it| it.is_finite());
        if dimension == 0 || !vectors.iter().all(is_usable) {
            return Err(fail("its vectors are empty, of unequal length, or not finite".into()));
        }
        let known = self.dimension.swap(dimension, Ordering::Relaxed);
        if known != 0 && known != dimension {
            tracing::warn!(known, dimension, "the embedder's vectors have another length now");
        }
        Ok(vectors)
    }
}

impl Embedder for HttpEmbedder {
    fn model_id(&self) -> String {
        format!("http:{}", self.target.model)
    }

    fn dimension(&self) -> Option<usize> {
        Some(self.dimension.load(Ordering::Relaxed)).filter(|dimension| *dimension > 0)
    }

    fn batch_size(&self) -> usize {
        self.batch_size * self.concurrency
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, KnowledgeError>> {
        async move {
            let batches: Vec<Vec<String>> = texts.chunks(self.batch_size).map(<[String]>::to_vec).collect();
            let done: Vec<Vec<Vec<f32>>> = stream::iter(batches)
                .map(|batch| self.batch(batch))
                .buffered(self.concurrency)
                .try_collect()
                .await?;
            Ok(done.into_iter().flatten().collect())
        }
        .boxed()
    }
}

/// A reranker behind `/rerank`.
#[derive(Debug)]
pub struct HttpReranker(HttpTarget);

#[derive(Deserialize)]
struct RerankAnswer {
    results: Vec<RerankRow>,
}

#[derive(Deserialize)]
struct RerankRow {
    index: usize,
    relevance_score: f64,
}

impl HttpReranker {
    /// A reranker at this address.
    #[must_use]
    pub const fn new(target: HttpTarget) -> Self {
        Self(target)
    }
}

impl Reranker for HttpReranker {
    fn rerank(
        &self,
        query: String,
        documents: Vec<String>,
    ) -> BoxFuture<'_, Result<Vec<(usize, f64)>, KnowledgeError>> {
        async move {
            let fail = |why: String| {
                let text = format!("could not rank with {}: {why}; check [knowledge.reranker]", self.0.model);
                KnowledgeError::new(ErrorKind::Model, text)
            };
            let count = documents.len();
            let body =
                json!({ "model": self.0.model, "query": query, "documents": documents, "top_n": count });
            let answer = self.0.post("rerank", &body).await.map_err(fail)?;
            let answer: RerankAnswer = serde_json::from_value(answer)
                .map_err(|error| fail(format!("its answer has another form: {error}")))?;
            Ok(answer.results.into_iter().map(|row| (row.index, row.relevance_score)).collect())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// A server that answers one request with this body, and returns the request.
    async fn serve_once(status: &str, body: String) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        let served = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            loop {
                let read = socket.read(&mut buffer).await.expect("bytes");
                request.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&request);
                let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
                let length = head
                    .lines()
                    .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                if read == 0 || length.is_some_and(|length: usize| rest.len() >= length) {
                    break;
                }
            }
            socket.write_all(format!("{head}{body}").as_bytes()).await.expect("sent");
            String::from_utf8_lossy(&request).into_owned()
        });
        (address, served)
    }

    fn target(address: &str) -> HttpTarget {
        HttpTarget::new(address, "small", Some("geheim"), Duration::from_secs(5)).expect("a target")
    }

    #[tokio::test]
    async fn embeddings_are_returned_in_order_of_texts() {
        let body =
            json!({"data": [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.0]}]});
        let (address, served) = serve_once("200 OK", body.to_string()).await;
        let embedder = HttpEmbedder::new(target(&address), 10, 2);
        assert_eq!(embedder.dimension(), None);
        let vectors = embedder.embed(vec!["a".into(), "b".into()]).await.expect("vectors");
        assert_eq!(vectors, [[1.0, 0.0], [0.0, 1.0]]);
        assert_eq!((embedder.dimension(), embedder.model_id().as_str()), (Some(2), "http:small"));
        let request = served.await.expect("served");
        assert!(
            request.starts_with("POST /v1/embeddings ") && request.contains("Bearer geheim"),
            "{request}"
        );
    }

    #[tokio::test]
    async fn unusable_embeddings_are_errors_without_key() {
        for (status, body, word) in [
            ("500 Internal Server Error", "no geheim here".to_owned(), "it answered 500: no [key] here"),
            ("200 OK", "{}".to_owned(), "another form"),
            ("200 OK", json!({"data": []}).to_string(), "0 vectors for 1 texts"),
            ("200 OK", json!({"data": [{"embedding": []}]}).to_string(), "empty"),
            ("200 OK", json!({"data": [{"index": 9, "embedding": [1.0]}]}).to_string(), "not asked for"),
            ("200 OK", "<html>".to_owned(), "not answer JSON"),
        ] {
            let (address, _served) = serve_once(status, body).await;
            let error =
                HttpEmbedder::new(target(&address), 10, 1).embed(vec!["a".into()]).await.expect_err(word);
            assert_eq!(error.kind, ErrorKind::Embedder);
            assert!(error.message.contains(word) && !error.message.contains("geheim"), "{}", error.message);
        }
    }

    #[tokio::test]
    async fn reranker_reads_index_and_score() {
        let body =
            json!({"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]});
        let (address, served) = serve_once("200 OK", body.to_string()).await;
        let ranked =
            HttpReranker::new(target(&address)).rerank("q".into(), vec!["a".into(), "b".into()]).await;
        assert_eq!(ranked.expect("scores"), [(1, 0.9), (0, 0.1)]);
        let request = served.await.expect("served");
        assert!(request.starts_with("POST /v1/rerank ") && request.contains("\"top_n\":2"), "{request}");
    }

    #[test]
    fn invalid_addresses_are_refused_without_showing_them() {
        for wrong in ["geheim", "ftp://geheim/x", "https://", "file:///geheim"] {
            let why = HttpTarget::new(wrong, "m", None, Duration::from_secs(1)).expect_err(wrong);
            assert!(!why.contains("geheim"), "{why}");
        }
        let target = target("https://u:pw@example.org/v1/");
        assert_eq!(target.address("embeddings").path(), "/v1/embeddings");
        assert!(!format!("{target:?}").contains("pw"), "{target:?}");
    }
}
