//! The keyboard in raw mode: a thread reads it, and the terminal is restored on every exit.
//!
//! The library that reads keys does not return from a closed terminal: it reads end-of-file in a loop, and a
//! caller that waits for it never continues. So every wait for the reader thread has a timeout. A second
//! thread watches the terminal and ends the program if the main loop does not.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use nix::sys::termios::{FlushArg, tcflush, tcgetattr};
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange, Event,
};
use ratatui::crossterm::{cursor, execute, terminal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{interval, sleep};

use crate::failure::code;

/// How long the thread waits for a key before it checks whether it should end.
const READ_POLL_INTERVAL: Duration = Duration::from_millis(60);

/// Interval between two checks whether the terminal still exists.
const TERMINAL_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long the reader may take to end, and how long the program may take after the terminal is closed
/// or a signal arrives.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// Raw mode with a key reader. Dropping it restores the terminal.
pub struct Keys {
    events: mpsc::Receiver<Event>,
    stop: Arc<AtomicBool>,
    /// Ends when the reader ends, because the reader then drops the sender.
    reader: Option<std_mpsc::Receiver<()>>,
    closed_signal: Option<oneshot::Receiver<()>>,
    cursor_row: Option<u16>,
    _watched: Option<oneshot::Sender<()>>,
}

impl Keys {
    /// Switches the terminal to raw mode. If the terminal is closed, the program ends with
    /// [`code::ABORTED`], at the latest a moment after [`Keys::next`] has reported it.
    pub fn enter_raw_mode() -> io::Result<Self> {
        Self::enter(false, false)
    }

    /// Same as [`Keys::enter_raw_mode`]. SIGTERM and SIGHUP also end the program if its own loop does not end
    /// it within a moment. The loop may be blocked in the terminal.
    pub fn enter_raw_mode_with_signals() -> io::Result<Self> {
        Self::enter(true, false)
    }

    /// As [`Keys::enter_raw_mode_with_signals`], and asks the terminal for the row of the cursor.
    pub fn enter_raw_mode_with_cursor() -> io::Result<Self> {
        Self::enter(true, true)
    }

    fn enter(signals: bool, asks_cursor: bool) -> io::Result<Self> {
        restore_on_panic();
        terminal::enable_raw_mode()?;
        // From here on, `keys` restores the terminal after any failure.
        let (tell, events) = mpsc::channel(256);
        let stop = Arc::new(AtomicBool::new(false));
        let mut keys = Self {
            events,
            stop: stop.clone(),
            reader: None,
            closed_signal: None,
            cursor_row: None,
            _watched: None,
        };
        // Discard keys that were typed before the request, because they are no answer to it.
        while event::poll(Duration::ZERO).unwrap_or(false) && event::read().is_ok() {}
        let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
        execute!(io::stdout(), EnableBracketedPaste, EnableFocusChange)?;
        let (watched, unwatched) = oneshot::channel();
        let (tell_gone, closed_signal) = oneshot::channel();
        // Use a separate runtime, because the program's runtime may be blocked.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("terminal".into()).spawn(move || {
            if runtime.block_on(watch(signals, unwatched, tell_gone)) {
                // Write nothing, because the program may be blocked in a write.
                let _ = terminal::disable_raw_mode();
                std::process::exit(code::ABORTED.into());
            }
        })?;
        (keys.closed_signal, keys._watched) = (Some(closed_signal), Some(watched));
        // Ask before the reader thread starts. That thread would hold the library's reader, so the answer
        // would come up to `READ_POLL_INTERVAL` later.
        if asks_cursor {
            keys.cursor_row = cursor::position().ok().map(|(_, row)| row);
        }
        let (alive, reader) = std_mpsc::channel();
        std::thread::Builder::new().name("keys".into()).spawn(move || {
            read(&tell, &stop, &io::stdin());
            drop(alive);
        })?;
        keys.reader = Some(reader);
        Ok(keys)
    }

    /// The row of the cursor when raw mode began. If it is not known, `u16::MAX`, which counts as the last
    /// row.
    pub fn cursor_row(&self) -> u16 {
        self.cursor_row.unwrap_or(u16::MAX)
    }

    /// The next key, paste or change of size; `None` when the terminal is closed. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        let Some(closed_signal) = &mut self.closed_signal else { return None };
        tokio::select! {
            biased;
            _ = closed_signal => {
                self.closed_signal = None;
                None
            }
            event = self.events.recv() => event,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Close the channel, because the reader may be waiting for a free slot in it.
        self.events.close();
        if let Some(reader) = self.reader.take() {
            // Wait for the reader, because only one may exist at a time. A blocked reader ends with the
            // program.
            let _ = reader.recv_timeout(END_TIMEOUT);
        }
        restore();
    }
}

/// Whether the terminal still exists. After a hang-up, every request to it fails.
fn terminal_exists(terminal: &impl AsFd) -> bool {
    tcgetattr(terminal).is_ok()
}

/// Returns true if this thread must end the program: the terminal was closed or a signal came, and a moment
/// later the program still runs. Returns false once `Keys` is dropped.
async fn watch(
    signals: bool,
    mut unwatched: oneshot::Receiver<()>,
    tell_closed: oneshot::Sender<()>,
) -> bool {
    let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return false;
    };
    let mut look = interval(TERMINAL_POLL_INTERVAL);
    loop {
        tokio::select! {
            // `Keys` was dropped. If the terminal is closed, the reader may never end, so this thread must
            // end the program.
            _ = &mut unwatched => {
                if terminal_exists(&io::stdin()) {
                    return false;
                }
                break;
            }
            _ = look.tick() => if !terminal_exists(&io::stdin()) {
                break;
            },
            _ = terminate.recv(), if signals => break,
            _ = hangup.recv(), if signals => break,
        }
    }
    let _ = tell_closed.send(());
    sleep(END_TIMEOUT).await;
    true
}

fn read(tell: &mpsc::Sender<Event>, stop: &AtomicBool, terminal: &impl AsFd) {
    while !stop.load(Ordering::Relaxed) && terminal_exists(terminal) {
        match event::poll(READ_POLL_INTERVAL) {
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
    let _ = execute!(stdout, DisableBracketedPaste, DisableFocusChange, cursor::Show);
    let _ = terminal::disable_raw_mode();
    let _ = stdout.flush();
}

/// Restores the terminal before a panic prints its message.
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

#[cfg(test)]
mod tests {
    use crate::ui::keys::*;

    #[tokio::test]
    async fn closed_terminal_ends_key_reader() {
        let pty = nix::pty::openpty(None, None).expect("a terminal");
        assert!(terminal_exists(&pty.slave));
        drop(pty.master);
        assert!(!terminal_exists(&pty.slave));
        let (tell, mut events) = mpsc::channel(1);
        let reader = std::thread::spawn(move || read(&tell, &AtomicBool::new(false), &pty.slave));
        let end = tokio::time::timeout(Duration::from_secs(10), events.recv()).await;
        assert!(end.expect("the reader ends").is_none());
        reader.join().expect("no panic");
    }
}
