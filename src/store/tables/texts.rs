//! The text of messages, for search. It is a summary: the journal holds the complete messages.

use std::collections::BTreeMap;

use sqlx::Row as _;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::rows::{MessageText, SessionKey};
use crate::sql_batch::{SqlBatch, integer, values};
use types::history::TextMatch;
use types::ids::{Seq, SessionId};

/// Maximum words of a query; further words are ignored.
const MAX_WORDS: usize = 16;
/// Maximum characters of one word of a query.
const MAX_WORD_CHARS: usize = 64;
/// Maximum matches per session.
const MAX_MATCHES: u32 = 3;

/// Sessions with a message that matches `?`.
pub(crate) const MATCHING_SESSIONS: &str = "select m.session from message_index \
     join message_text m on m.id = message_index.rowid where message_index match ";

/// The newest matches of each session of a list. The snippet is computed only for these.
const MATCHES: &str = "select s.session_id, m.item_id, \
     snippet(message_index, 0, '', '', '…', 16) as snippet \
     from message_index join message_text m on m.id = message_index.rowid join session s on s.id = m.session \
     where message_index match ?1 and message_index.rowid in \
     (select id from (select t.id, row_number() over (partition by t.session order by t.seq desc) as nth \
      from message_index join message_text t on t.id = message_index.rowid \
      where message_index match ?1 and t.session in \
      (select id from session where session_id in (select value from json_each(?2)))) \
      where nth <= ?3) order by m.session, m.seq desc";

/// Adds the text of messages.
pub(crate) fn insert(script: &mut SqlBatch, key: SessionKey, texts: &[MessageText]) {
    for text in texts {
        script.add(
            "insert into message_text (session, seq, item_id, text) values (?, ?, ?, ?)",
            values![key.0, integer(text.seq), text.item_id.to_string(), &text.text],
        );
    }
}

/// Removes the items and texts of a session that began after `seq`.
pub(crate) fn rewind(script: &mut SqlBatch, key: SessionKey, seq: Seq) {
    let seq = integer(seq);
    script.add("delete from message_text where session = ? and seq > ?", values![key.0, seq]);
    script.add("delete from item where session = ? and first_seq > ?", values![key.0, seq]);
}

/// The full-text query for a user's text: all words, the last one as a prefix. Each word is quoted, so no
/// character has a meaning in the query language. `None` if the text has no word.
pub(crate) fn query(search: &str) -> Option<String> {
    let words = search.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.take(MAX_WORDS).map(|word| {
        let word: String = word.chars().take(MAX_WORD_CHARS).collect();
        format!("\"{word}\"")
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(" ") + "*")
}

impl StoreReader {
    /// The newest messages of these sessions that contain the words of `search`, at most three per session.
    pub async fn text_matches(
        &self,
        sessions: &[SessionId],
        search: &str,
    ) -> Result<BTreeMap<SessionId, Vec<TextMatch>>, StoreError> {
        let mut found: BTreeMap<SessionId, Vec<TextMatch>> = BTreeMap::new();
        let Some(query) = query(search).filter(|_| !sessions.is_empty()) else { return Ok(found) };
        let ids: Vec<String> = sessions.iter().map(ToString::to_string).collect();
        let read = async {
            let rows = sqlx::query(MATCHES)
                .bind(query)
                .bind(serde_json::to_string(&ids).unwrap_or_default())
                .bind(MAX_MATCHES)
                .fetch_all(&self.readers.current_pool().await)
                .await?;
            let parse = |text: String| StoreError::Corrupt(format!("id {text} of a message"));
            for row in rows {
                let (session, item): (String, String) = (row.try_get("session_id")?, row.try_get("item_id")?);
                let item_id = item.parse().map_err(|_| parse(item))?;
                let found = found.entry(session.parse().map_err(|_| parse(session))?).or_default();
                found.push(TextMatch { item_id, snippet: row.try_get("snippet")? });
            }
            Ok(())
        };
        self.report_damage(read.await)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_text_becomes_quoted_words() {
        for (text, expected) in [
            ("fix the bug", Some("\"fix\" \"the\" \"bug\"*")),
            ("\"; drop table x --", Some("\"drop\" \"table\" \"x\"*")),
            ("NEAR(a b) OR c*", Some("\"NEAR\" \"a\" \"b\" \"OR\" \"c\"*")),
            ("größe", Some("\"größe\"*")),
            ("\0 ' \" * ( ) ^ :", None),
            ("", None),
        ] {
            assert_eq!(query(text).as_deref(), expected, "{text}");
        }
        assert_eq!(query(&"a ".repeat(100)).map(|query| query.len()), Some(16 * 4));
    }
}
