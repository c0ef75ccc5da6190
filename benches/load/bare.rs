//! References: the time that the machine takes for the same work without the daemon.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use super::Outcome;
use super::wire::{DELTA_DIGITS, STAMP_DIGITS, now_micros};

/// Time to start a process that does nothing, and to wait for its end.
pub fn spawn_process() -> Outcome<Duration> {
    let began = Instant::now();
    let status = Command::new("true").status()?;
    let took = began.elapsed();
    if status.success() { Ok(took) } else { Err("`true` failed".into()) }
}

/// Time to start a shell that does nothing, and to wait for its end.
pub fn spawn_shell() -> Outcome<Duration> {
    let began = Instant::now();
    let status = Command::new("bash").args(["-c", "true"]).status()?;
    let took = began.elapsed();
    if status.success() { Ok(took) } else { Err("a shell failed".into()) }
}

/// Time to append 4 KiB and to sync them.
pub fn append_page(file: &mut File) -> Outcome<Duration> {
    let page = [7; 4096];
    let began = Instant::now();
    file.write_all(&page)?;
    file.sync_data()?;
    Ok(began.elapsed())
}

/// Sends a request to the model server over a new connection.
fn request_answer(address: SocketAddr) -> Outcome<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    socket.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: load\r\ncontent-length: 2\r\n\r\n{}")?;
    Ok(socket)
}

/// Reads one answer to its end. Returns the number of its events, and the time.
pub fn count_events(address: SocketAddr) -> Outcome<(usize, Duration)> {
    let mut socket = request_answer(address)?;
    let began = Instant::now();
    let mut buffer = vec![0; 256 << 10];
    let (mut events, mut last, mut tail) = (0, 0, [0; 5]);
    loop {
        let read = socket.read(&mut buffer)?;
        if read == 0 {
            return Err("the answer was incomplete".into());
        }
        let bytes = &buffer[..read];
        // An event ends with an empty line.
        for &byte in bytes {
            events += usize::from(byte == b'\n' && last == b'\n');
            last = byte;
        }
        let count = read.min(tail.len());
        tail.rotate_left(count);
        let start = tail.len() - count;
        tail[start..].copy_from_slice(&bytes[read - count..]);
        if &tail == b"0\r\n\r\n" {
            return Ok((events, began.elapsed()));
        }
    }
}

/// Reads one paced answer. Returns when each delta was read.
pub fn read_deltas(address: SocketAddr, deltas: usize) -> Outcome<Vec<Instant>> {
    const MARK: &[u8] = b"\"text\":\"";
    let mut socket = request_answer(address)?;
    let mut buffer = [0; 16 << 10];
    let mut seen = Vec::with_capacity(deltas);
    while seen.len() < deltas {
        let read = socket.read(&mut buffer)?;
        let now = Instant::now();
        if read == 0 {
            return Err("the answer was incomplete".into());
        }
        // A chunk is written in one call and is much smaller than the buffer, so a mark is never split.
        let windows = buffer[..read].windows(MARK.len() + DELTA_DIGITS);
        let found =
            windows.filter(|at| at.starts_with(MARK) && at[MARK.len()..].iter().all(u8::is_ascii_digit));
        seen.extend(found.map(|_| now));
    }
    Ok(seen)
}

/// Reads many stamped answers in parallel for some time. Returns the milliseconds from each stamp until it was read.
pub fn read_many_answers(address: SocketAddr, streams: usize, time: Duration) -> Outcome<Vec<f64>> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    const MARK: &[u8] = b"\"text\":\"";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let read = move || async move {
        let mut socket = tokio::net::TcpStream::connect(address).await?;
        socket.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: load\r\ncontent-length: 2\r\n\r\n{}").await?;
        let (mut buffer, mut seen) = ([0; 4 << 10], Vec::new());
        let until = tokio::time::Instant::now() + time;
        while let Ok(read) = tokio::time::timeout_at(until, socket.read(&mut buffer)).await {
            let (read, now) = (read?, now_micros());
            if read == 0 {
                break;
            }
            let marks = buffer[..read].windows(MARK.len() + STAMP_DIGITS).filter(|at| at.starts_with(MARK));
            for stamp in marks {
                let sent = std::str::from_utf8(&stamp[MARK.len()..]).ok().and_then(|text| text.parse().ok());
                seen.extend(sent.map(|sent: u64| now.saturating_sub(sent) as f64 / 1e3));
            }
        }
        std::io::Result::Ok(seen)
    };
    runtime.block_on(async {
        let all: Vec<_> = (0..streams).map(|_| tokio::spawn(read())).collect();
        let mut seen = Vec::new();
        for one in all {
            seen.extend(one.await??);
        }
        Ok(seen)
    })
}

/// Writes the same lines to many sockets, each read by a thread. Returns the lines per second of all together.
pub fn fan_out_lines(readers: usize, lines: usize, line_bytes: usize) -> Outcome<f64> {
    const PIECE_BYTES: usize = 64 << 10;
    let mut line = vec![b'x'; line_bytes.max(2) - 1];
    line.push(b'\n');
    let per_piece = (PIECE_BYTES / line.len()).max(1);
    let piece = line.repeat(per_piece);
    let mut sockets = Vec::new();
    let mut reading = Vec::new();
    for _ in 0..readers {
        let (write, read) = UnixStream::pair()?;
        sockets.push(write);
        reading.push(std::thread::spawn(move || {
            let mut read = BufReader::with_capacity(256 << 10, read);
            let (mut line, mut seen) = (Vec::new(), 0_usize);
            while read.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                line.clear();
                seen += 1;
            }
            seen
        }));
    }
    let began = Instant::now();
    for _ in 0..lines.div_ceil(per_piece) {
        for socket in &mut sockets {
            socket.write_all(&piece)?;
        }
    }
    drop(sockets);
    let mut seen = 0;
    for reader in reading {
        seen += reader.join().map_err(|_| "a reader panicked")?;
    }
    Ok(seen as f64 / began.elapsed().as_secs_f64())
}
