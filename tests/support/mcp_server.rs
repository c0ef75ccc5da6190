//! A scripted MCP server: the same answers as a program on standard streams and over HTTP.
//!
//! The program is this test binary: it runs one ignored test, which serves if the variable `MCP_SCRIPT` is set. The
//! lines of the test harness on the same output are no messages, and clients ignore them.
#![allow(dead_code, reason = "a tool box: not every test needs every tool")]
#![allow(clippy::disallowed_methods, reason = "it is another program, whose threads may sleep")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::daemon::TestDaemon;

/// Bytes of a picture: PNG, one pixel.
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What the server does. It is written as JSON into a file, which the server reads for each request, so a test can
/// change it meanwhile.
pub struct McpScript {
    file: PathBuf,
    calls: PathBuf,
}

/// The tools that every script starts with.
pub fn usual_tools() -> Value {
    let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let none = json!({"type": "object", "properties": {}});
    let tool = |name: &str, schema: &Value| json!({"name": name, "description": format!("The tool {name}"), "inputSchema": schema});
    json!([
        tool("echo", &text),
        tool("fail", &none),
        tool("picture", &none),
        tool("structured", &none),
        tool("slow", &none),
        tool("die", &none),
        tool("huge", &none),
        tool("flood", &none),
        tool("env", &none),
        tool("hang", &none),
        tool("write", &text),
    ])
}

impl McpScript {
    /// A script in the daemon's folder.
    pub fn new(daemon: &TestDaemon, name: &str) -> Self {
        let script = Self {
            file: daemon.path(&format!("{name}.script.json")),
            calls: daemon.path(&format!("{name}.calls")),
        };
        script.set(json!({}));
        script
    }

    /// Sets the behaviour: `tools`, `mode` (`hang`, `exit`, `garbage`), `instructions`.
    pub fn set(&self, behaviour: Value) {
        let mut all = json!({"tools": usual_tools(), "mode": "", "instructions": ""});
        for (key, value) in behaviour.as_object().expect("an object") {
            all[key] = value.clone();
        }
        all["calls"] = json!(self.calls);
        std::fs::write(&self.file, all.to_string()).expect("written");
    }

    /// Lines of starts and calls so far.
    pub fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.calls).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Number of lines that begin with this word.
    pub fn count(&self, word: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(word)).count()
    }

    /// The entry of `.mcp.json` that runs this script as a program.
    pub fn entry(&self) -> Value {
        json!({
            "command": std::env::current_exe().expect("a path"),
            "args": ["support::mcp_server::scripted_server_serves_until_input_ends", "--exact", "--ignored", "--nocapture"],
            "env": {"MCP_SCRIPT": self.file},
        })
    }

    /// The same as a table of `config.toml`.
    pub fn table(&self, name: &str, more: &str) -> String {
        let entry = self.entry();
        format!(
            "[mcp.{name}]\ncommand = {}\nargs = {}\nenv = {{ MCP_SCRIPT = {} }}\n{more}\n",
            entry["command"], entry["args"], entry["env"]["MCP_SCRIPT"]
        )
    }

    /// Serves this script over HTTP. Returns the address, and the headers of all requests.
    pub fn serve_http(&self) -> (String, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let (file, seen) = (self.file.clone(), Arc::clone(&heads));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (file, seen) = (file.clone(), Arc::clone(&seen));
                std::thread::spawn(move || while serve_one(&stream, &file, &seen).is_some() {});
            }
        });
        (url, heads)
    }
}

/// Answers one HTTP request.
fn serve_one(mut stream: &TcpStream, file: &Path, seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    seen.lock().expect("a lock").push(head.clone());
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let reply = match head.split_whitespace().next() {
        Some("POST") => {
            let request: Value = serde_json::from_slice(&body).ok()?;
            answer(&request, file, &mut |_| {}).map(|reply| reply.to_string())
        }
        Some("DELETE") => None,
        _ => {
            write!(stream, "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n").ok()?;
            return Some(());
        }
    };
    match reply {
        Some(reply) => write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{reply}",
            reply.len()
        ),
        None => write!(stream, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"),
    }
    .ok()
}

fn note(script: &Value, line: &str) {
    let path = script["calls"].as_str().unwrap_or_default();
    if let Ok(mut file) = std::fs::File::options().create(true).append(true).open(path) {
        let _ = writeln!(file, "{line}");
    }
}

fn read_script(file: &Path) -> Value {
    std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// The reply to a message; `None` for a notification. `send` sends other messages.
fn answer(message: &Value, file: &Path, send: &mut dyn FnMut(Value)) -> Option<Value> {
    let script = read_script(file);
    let id = message.get("id")?;
    let params = &message["params"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            note(&script, "initialize");
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": true}, "prompts": {}},
                "serverInfo": {"name": "scripted", "version": "1"},
                "instructions": script["instructions"],
            })
        }
        "tools/list" => json!({"tools": script["tools"]}),
        "prompts/list" => json!({"prompts": [{
            "name": "greet", "description": "Greets", "arguments": [{"name": "who", "required": true}],
        }]}),
        "prompts/get" => {
            let who = params["arguments"]["who"].as_str().unwrap_or_default();
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": format!("Greet {who} warmly.")}}]})
        }
        "tools/call" => call(&script, params, send),
        "ping" => json!({}),
        method => {
            let text = format!("no method {method}");
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": text}}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn call(script: &Value, params: &Value, send: &mut dyn FnMut(Value)) -> Value {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let tool = params["name"].as_str().unwrap_or_default();
    note(script, &format!("call {tool}"));
    match tool {
        "echo" => text(params["arguments"]["text"].as_str().unwrap_or_default()),
        "fail" => json!({"content": [{"type": "text", "text": "it went wrong"}], "isError": true}),
        "picture" => json!({"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}),
        "structured" => json!({"content": [], "structuredContent": {"answer": 42}}),
        "slow" => {
            let token = &params["_meta"]["progressToken"];
            for step in 1..=2 {
                send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                    "progressToken": token, "progress": step, "total": 2, "message": format!("step {step}"),
                }}));
                std::thread::sleep(Duration::from_millis(100));
            }
            text("slow is done")
        }
        "die" => {
            eprintln!("dying as asked");
            std::process::exit(3)
        }
        "huge" => text(&"x".repeat(100 << 20)),
        "flood" => loop {
            send(
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "flood"}}),
            );
        },
        "env" => {
            let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            names.sort();
            text(&names.join(","))
        }
        "hang" => {
            std::thread::sleep(Duration::from_secs(60));
            text("late")
        }
        "write" => {
            let path = params["arguments"]["text"].as_str().unwrap_or_default();
            match std::fs::write(path, "x") {
                Ok(()) => text("written"),
                Err(error) => text(&error.to_string()),
            }
        }
        other => text(&format!("called {other}")),
    }
}

#[test]
#[ignore = "it is the program of the scripted MCP server"]
fn scripted_server_serves_until_input_ends() {
    let Ok(file) = std::env::var("MCP_SCRIPT") else { return };
    let file = PathBuf::from(file);
    let script = read_script(&file);
    note(&script, &format!("start {}", std::process::id()));
    match script["mode"].as_str().unwrap_or_default() {
        "hang" => std::thread::sleep(Duration::from_secs(60)),
        "exit" => {
            eprintln!("cannot start: no licence");
            std::process::exit(7);
        }
        _ => {}
    }
    let mut output = std::io::stdout();
    let mut send = |message: Value| {
        let _ = writeln!(output, "{message}").and_then(|()| output.flush());
    };
    for line in std::io::stdin().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if message["method"] == "notifications/cancelled" {
            note(&script, "cancelled");
        }
        // A test asks for this notification through a call.
        let is_change = message["params"]["name"] == "announce";
        if let Some(reply) = answer(&message, &file, &mut send) {
            send(reply);
        }
        if is_change {
            send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
        }
    }
    note(&script, "end");
}
