//! A scripted MCP server: the same answers as a program on standard streams and over HTTP.
//!
//! The program is this test binary: it runs one ignored test, which serves if the variable `MCP_SCRIPT` is set. The
//! lines of the test harness on the same output are no messages, and clients ignore them.
#![allow(dead_code, reason = "a tool box: not every test needs every tool")]
#![allow(clippy::disallowed_methods, reason = "it is another program, whose threads may sleep")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use super::daemon::TestDaemon;

/// Bytes of a picture: PNG, one pixel.
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The behaviour of the server, stored as JSON in a file. The server reads the file for each request, so a test can
/// change the behaviour at any time.
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

/// The usual tools, and tools with these names that take no arguments.
pub fn tools_with(names: &[&str]) -> Value {
    let mut tools = usual_tools();
    let more = names.iter().map(|name| {
        json!({"name": name, "description": format!("The tool {name}"), "inputSchema": {"type": "object"}})
    });
    tools.as_array_mut().expect("a list").extend(more);
    tools
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

    /// Sets the behaviour: `tools`, `mode` (`hang`, `exit`, `strict`), `instructions`, `revision`, `resources` (a
    /// list of `uri`, `name` and `text` or `blob`), `question` (what the tool `ask` sends), `result` (what the tool
    /// `raw` answers), `stray` (messages before the handshake), `gate` (a file for which the start waits), `redirect`
    /// (where `/mcp` is redirected over HTTP).
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

    /// The same entry as a table of `config.toml`, followed by the lines in `more`.
    pub fn table(&self, name: &str, more: &str) -> String {
        let entry = self.entry();
        format!(
            "[mcp.{name}]\ncommand = {}\nargs = {}\nenv = {{ MCP_SCRIPT = {} }}\n{more}\n",
            entry["command"], entry["args"], entry["env"]["MCP_SCRIPT"]
        )
    }

    /// Serves this script over HTTP. Returns the address, and the headers of all requests. The tools `drop`, `broken`
    /// and `flood` close the connection, fail with status 500, and send notifications without end.
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
    let script = read_script(file);
    if let (Some(target), Some("/mcp")) = (script["redirect"].as_str(), head.split_whitespace().nth(1)) {
        let answer =
            format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).ok()?;
        return Some(());
    }
    let reply = match head.split_whitespace().next() {
        Some("POST") => {
            let request: Value = serde_json::from_slice(&body).ok()?;
            match request["params"]["name"].as_str() {
                Some("drop") => {
                    note_line(&read_script(file), "call drop");
                    return None;
                }
                Some("broken") => {
                    note_line(&read_script(file), "call broken");
                    write!(stream, "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n").ok()?;
                    return Some(());
                }
                Some("flood") => {
                    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").ok()?;
                    loop {
                        let event = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                        write!(stream, "data: {event}\n\n").ok()?;
                    }
                }
                _ => {}
            }
            answer(&request, file, &UnreachableClient).map(|reply| reply.to_string())
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

fn note_line(script: &Value, line: &str) {
    let path = script["calls"].as_str().unwrap_or_default();
    if let Ok(mut file) = std::fs::File::options().create(true).append(true).open(path) {
        let _ = writeln!(file, "{line}");
    }
}

fn read_script(file: &Path) -> Value {
    std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Messages that a running tool can send to the client.
trait ToolClient {
    /// Sends a notification.
    fn send(&self, message: Value);

    /// Sends a request and waits for the answer.
    fn ask(&self, method: &str, params: Value) -> Value;
}

/// A client over HTTP. The server can send it replies only.
struct UnreachableClient;

impl ToolClient for UnreachableClient {
    fn send(&self, _: Value) {}

    fn ask(&self, _: &str, _: Value) -> Value {
        Value::Null
    }
}

/// The client at the other end of standard input and output.
#[derive(Clone, Default)]
struct StdioClient {
    waiting: Arc<Mutex<HashMap<String, mpsc::Sender<Value>>>>,
    /// The id of the open subscription.
    subscription: Arc<Mutex<Option<Value>>>,
}

impl ToolClient for StdioClient {
    fn send(&self, message: Value) {
        let mut output = std::io::stdout().lock();
        let _ = writeln!(output, "{message}").and_then(|()| output.flush());
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        let (send, reply) = mpsc::channel();
        let mut waiting = self.waiting.lock().expect("a lock");
        let id = format!("server-{}", waiting.len() + 1);
        waiting.insert(id.clone(), send);
        drop(waiting);
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        reply.recv().unwrap_or_default()
    }
}

const STATELESS: &str = "2026-07-28";

fn is_stateless(script: &Value) -> bool {
    script["revision"] == STATELESS
}

/// The reply to a message; `None` for a notification.
fn answer(message: &Value, file: &Path, peer: &dyn ToolClient) -> Option<Value> {
    let script = read_script(file);
    let id = message.get("id")?;
    let params = &message["params"];
    let refused = |code: i64, text: String| {
        Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}))
    };
    let mut capabilities = json!({"tools": {"listChanged": true}, "prompts": {}});
    if script["resources"].is_array() {
        capabilities["resources"] = json!({});
    }
    let resources = || script["resources"].as_array().cloned().unwrap_or_default();
    let mut result = match message["method"].as_str().unwrap_or_default() {
        "initialize" if !is_stateless(&script) => {
            note_line(&script, &format!("initialize {}", params["capabilities"]));
            json!({
                "protocolVersion": script["revision"].as_str().unwrap_or("2025-06-18"),
                "capabilities": capabilities,
                "serverInfo": {"name": "scripted", "version": "1"},
                "instructions": script["instructions"],
            })
        }
        "server/discover" if is_stateless(&script) => {
            note_line(&script, "discover");
            json!({
                "supportedVersions": [STATELESS],
                "capabilities": capabilities,
                "instructions": script["instructions"],
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
            })
        }
        "tools/list" => json!({"tools": script["tools"], "ttlMs": 0, "cacheScope": "private"}),
        "prompts/list" => json!({"ttlMs": 0, "cacheScope": "private", "prompts": [{
            "name": "greet", "description": "Greets", "arguments": [{"name": "who", "required": true}],
        }]}),
        "prompts/get" => {
            let who = params["arguments"]["who"].as_str().unwrap_or_default();
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": format!("Greet {who} warmly.")}}]})
        }
        "resources/list" => {
            let listed = resources().into_iter().map(|it| json!({"uri": it["uri"], "name": it["name"]}));
            json!({"resources": listed.collect::<Vec<_>>(), "ttlMs": 0, "cacheScope": "private"})
        }
        "resources/read" => {
            note_line(&script, &format!("read {}", params["uri"]));
            let Some(found) = resources().into_iter().find(|it| it["uri"] == params["uri"]) else {
                return refused(-32002, format!("there is no resource {}", params["uri"]));
            };
            json!({"contents": [found], "ttlMs": 0, "cacheScope": "private"})
        }
        "tools/call" => call(&script, params, peer),
        "tasks/get" => task(&script, params),
        "tasks/cancel" => {
            note_line(&script, "task cancelled");
            json!({})
        }
        "ping" => json!({}),
        method => return refused(-32601, format!("no method {method}")),
    };
    if is_stateless(&script) && result.get("resultType").is_none() {
        result["resultType"] = json!("complete");
    }
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// The state of the task that the tool `task` starts. The task is still working at the first two requests for it.
fn task(script: &Value, params: &Value) -> Value {
    note_line(script, "task");
    let path = script["calls"].as_str().unwrap_or_default();
    let looks =
        std::fs::read_to_string(path).unwrap_or_default().lines().filter(|line| *line == "task").count();
    let mut task = new_task(params["taskId"].as_str().unwrap_or_default());
    task["resultType"] = json!("complete");
    if looks > 2 && script["question"] != "never" {
        task["status"] = json!("completed");
        task["result"] = json!({"content": [{"type": "text", "text": "the task is done"}]});
    }
    task
}

fn new_task(id: &str) -> Value {
    json!({
        "resultType": "task", "taskId": id, "status": "working", "statusMessage": "working on it",
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 100,
    })
}

fn call(script: &Value, params: &Value, peer: &dyn ToolClient) -> Value {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let tool = params["name"].as_str().unwrap_or_default();
    note_line(script, &format!("call {tool}"));
    match tool {
        "echo" => text(params["arguments"]["text"].as_str().unwrap_or_default()),
        "fail" => json!({"content": [{"type": "text", "text": "it went wrong"}], "isError": true}),
        "picture" => json!({"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}),
        "structured" => json!({"content": [], "structuredContent": {"answer": 42}}),
        "slow" => {
            let token = &params["_meta"]["progressToken"];
            for step in 1..=2 {
                peer.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
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
        "huge" => text(&"x".repeat(20 << 20)),
        "flood" => loop {
            peer.send(
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
        "ask" if is_stateless(script) => match params["inputResponses"].get("colour") {
            Some(response) => text(&format!("{response} with {}", params["requestState"])),
            None => json!({
                "resultType": "input_required",
                "inputRequests": {"colour": {"method": "elicitation/create", "params": script["question"]}},
                "requestState": "remembered",
            }),
        },
        "ask" => {
            let reply = peer.ask("elicitation/create", script["question"].clone());
            text(&reply["result"].to_string())
        }
        "sample" if is_stateless(script) => match params["inputResponses"].get("s") {
            Some(response) => text(&response.to_string()),
            None => json!({
                "resultType": "input_required",
                "inputRequests": {"s": {"method": "sampling/createMessage", "params": {
                    "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5,
                }}},
            }),
        },
        "sample" => {
            let messages = json!([{"role": "user", "content": {"type": "text", "text": "hi"}}]);
            let reply = peer.ask("sampling/createMessage", json!({"messages": messages, "maxTokens": 5}));
            text(&reply.to_string())
        }
        "task" => new_task("t1"),
        "raw" => script["result"].clone(),
        "arguments" => text(&params["arguments"].to_string()),
        other => text(&format!("called {other}")),
    }
}

#[test]
#[ignore = "it is the program of the scripted MCP server"]
fn scripted_server_serves_until_input_ends() {
    let Ok(file) = std::env::var("MCP_SCRIPT") else { return };
    let file = PathBuf::from(file);
    let script = read_script(&file);
    note_line(&script, &format!("start {}", std::process::id()));
    match script["mode"].as_str().unwrap_or_default() {
        "hang" => std::thread::sleep(Duration::from_secs(60)),
        "exit" => {
            eprintln!("cannot start: no licence");
            std::process::exit(7);
        }
        _ => {}
    }
    if let Some(gate) = script["gate"].as_str() {
        while !Path::new(gate).exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let peer = StdioClient::default();
    script["stray"].as_array().into_iter().flatten().for_each(|message| peer.send(message.clone()));
    for line in std::io::stdin().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        match message["method"].as_str() {
            None => {
                let id = message["id"].as_str().unwrap_or_default().to_owned();
                if let Some(waits) = peer.waiting.lock().expect("a lock").get(&id) {
                    let _ = waits.send(message);
                }
                continue;
            }
            Some("notifications/cancelled") => note_line(&script, "cancelled"),
            Some("subscriptions/listen") if is_stateless(&script) => {
                note_line(&script, "listen");
                *peer.subscription.lock().expect("a lock") = Some(message["id"].clone());
                peer.send(
                    json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
                        "_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]},
                        "notifications": {"toolsListChanged": true},
                    }}),
                );
                continue;
            }
            Some(method) if script["mode"] == "strict" && method == "server/discover" => {
                std::process::exit(9)
            }
            Some(_) => {}
        }
        // Answer in a thread: a tool may wait for a reply of the client, which this loop must read.
        let (peer, file) = (peer.clone(), file.clone());
        let work = move || {
            // A test asks for this notification through a call.
            let is_change = message["params"]["name"] == "announce";
            if let Some(reply) = answer(&message, &file, &peer) {
                peer.send(reply);
            }
            if is_change {
                let subscription = peer.subscription.lock().expect("a lock").clone();
                let mut change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                if let Some(id) = subscription {
                    change["params"] = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
                }
                peer.send(change);
            }
        };
        std::thread::spawn(work);
    }
    note_line(&script, "end");
}
