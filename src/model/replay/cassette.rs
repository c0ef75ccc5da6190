//! The file format of cassettes: JSON Lines, one record per line.
//!
//! ```json
//! {"cassette":1,"match":"order"}
//! {"api":"anthropic","status":200,"at":0,"hash":"…","body":"event: message_start\n…"}
//! {"say":"Let me look.","calls":[{"tool":"Read","input":{"file_path":"a"}}],"usage":{"output_tokens":9}}
//! {"thinking":"Hm.","say":"Done.","delay_ms":50,"pace_ms":20}
//! {"fail":"overloaded"}
//! ```
//!
//! The first line may be a header. A record with `api` is a recording, all others are scripts. Blank lines and
//! lines that begin with `#` or `//` are comments.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use types::model::{FaultKind, StopReason};
use types::usage::Usage;

/// Maximum size of a cassette.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// The only version of the format.
const VERSION: u32 = 1;

/// How to find the record for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordMatch {
    /// By the number of answers in the conversation.
    #[default]
    Order,
    /// By the hash of the request.
    Hash,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    cassette: u32,
    #[serde(default, rename = "match")]
    by: RecordMatch,
}

impl Default for Header {
    fn default() -> Self {
        Self { cassette: VERSION, by: RecordMatch::default() }
    }
}

/// A recorded answer.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recording {
    /// Name of the API.
    pub api: String,
    /// HTTP status.
    pub status: u16,
    /// Index in the order of answers; if absent, the position in the file counts.
    pub at: Option<usize>,
    /// Hash of the request.
    pub hash: Option<String>,
    /// The bytes, as text.
    pub body: String,
}

/// An answer written by hand.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Script {
    /// Reasoning, first.
    pub thinking: Option<String>,
    /// Text, streamed word by word.
    pub say: Option<String>,
    /// Tool calls, last.
    pub calls: Vec<ScriptedCall>,
    /// Wait before the first delta, in milliseconds.
    pub delay_ms: u64,
    /// Wait after each delta, in milliseconds.
    pub pace_ms: u64,
    /// The usage that it reports.
    pub usage: Usage,
    /// The stop reason, if not the default one.
    pub stop: Option<StopReason>,
    /// Fail in this way after the content.
    pub fail: Option<FaultKind>,
    /// See [`Recording::at`].
    pub at: Option<usize>,
    /// See [`Recording::hash`].
    pub hash: Option<String>,
}

/// A call written by hand.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedCall {
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub input: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// From a real provider.
    Recording(Recording),
    /// Written by hand.
    Script(Box<Script>),
}

impl Record {
    fn position(&self) -> Option<usize> {
        match self {
            Record::Recording(recording) => recording.at,
            Record::Script(script) => script.at,
        }
    }

    /// Whether this is a recorded helper call, which is found by its hash alone.
    fn is_helper_record(&self) -> bool {
        matches!(self, Record::Recording(Recording { at: None, hash: Some(_), .. }))
    }

    fn hash(&self) -> Option<&str> {
        match self {
            Record::Recording(recording) => recording.hash.as_deref(),
            Record::Script(script) => script.hash.as_deref(),
        }
    }
}

/// A loaded cassette.
#[derive(Debug, PartialEq)]
pub(crate) struct Cassette {
    pub by: RecordMatch,
    records: Vec<Record>,
}

/// The reason why a cassette cannot be played.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CassetteError {
    /// The file cannot be read.
    #[error("could not be read ({0})")]
    Unreadable(String),
    /// A line is invalid; lines count from 1.
    #[error("line {0}: {1}")]
    Line(usize, String),
}

impl Cassette {
    /// Reads a file. Blocking.
    pub(crate) fn load(file: &Path) -> Result<Self, CassetteError> {
        let unreadable = |error: std::io::Error| CassetteError::Unreadable(error.to_string());
        let size = std::fs::metadata(file).map_err(unreadable)?.len();
        if size > MAX_FILE_BYTES {
            return Err(CassetteError::Unreadable(format!("more than {} MiB", MAX_FILE_BYTES >> 20)));
        }
        Self::parse(&std::fs::read_to_string(file).map_err(unreadable)?)
    }

    /// Reads the text of a file.
    pub(crate) fn parse(text: &str) -> Result<Self, CassetteError> {
        let mut header: Option<Header> = None;
        let mut records = Vec::new();
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || line.starts_with("//") {
                continue;
            }
            let wrong = |why: String| CassetteError::Line(number + 1, why);
            let fields: Map<String, Value> =
                serde_json::from_str(line).map_err(|error| wrong(format!("not a JSON object ({error})")))?;
            let whole = Value::Object(fields);
            if whole.get("cassette").is_some() {
                if header.is_some() || !records.is_empty() {
                    return Err(wrong("the header belongs first, and once".into()));
                }
                let read: Header = serde_json::from_value(whole).map_err(|e| wrong(e.to_string()))?;
                if read.cassette != VERSION {
                    return Err(wrong(format!("format {} is not known, only {VERSION}", read.cassette)));
                }
                header = Some(read);
            } else if whole.get("api").is_some() {
                let recording = serde_json::from_value(whole).map_err(|e| wrong(e.to_string()))?;
                records.push(Record::Recording(recording));
            } else {
                let script = serde_json::from_value(whole).map_err(|e| wrong(e.to_string()))?;
                records.push(Record::Script(Box::new(script)));
            }
        }
        Ok(Self { by: header.unwrap_or_default().by, records })
    }

    /// Record `number` in order: the newest with this number, else the one at this position without a number.
    pub(crate) fn by_order(&self, number: usize) -> Option<&Record> {
        let in_place = |record: &&Record| record.position().is_none() && !record.is_helper_record();
        self.records
            .iter()
            .rfind(|record| record.position() == Some(number))
            .or_else(|| self.records.get(number).filter(in_place))
    }

    /// The newest record with this hash.
    pub(crate) fn by_hash(&self, hash: &str) -> Option<&Record> {
        self.records.iter().rfind(|record| record.hash() == Some(hash))
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::replay::cassette::*;

    fn check_error(text: &str, line: usize, expected_text: &str) {
        match Cassette::parse(text) {
            Err(CassetteError::Line(at, why)) => {
                assert_eq!(at, line, "{why}");
                assert!(why.contains(expected_text), "{why:?} lacks {expected_text:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn invalid_cassette_line_is_named_by_number() {
        check_error("{\"say\":\"a\"}\n\n{say}", 3, "not a JSON object");
        check_error("{\"sya\":\"a\"}", 1, "unknown field `sya`");
        check_error("{\"fail\":\"sometimes\"}", 1, "unknown variant");
        check_error("{\"say\":\"a\"}\n{\"cassette\":1}", 2, "belongs first");
        check_error("{\"cassette\":2}", 1, "format 2 is not known");
        check_error("{\"api\":\"anthropic\"}", 1, "missing field");
        check_error("[1]", 1, "not a JSON object");
    }

    #[test]
    fn cassette_records_are_found_by_number_or_hash() {
        let text = "# for people\n{\"cassette\":1,\"match\":\"hash\"}\n{\"say\":\"a\",\"hash\":\"h\"}\n\
                    {\"say\":\"b\"}\n{\"say\":\"c\",\"at\":1}\n{\"say\":\"d\",\"at\":1}\n";
        let cassette = Cassette::parse(text).unwrap();
        let script_text = |record: Option<&Record>| match record? {
            Record::Script(script) => script.say.clone(),
            Record::Recording(_) => None,
        };
        assert_eq!(cassette.by, RecordMatch::Hash);
        assert_eq!(script_text(cassette.by_hash("h")).as_deref(), Some("a"));
        assert_eq!(cassette.by_hash("g"), None);
        assert_eq!(script_text(cassette.by_order(0)).as_deref(), Some("a"));
        assert_eq!(script_text(cassette.by_order(1)).as_deref(), Some("d"));
        assert_eq!(cassette.by_order(2), None);
        assert_eq!(cassette.len(), 4);
    }

    #[test]
    fn helper_call_records_do_not_change_cassette_order() {
        let title = "{\"api\":\"anthropic\",\"status\":200,\"hash\":\"t\",\"body\":\"a title\"}";
        let answer = title.replace("\"hash\":\"t\"", "\"at\":0,\"hash\":\"m\"");
        for lines in [[title, &answer], [&answer, title]] {
            let cassette = Cassette::parse(&format!("{{\"cassette\":1}}\n{}\n", lines.join("\n"))).unwrap();
            assert_eq!(cassette.by_order(0).and_then(Record::hash), Some("m"));
            assert_eq!(cassette.by_order(1), None, "nothing takes the place of what is missing");
            assert!(cassette.by_hash("t").is_some());
        }
    }

    #[test]
    fn documented_cassette_example_can_be_parsed() {
        let page = include_str!("../../../proto-docs/models.md");
        let part = page.split("\n## Cassettes\n").nth(1).expect("its part");
        let example =
            part.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
        let cassette = Cassette::parse(example).expect("it can be read");
        assert_eq!((cassette.by, cassette.len()), (RecordMatch::Order, 4));
        assert!(matches!(cassette.by_order(0), Some(Record::Recording(_))));
    }
}
