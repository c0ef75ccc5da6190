//! Assembles tool calls from fragments.
//!
//! The API numbers parallel calls and cuts each into fragments. Servers differ: some omit the numbers or the
//! ids, some give every call the number 0, some send the name late, some interleave the fragments of several
//! calls. The output has one block after the other, so the fragments of a later call wait until the earlier one
//! is known to be complete.

use crate::stream::assembly::Assembly;
use types::model::Delta;

/// A fragment of a call as received.
pub(super) struct CallFragment<'a> {
    pub index: Option<u64>,
    pub id: &'a str,
    pub tool: &'a str,
    pub json: &'a str,
}

#[derive(Debug, Default)]
pub(super) struct AnswerCalls {
    calls: Vec<CallState>,
    /// The first call that is not closed.
    current: usize,
}

#[derive(Debug)]
struct CallState {
    index: Option<u64>,
    id: String,
    tool: String,
    /// Whether the block of the call was opened.
    has_begun: bool,
    /// Arguments that were not delivered yet.
    waiting: String,
    shape: JsonShape,
}

impl AnswerCalls {
    /// Adds a fragment and delivers the parts that are ready.
    pub(super) fn add(&mut self, fragment: &CallFragment<'_>, answer: &mut Assembly, out: &mut Vec<Delta>) {
        let Some(at) = self.call_index(fragment) else { return };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id.push_str(fragment.id);
        }
        if call.tool.is_empty() {
            call.tool.push_str(fragment.tool);
        }
        call.shape.scan(fragment.json);
        if at == self.current && call.has_begun {
            answer.call_input(fragment.json, out);
        } else {
            call.waiting.push_str(fragment.json);
        }
        self.deliver_ready(StreamStage::Open, answer, out);
    }

    /// Whether no call is open or waiting.
    pub(super) fn is_idle(&self) -> bool {
        self.current == self.calls.len()
    }

    /// Whether every open or waiting call has complete arguments.
    pub(super) fn are_whole(&self) -> bool {
        self.calls[self.current..].iter().all(|call| call.shape.is_whole())
    }

    /// Closes all calls at the end of the stream.
    pub(super) fn finish(&mut self, answer: &mut Assembly, out: &mut Vec<Delta>) {
        self.deliver_ready(StreamStage::Ended, answer, out);
    }

    /// The index of the call that the fragment belongs to; a new one if it matches no known call. `None` for an
    /// empty fragment.
    fn call_index(&mut self, fragment: &CallFragment<'_>) -> Option<usize> {
        let known = match (fragment.index, fragment.id) {
            // The newest call with this number: servers that number every call 0 start a new call with an id.
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index)),
            (None, "") => self.calls.len().checked_sub(1),
            (None, id) => self.calls.iter().rposition(|call| call.id == id),
        };
        if let Some(at) = known {
            let call = &self.calls[at];
            let other_id = !fragment.id.is_empty() && !call.id.is_empty() && call.id != fragment.id;
            // Without an id, a name after complete arguments starts another call.
            let other_name = fragment.id.is_empty()
                && !fragment.tool.is_empty()
                && !call.tool.is_empty()
                && (call.shape.is_whole() || fragment.index.is_none());
            if !other_id && !other_name {
                return (at >= self.current).then_some(at);
            }
        }
        if fragment.id.is_empty() && fragment.tool.is_empty() && fragment.json.trim().is_empty() {
            return None;
        }
        self.calls.push(CallState {
            index: fragment.index,
            id: String::new(),
            tool: String::new(),
            has_begun: false,
            waiting: String::new(),
            shape: JsonShape::default(),
        });
        Some(self.calls.len() - 1)
    }

    fn deliver_ready(&mut self, stage: StreamStage, answer: &mut Assembly, out: &mut Vec<Delta>) {
        loop {
            let more_follow = self.current + 1 < self.calls.len();
            let Some(call) = self.calls.get_mut(self.current) else { return };
            if !call.has_begun {
                if call.tool.is_empty() {
                    if stage == StreamStage::Open {
                        return;
                    }
                    // Without a name, the engine will tell the model that there is no such tool.
                    call.tool.push_str("unnamed");
                }
                answer.call(&call.id, &call.tool, out);
                call.has_begun = true;
            }
            if !call.waiting.is_empty() {
                answer.call_input(&std::mem::take(&mut call.waiting), out);
            }
            if !(stage == StreamStage::Ended || more_follow && call.shape.is_whole()) {
                return;
            }
            answer.close(out);
            self.current += 1;
        }
    }
}

/// Whether more fragments may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamStage {
    Open,
    Ended,
}

/// Tracks brackets and strings of a JSON object to detect its end, without parsing it at every fragment.
#[derive(Clone, Copy, Debug, Default)]
struct JsonShape {
    depth: u32,
    has_opened: bool,
    in_string: bool,
    is_escaped: bool,
}

impl JsonShape {
    fn scan(&mut self, json: &str) {
        for byte in json.bytes() {
            if self.is_escaped {
                self.is_escaped = false;
                continue;
            }
            match byte {
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => {
                    self.depth += 1;
                    self.has_opened = true;
                }
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_whole(self) -> bool {
        self.has_opened && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_complete_when_brackets_are_closed() {
        for (json, whole) in [
            ("", false),
            ("{", false),
            ("{}", true),
            (r#"{"a":"}"#, false),
            (r#"{"a":"}"}"#, true),
            (r#"{"a":"\"}"}"#, true),
            (r#"{"a":[{}]"#, false),
        ] {
            let mut shape = JsonShape::default();
            for piece in json.split_inclusive(|_| true) {
                shape.scan(piece);
            }
            assert_eq!(shape.is_whole(), whole, "{json}");
        }
    }
}
