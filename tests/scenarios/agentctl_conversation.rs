//! The conversation in a terminal: the list of sessions, going back, copying, and long conversations.

use serde_json::json;

use super::agentctl::ctl;
use super::agentctl_prompt::Terminal;
use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// A session with one answered input.
async fn spoken(daemon: &TestDaemon, input: &str, answer: &str) -> Session {
    let session = daemon.client("alice").await.create(daemon).await;
    daemon.models.push(Step::text(answer));
    session.submit(input).await;
    session.call("wait", json!({})).await;
    session
}

#[tokio::test]
async fn attach_shows_conversation_in_its_first_frame() {
    let daemon = TestDaemon::start().await;
    let session = spoken(&daemon, "fix the login", "Done.").await;
    let mut terminal = Terminal::start(&daemon, &["attach", &session.id]);
    let screen = terminal.shows("detaches").await;
    assert!(screen.contains("Done."), "{screen:?}");
}

#[tokio::test]
async fn left_arrow_shows_sessions_and_enter_opens_another() {
    let daemon = TestDaemon::start().await;
    let first = spoken(&daemon, "fix the login", "Done.").await;
    spoken(&daemon, "write the changelog", "Written.").await;
    let mut terminal = Terminal::start(&daemon, &["attach", &first.id]);
    terminal.shows("detaches").await;
    terminal.keys("\u{1b}[D").await;
    let screen = terminal.shows("q leave").await;
    assert!(screen.contains("write the changelog"), "{screen:?}");
    assert!(terminal.output().contains("\u{1b}[?1049h"), "{:?}", terminal.output());
    terminal.keys("q").await;
    let screen = terminal.shows("detaches").await;
    assert!(screen.contains("\u{1b}[?1049l"), "{screen:?}");
    // The newest session is selected.
    terminal.keys("\u{1b}[D").await;
    terminal.shows("q leave").await;
    terminal.keys("\r").await;
    let screen = terminal.shows("session #2").await;
    assert!(screen.contains("left #1, it is kept"), "{screen:?}");
    if !screen.rsplit_once("session #2").is_some_and(|(_, rest)| rest.contains("Written.")) {
        terminal.shows("Written.").await;
    }
    terminal.keys("/resume\r").await;
    terminal.shows("Space preview").await;
    terminal.keys("\u{1b}[B ").await;
    terminal.shows("last messages of #1").await;
    terminal.keys("\r").await;
    // Keys from before the conversation has the terminal are dropped.
    let screen = terminal.shows("detaches").await;
    assert!(screen.contains("session #1"), "{screen:?}");
    terminal.keys("\u{4}").await;
    assert!(terminal.ends().await.success());
}

#[tokio::test]
async fn rewind_before_first_input_restarts_conversation() {
    let daemon = TestDaemon::start().await;
    let session = spoken(&daemon, "first thing", "Done.").await;
    daemon.models.push(Step::text("Done again."));
    session.submit("second thing").await;
    session.call("wait", json!({})).await;
    let mut terminal = Terminal::start(&daemon, &["attach", &session.id]);
    terminal.shows("detaches").await;
    let mut go_back = async |keys: &str, said: &str, input: &str, expected: &str| {
        terminal.keys("\u{1b}").await;
        terminal.shows("Esc again").await;
        terminal.keys("\u{1b}").await;
        terminal.shows("Go back to before").await;
        terminal.keys(keys).await;
        terminal.shows(said).await;
        daemon.models.push(Step::text(expected));
        // The input line contains the earlier input again.
        terminal.keys(" now\r").await;
        terminal.shows(expected).await;
        let request = daemon.models.requests().pop().expect("a request");
        let messages = serde_json::to_string(request.messages()).expect("json");
        assert!(messages.contains(&format!("{input} now")), "{messages}");
        messages
    };
    let said = "rewound the conversation, not the files";
    let messages = go_back("\r", said, "second thing", "One.").await;
    assert!(messages.contains("first thing") && !messages.contains("Done again."), "{messages}");
    let messages = go_back("\u{1b}[Af", "and the files; your input", "first thing", "Two.").await;
    assert!(!messages.contains("second thing") && !messages.contains("Done."), "{messages}");
}

#[tokio::test]
async fn copied_answer_reaches_clipboard_of_terminal() {
    let daemon = TestDaemon::start().await;
    let session = spoken(&daemon, "go", "Run this:\n```sh\nmake\n```\n").await;
    let mut terminal = Terminal::start(&daemon, &["attach", &session.id]);
    assert!(terminal.shows("detaches").await.contains("make"));
    terminal.keys("/copy code\r").await;
    let screen = terminal.shows("copied the last code block").await;
    assert!(terminal.output().contains("\u{1b}]52;c;bWFrZQo=\u{7}"), "{screen:?}");
}

#[tokio::test]
async fn long_conversation_begins_with_its_last_part() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let session = daemon.client("alice").await.create(&daemon).await;
    for nth in 0..60 {
        session.submit(&format!("input number {nth}.")).await;
        session.call("wait", json!({})).await;
    }
    let mut terminal = Terminal::start(&daemon, &["attach", &session.id]);
    let screen = terminal.shows("input number 59.").await;
    assert!(screen.contains("earlier messages are left out here"), "{screen:?}");
    assert!(screen.contains("input number 40.") && !screen.contains("input number 1."), "{screen:?}");
    terminal.keys("\u{f}").await;
    // `agentctl` now reads the earlier messages as well.
    terminal.shows("of 240").await;
    terminal.keys("g").await;
    terminal.shows("input number 1.").await;
}

#[tokio::test]
async fn plain_attach_answers_requests_with_typed_numbers() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let mut terminal = Terminal::start(&daemon, &["--plain", "attach", &session.id]);
    daemon.models.push(Step::calls([bash("touch made")]));
    daemon.models.push(Step::text("It is made."));
    terminal.keys("make it\n").await;
    let screen = terminal.shows("type a number, then Enter").await;
    assert!(!screen.contains('\u{1b}') && !screen.contains('▌'), "lines of words: {screen:?}");
    terminal.keys("1\n").await;
    seen.turn_ends("success").await;
    terminal.shows("It is made.").await;
    assert!(daemon.workspace().join("made").exists());
}

#[tokio::test]
async fn plain_answer_breaks_between_words_on_narrow_terminal() {
    let daemon = TestDaemon::start().await;
    let words: Vec<String> = (10..50).map(|nth| format!("word{nth}")).collect();
    let answer = words.join(" ");
    let text = answer.clone();
    daemon.models.set_fallback(move |_| Step::text(&text));
    let session = daemon.client("alice").await.create(&daemon).await;
    for (args, typed) in
        [(&["--plain", "run", "go"][..], ""), (&["--plain", "attach", session.id.as_str()], "go\n")]
    {
        let mut terminal = Terminal::start_with_columns(&daemon, args, 40);
        terminal.keys(typed).await;
        let screen = terminal.shows("word49").await;
        let rows: Vec<&str> = screen.lines().filter(|row| row.starts_with("word")).collect();
        assert_eq!(rows.join(" "), answer, "{args:?}: {screen:?}");
        assert!(rows.iter().all(|row| row.len() <= 40), "{args:?}: {rows:?}");
    }
}

#[tokio::test]
async fn submit_prints_number_on_terminal_and_turn_id_in_pipe() {
    let daemon = TestDaemon::start().await;
    let session = spoken(&daemon, "fix the login", "Done.").await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let mut terminal = Terminal::start(&daemon, &["submit", &session.id, "go on"]);
    let screen = terminal.shows("#1\r\n").await;
    assert!(!screen.contains("turn_"), "{screen:?}");
    assert!(terminal.ends().await.success());
    session.call("wait", json!({})).await;
    let said = ctl(&daemon, &["submit", "1", "go on"]).await.stdout();
    assert!(said.starts_with("turn_"), "{said:?}");
}
