//! The keyboard in raw mode: a thread reads it, the terminal is put back on every way out.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::termios::{FlushArg, tcflush};
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event};
use ratatui::crossterm::{cursor, execute, terminal};
use tokio::sync::mpsc;

/// How long the thread waits for a key before it looks whether it is still wanted.
const POLL: Duration = Duration::from_millis(40);

/// Raw mode with a key reader. Dropping it restores the terminal.
pub struct Keys {
    events: mpsc::Receiver<Event>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Keys {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard input is not a terminal.
    pub fn take() -> io::Result<Self> {
        restore_on_panic();
        terminal::enable_raw_mode()?;
        // From here on the guard restores, whatever fails.
        let (tell, events) = mpsc::channel(256);
        let stop = Arc::new(AtomicBool::new(false));
        let mut keys = Self { events, stop: stop.clone(), reader: None };
        // What was typed before anything was asked is no answer.
        let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
        execute!(io::stdout(), EnableBracketedPaste)?;
        keys.reader =
            Some(std::thread::Builder::new().name("keys".into()).spawn(move || read(&tell, &stop))?);
        Ok(keys)
    }

    /// The next key, paste or change of size; `None` when the terminal is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread may wait for room in the channel.
        self.events.close();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        restore();
    }
}

fn read(tell: &mpsc::Sender<Event>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match event::poll(POLL) {
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(event) => {
                    if tell.blocking_send(event).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            },
            Err(_) => return,
        }
    }
}

fn restore() {
    let mut stdout = io::stdout();
    let _ = execute!(stdout, DisableBracketedPaste, cursor::Show);
    let _ = terminal::disable_raw_mode();
    let _ = stdout.flush();
}

/// A panic prints its message on a sane terminal.
fn restore_on_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if terminal::is_raw_mode_enabled().unwrap_or(false) {
                restore();
            }
            before(info);
        }));
    });
}
