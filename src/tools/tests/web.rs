//! Tests of WebFetch with a server on this machine.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use super::*;
use crate::AddressRanges;

/// Answers each request by its path until it is dropped, and reports the heads of requests.
struct PageServer {
    base: String,
    heads: mpsc::Receiver<String>,
}

fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> PageServer {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (tell, heads) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
            // The client may close the connection early.
            let _ = stream.write_all(&answer(&path));
            if tell.send(head).is_err() {
                return;
            }
        }
    });
    PageServer { base, heads }
}

fn response(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn page(kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    response("200 OK", &format!("Content-Type: {kind}\r\n"), body)
}

fn redirect(to: &str) -> Vec<u8> {
    response("302 Found", &format!("Location: {to}\r\n"), "")
}

/// A fixture whose calls may connect to this machine.
fn open_fixture() -> ToolFixture {
    ToolFixture::with_settings(|settings| {
        settings.web_allowed_private = AddressRanges::parse(&["127.0.0.1"]).unwrap()
    })
}

async fn fetch(fixture: &mut ToolFixture, url: &str) -> ToolOutcome {
    fixture.run("WebFetch", json!({"url": url, "prompt": "what does it say?"})).await
}

#[tokio::test]
async fn slow_fetch_reports_how_far_it_is() {
    let mut fixture = ToolFixture::with_settings(|settings| {
        settings.web_allowed_private = AddressRanges::parse(&["127.0.0.1"]).unwrap();
        settings.progress_interval = Duration::ZERO;
    });
    let server = serve(|_| page("text/plain", "hello"));
    let input = json!({"url": format!("{}/slow", server.base), "prompt": "what?"});
    let (notes, outcome) = run_with_notes(&mut fixture, "WebFetch", input).await;
    completed(&outcome);
    assert_eq!(notes.first().map(String::as_str), Some("no answer of 127.0.0.1 yet\n"));
}

#[tokio::test]
async fn web_fetch_converts_html_and_keeps_plain_text() {
    let mut fixture = open_fixture();
    let server = serve(|path| match path {
        "/html" => page(
            "text/html; charset=utf-8",
            "<html><head><title>T</title><style>x{}</style></head><body><h1>Hé</h1>\
            <script>evil()</script><p>a <a href=\"/b\">b</a></p><pre><code>x = 1\n</code></pre></body></html>",
        ),
        "/latin" => page("text/html", b"<meta charset=iso-8859-1><p>caf\xe9</p>".as_slice()),
        "/json" => page("application/json", "{\"a\": 1}"),
        "/gbk" => page("text/plain; charset=gbk", encoding_rs::GBK.encode("你好").0),
        _ => response("404 Not Found", "Content-Type: text/html\r\n", "<p>no such page</p>"),
    });
    for (path, expected) in [
        ("/html", "# Hé\n\na [b](/b)\n\n```\nx = 1\n```"),
        ("/latin", "café"),
        ("/json", "{\"a\": 1}"),
        ("/gbk", "你好"),
    ] {
        let outcome = fetch(&mut fixture, &format!("{}{path}", server.base)).await;
        assert!(completed(&outcome).contains(&format!("\n{expected}\n</web_page>")), "{}", outcome.output);
    }
    let missing = fetch(&mut fixture, &format!("{}/none", server.base)).await;
    failed(&missing, "http_error");
    assert!(missing.output.contains("404") && missing.output.contains("no such page"));
    let head = server.heads.recv().unwrap().to_ascii_lowercase();
    assert!(
        head.contains("user-agent: agentd/") && !head.contains("cookie") && !head.contains("referer"),
        "{head}"
    );
}

#[tokio::test]
async fn web_fetch_refuses_private_addresses() {
    let mut fixture = ToolFixture::new();
    let server = serve(|_| page("text/plain", "the inside"));
    let port = server.base.rsplit(':').next().unwrap().to_owned();
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f000001",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "[::1]",
        "localhost.",
    ] {
        let outcome = fetch(&mut fixture, &format!("http://{host}:{port}/")).await;
        failed(&outcome, "address_not_public");
        assert!(!outcome.output.contains("the inside"));
    }
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
    ] {
        failed(&fetch(&mut fixture, url).await, "address_not_public");
    }
    assert!(server.heads.try_recv().is_err(), "no user was asked");
    for url in ["file:///etc/passwd", "gopher://x/", "x"] {
        failed(&fetch(&mut fixture, url).await, "bad_url");
    }
    failed(&fetch(&mut fixture, "https://a:b@example.org/").await, "url_with_credentials");
}

#[tokio::test]
async fn redirect_targets_are_judged_like_first_url() {
    let mut fixture = open_fixture();
    let server = serve(|path| match path {
        "/here" => redirect("/there"),
        "/there" => page("text/plain", "arrived"),
        "/loop" => redirect("/loop"),
        "/inside" => redirect("http://169.254.169.254/latest/meta-data/"),
        "/file" => redirect("file:///etc/passwd"),
        "/login" => redirect("http://user:pass@127.0.0.1/"),
        _ => redirect("https://elsewhere.example/x?y=1"),
    });
    let at = |path: &str| format!("{}{path}", server.base);
    assert!(completed(&fetch(&mut fixture, &at("/here")).await).contains("arrived"));
    failed(&fetch(&mut fixture, &at("/loop")).await, "too_many_redirects");
    failed(&fetch(&mut fixture, &at("/file")).await, "bad_url");
    failed(&fetch(&mut fixture, &at("/login")).await, "url_with_credentials");
    // A redirect to another host is reported and not followed, because the new host must be judged.
    for (path, to) in [
        ("/inside", "http://169.254.169.254/latest/meta-data/"),
        ("/else", "https://elsewhere.example/x?y=1"),
    ] {
        let outcome = fetch(&mut fixture, &at(path)).await;
        assert!(
            completed(&outcome).contains(&format!("redirects to another host (302): {to}")),
            "{}",
            outcome.output
        );
        assert_eq!(outcome.detail.as_ref().unwrap()["redirect"], to);
    }
    failed(&fetch(&mut fixture, "http://169.254.169.254/latest/meta-data/").await, "address_not_public");
}

#[tokio::test]
async fn web_fetch_refuses_binary_and_truncates_long_text() {
    let mut fixture = open_fixture();
    let server = serve(|path| match path {
        "/png" => page("image/png", b"\x89PNG\r\n\x1a\n"),
        "/lie" => page("text/plain", b"a\0b"),
        "/zip" => response("200 OK", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", b"\x1f\x8b"),
        "/long" => page("text/plain", "é".repeat(150_000)),
        "/huge" => page("text/plain", "x".repeat(12 << 20)),
        _ => page("text/html", "<div>".repeat(300)),
    });
    for (path, code) in [("/png", "binary_content"), ("/lie", "binary_content"), ("/zip", "fetch_failed")] {
        failed(&fetch(&mut fixture, &format!("{}{path}", server.base)).await, code);
    }
    let long = fetch(&mut fixture, &format!("{}/long", server.base)).await;
    assert!(completed(&long).contains("[cut: 50000 more characters. The whole text is kept: read any part"));
    assert_eq!(long.whole.as_ref().map(|whole| whole.bytes), Some(300_000), "{:?}", long.whole);
    let huge = fetch(&mut fixture, &format!("{}/huge", server.base)).await;
    assert!(completed(&huge).ends_with("[not all of it: only the first 10 MiB were fetched]"));
}

#[tokio::test]
async fn hanging_web_fetch_is_cancelled_by_token() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut fixture = open_fixture();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let call = fixture.call("WebFetch", json!({"url": url}));
    let prepared = fixture.tools.prepare(&call, &fixture.session_context).await.unwrap();
    assert!(!prepared.read_only && prepared.can_run_in_parallel());
    assert_eq!(prepared.summary, format!("Fetch {url}"));
    let stop = CancellationToken::new();
    let (progress, _ignored) = tokio::sync::mpsc::channel(1);
    let run =
        fixture.tools.run(&call, &prepared, &fixture.session_context, progress, registrar(), stop.clone());
    let end = async {
        let accepted = tokio::task::spawn_blocking(move || listener.accept()).await;
        stop.cancel();
        accepted
    };
    let (outcome, _accepted) = within(async { tokio::join!(run, end) }).await;
    assert_eq!(outcome.status, ToolStatus::Cancelled);
}
