//! Parser of server-sent events: bytes in, events out. It is pure, incremental, and works on bytes, so that a
//! chunk may end anywhere: inside a character, between CR and LF, inside the byte order mark.
//!
//! Every byte is scanned once and copied at most twice. The common case, a complete `data` line and the blank
//! line after it in one chunk, needs no copy. Lines longer than a chunk are buffered and never scanned again.

/// One event: its name (empty if the stream did not name one) and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// The `event` field.
    pub name: &'a [u8],
    /// The `data` lines, joined by line feeds. Always present: the standard ignores events without data.
    pub data: &'a [u8],
}

/// An event exceeded the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventTooLong;

/// Maximum bytes of one event: far more than any answer needs.
pub(crate) const MAX_EVENT_BYTES: usize = 32 << 20;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The parser's state between chunks.
#[derive(Debug)]
pub(crate) struct Parser {
    /// Start of a line whose end has not arrived yet.
    line: Vec<u8>,
    /// Data of the event so far, each line followed by a line feed.
    data: Vec<u8>,
    name: Vec<u8>,
    /// Whether the last byte was a CR, so that a LF that follows belongs to it.
    after_cr: bool,
    /// Whether no line has ended yet, so that the next one may begin with a byte order mark.
    at_start: bool,
    max: usize,
}

impl Default for Parser {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl Parser {
    /// A parser that refuses lines, and data of events, above `max` bytes.
    pub(crate) fn with_limit(max: usize) -> Self {
        Self { line: Vec::new(), data: Vec::new(), name: Vec::new(), after_cr: false, at_start: true, max }
    }

    /// Parses the next bytes and calls `each` for every complete event. Stops at the first error of `each`.
    pub(crate) fn feed<E: From<EventTooLong>>(
        &mut self,
        mut chunk: &[u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.after_cr && !chunk.is_empty() {
            self.after_cr = false;
            chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        // The only data line of the event so far, while it is in this chunk.
        let mut borrowed: Option<&[u8]> = None;
        while let Some(end) = line_end(chunk) {
            let line = &chunk[..end];
            let mut rest = &chunk[end + 1..];
            if chunk[end] == b'\r' {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            chunk = rest;
            if self.line.is_empty() {
                // The limit also applies to a line that needs no copy: how a stream was cut must not change the
                // result.
                if line.len() > self.max {
                    return Err(EventTooLong.into());
                }
                self.take_line(line, &mut borrowed, &mut each)?;
            } else {
                self.extend_line(line)?;
                let whole = std::mem::take(&mut self.line);
                // A borrowed line cannot be pending here: it would have come after the buffered one.
                let mut buffered_data = None;
                self.take_line(&whole, &mut buffered_data, &mut each)?;
                if let Some(data) = buffered_data {
                    self.append_data(data)?;
                }
                self.line = whole;
                self.line.clear();
            }
        }
        if let Some(data) = borrowed {
            self.append_data(data)?;
        }
        Ok(self.extend_line(chunk)?)
    }

    /// Handles the end of the stream: it delivers an event without its blank line, which some servers omit.
    pub(crate) fn finish<E: From<EventTooLong>>(
        &mut self,
        mut each: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.feed(b"\n\n", &mut each)
    }

    /// Bytes buffered between chunks.
    pub(crate) fn held_bytes(&self) -> usize {
        self.line.len() + self.data.len() + self.name.len()
    }

    fn take_line<'c, E: From<EventTooLong>>(
        &mut self,
        mut line: &'c [u8],
        borrowed: &mut Option<&'c [u8]>,
        each: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.at_start {
            self.at_start = false;
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            let outcome = match borrowed.take() {
                Some(data) if self.data.is_empty() => each(Event { name: &self.name, data }),
                last => {
                    if let Some(data) = last {
                        self.append_data(data)?;
                    }
                    match self.data.split_last() {
                        Some((_, data)) => each(Event { name: &self.name, data }),
                        None => Ok(()),
                    }
                }
            };
            self.data.clear();
            self.name.clear();
            return outcome;
        }
        if let Some(value) = field(line, b"data") {
            if let Some(earlier) = borrowed.replace(value) {
                self.append_data(earlier)?;
            }
        } else if let Some(value) = field(line, b"event") {
            self.name.clear();
            self.name.extend_from_slice(value);
        }
        // Comments, `id`, `retry` and unknown fields are ignored.
        Ok(())
    }

    /// Adds one line to the data of the event.
    fn append_data(&mut self, line: &[u8]) -> Result<(), EventTooLong> {
        if self.data.len() + line.len() + 1 > self.max {
            return Err(EventTooLong);
        }
        self.data.extend_from_slice(line);
        self.data.push(b'\n');
        Ok(())
    }

    /// Appends to the incomplete line.
    fn extend_line(&mut self, part: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + part.len() > self.max {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }
}

/// The value of the line's field, if its name matches: one space after the colon is not part of it.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    match rest.split_first() {
        None => Some(rest),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
    }
}

/// Position of the first CR or LF.
fn line_end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr2(b'\n', b'\r', bytes)
}

#[cfg(test)]
mod tests {
    use crate::stream::sse::*;
    use proptest::prelude::*;

    fn events(chunks: &[&[u8]]) -> Result<Vec<(String, String)>, EventTooLong> {
        let mut parser = Parser::with_limit(64);
        let mut seen = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for chunk in chunks {
            parser.feed(chunk, |event| {
                seen.push((text(event.name), text(event.data)));
                Ok::<_, EventTooLong>(())
            })?;
        }
        parser.finish(|event| {
            seen.push((text(event.name), text(event.data)));
            Ok::<_, EventTooLong>(())
        })?;
        Ok(seen)
    }

    /// The stream gives these events, whole and cut into pieces of every small size.
    fn check(stream: &str, expected: &[(&str, &str)]) {
        let expected: Vec<(String, String)> =
            expected.iter().map(|(name, data)| ((*name).into(), (*data).into())).collect();
        for size in [usize::MAX, 1, 2, 3, 5, 7] {
            let pieces: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
            assert_eq!(events(&pieces), Ok(expected.clone()), "{stream:?} in pieces of {size}");
        }
    }

    #[test]
    fn sse_events_end_at_any_blank_line() {
        check("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]);
        check("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check("data: a\n\r\ndata: b\r\n\n", &[("", "a"), ("", "b")]);
        check("\n\n\ndata: a\n\n\n\n", &[("", "a")]);
    }

    #[test]
    fn sse_fields_are_parsed_per_standard() {
        check("event: ping\ndata: {}\n\n", &[("ping", "{}")]);
        check("data: {}\nevent: late\n\ndata: x\n\n", &[("late", "{}"), ("", "x")]);
        check("data:tight\n\n", &[("", "tight")]);
        check("data:  two spaces\n\n", &[("", " two spaces")]);
        check("data\n\n", &[("", "")]);
        check("data: one\ndata: two\ndata: three\n\n", &[("", "one\ntwo\nthree")]);
        check("data:\ndata:\n\n", &[("", "\n")]);
        check(": comment\nid: 7\nretry: 10\nother: x\ndata: a\n\n", &[("", "a")]);
        check("database: no\n\n", &[]);
        check("event: lonely\n\n", &[]);
        check("\u{feff}data: marked\n\n", &[("", "marked")]);
        check("data: grüße 🦀\n\n", &[("", "grüße 🦀")]);
    }

    #[test]
    fn last_sse_event_may_lack_blank_line() {
        check("data: a\n\ndata: [DONE]", &[("", "a"), ("", "[DONE]")]);
        check("data: a\n", &[("", "a")]);
        check("data: a\r", &[("", "a")]);
    }

    #[test]
    fn sse_event_over_limit_is_refused() {
        let long = [b'x'; 70];
        assert_eq!(events(&[b"data: ", &long]), Err(EventTooLong));
        assert_eq!(events(&[&[b"data: ", &long[..], b"\n\n"].concat()]), Err(EventTooLong));
        let lines = b"data: 0123456789\n".repeat(7);
        assert_eq!(events(&[&lines]), Err(EventTooLong));
        // Many small events are not one long event.
        assert_eq!(events(&[&b"data: 0123456789\n\n".repeat(20)]).map(|e| e.len()), Ok(20));
    }

    proptest! {
        #[test]
        fn sse_events_are_independent_of_chunk_boundaries(
            lines in prop::collection::vec(
                prop::sample::select(vec!["data: x", "data:ÿ🦀", "", "event: e", ": c", "data", "junk"]), 0..30),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n"]), 30),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let stream: String =
                lines.iter().zip(&ends).map(|(line, end)| format!("{line}{end}")).collect();
            let bytes = stream.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for to in at {
                pieces.push(&bytes[from..to]);
                from = to;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(events(&pieces), events(&[bytes]));
        }
    }
}
