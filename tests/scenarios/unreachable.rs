//! Unreachable providers: an untrusted certificate, an unknown host name, a missing proxy. The texts
//! that a user reads are in the reference (`proto-docs/models.md`).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use crate::support::daemon::{ALL_APIS, TestDaemon, TestDaemonBuilder};
use crate::support::printed;

/// Signed by an authority that only these tests know (`support/tls`, valid from 2020 to 2120; the key
/// is public and has no value).
const CERTIFICATE: &[u8] = include_bytes!("../support/tls/server.pem");
const KEY: &[u8] = include_bytes!("../support/tls/server.key.pem");
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/tls/authority.pem");

/// The response to every request.
const TEAPOT: &[u8] = b"HTTP/1.1 418 Teapot\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A server that handles each connection with `answer`, in a thread that ends with the tests.
fn serve(answer: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || listener.incoming().flatten().for_each(answer));
    address
}

fn tls(alpn: &[&[u8]]) -> Arc<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.expect("a pair");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

fn tls_server() -> SocketAddr {
    let config = tls(&[]);
    serve(move |socket| {
        let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
        let mut stream = StreamOwned::new(connection, socket);
        if stream.read(&mut [0; 1024]).is_ok() {
            let _ = stream.write_all(TEAPOT);
        }
    })
}

fn refusing_proxy() -> SocketAddr {
    serve(|mut socket| {
        let _ = socket.read(&mut [0; 1024]);
        let _ =
            socket.write_all(b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    })
}

/// The error that a turn ends with, and the number of retries.
async fn error_of(plan: TestDaemonBuilder) -> (String, String, usize) {
    let daemon = plan.config("[retry]\nbase_ms = 1\nmax_ms = 1").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    session.submit("go").await;
    let ended = seen.find("the end of the turn", |event| event["type"] == "turn.completed").await;
    let errors: Vec<Value> = ended["result"]["errors"].as_array().expect("errors").clone();
    let text = |name: &str| errors[0][name].as_str().expect("a text").to_owned();
    (text("kind"), text("message"), seen.events_of("retry").len())
}

/// Creates a daemon builder for each API.
type Plan = Box<dyn Fn() -> TestDaemonBuilder>;

#[tokio::test]
async fn unreachable_provider_error_gives_advice() {
    let (tls, refusing) = (tls_server(), refusing_proxy());
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address");
    let at = |url: &str| TestDaemon::builder().model_server_at(url);
    let name = "https://no-such-host.invalid";
    let rows: Vec<(&str, Plan)> = vec![
        ("no server listens there", Box::new(move || at(&format!("http://{closed}")))),
        ("a certificate without a known signer", Box::new(move || at(&format!("https://{tls}")))),
        (
            "a certificate of an authority in the file `SSL_CERT_FILE` names",
            Box::new(move || at(&format!("https://{tls}")).environment("SSL_CERT_FILE", AUTHORITY)),
        ),
        ("a host whose name is not known", Box::new(move || at(name))),
        (
            "a proxy that is not there",
            Box::new(move || at(name).environment("HTTPS_PROXY", &format!("http://me:hush@{closed}"))),
        ),
        (
            "a proxy that refuses",
            Box::new(move || at(name).environment("HTTPS_PROXY", &format!("http://me:hush@{refusing}"))),
        ),
    ];
    let mut table = vec![
        "| what happens | kind | tried again | what is read |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    for (what, plan) in rows {
        let mut seen = Vec::new();
        for api in ALL_APIS {
            // Without a key nothing would be sent; this one is fake.
            let plan =
                plan().api(api).environment("SOME_KEY", "k-1234").provider("api_key_env = \"SOME_KEY\"");
            let (kind, message, retries) = error_of(plan).await;
            assert!(!message.contains("hush"), "{api:?}, {what}: {message}");
            // Ports differ each time.
            let message = [(tls, "PORT"), (closed, "PORT"), (refusing, "PORT")]
                .iter()
                .fold(message, |text, (address, word)| text.replace(&address.port().to_string(), word));
            // Replace the resolver's own words, which depend on whether it reached a name server.
            let message =
                message.replace("Temporary failure in name resolution", "Name or service not known");
            let again = if retries > 0 { format!("{retries} times") } else { "no".into() };
            let row = format!("| {what} | `{kind}` | {again} | {message} |");
            if !seen.contains(&row) {
                seen.push(row);
            }
        }
        assert_eq!(seen.len(), 1, "{what}: the APIs differ: {seen:#?}");
        table.extend(seen);
    }
    printed::check("models.md", "providers out of reach", &table);
}

#[tokio::test]
async fn provider_offering_http2_is_called_with_http2() {
    let (tell, told) = std::sync::mpsc::channel();
    let config = tls(&[b"h2", b"http/1.1"]);
    let address = serve(move |socket| {
        let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
        let mut stream = StreamOwned::new(connection, socket);
        let mut first = [0; 14];
        if stream.read_exact(&mut first).is_ok() {
            let chosen = stream.conn.alpn_protocol().map(<[u8]>::to_vec);
            let _ = tell.send((chosen, first));
        }
    });
    let plan = TestDaemon::builder().model_server_at(&format!("https://{address}"));
    // The server closes the connection after that; this test needs no answer.
    let (kind, ..) = error_of(plan.environment("SSL_CERT_FILE", AUTHORITY)).await;
    assert!(kind == "interrupted" || kind == "unreachable", "{kind}");
    let (chosen, first) = told.try_recv().expect("a connection came");
    assert_eq!((chosen.as_deref(), &first), (Some(&b"h2"[..]), b"PRI * HTTP/2.0"));
}
