//! Checks the guarantees for all followers. Seqs rise, and no durable event is missing or doubled. The
//! text up to a cursor together with the later deltas is the text of the item.

use std::collections::HashMap;
use types::event::Event;

use serde_json::Value;

use crate::stream::follow::tests::fixture::{FeedFixture, StreamedMessage, TestReader};
use crate::stream::follow::*;

impl FeedFixture {
    /// Reads all followers to the end, then checks the guarantees.
    pub async fn finish(mut self) -> Result<(), String> {
        self.hold = false;
        self.write(vec![Event::SessionEnded { reason: "the end".into() }]).await;
        for reader in self.readers.iter_mut().filter(|reader| reader.until.is_none()) {
            while reader.follower.cursor() < self.feed.last_seq() {
                let lines = crate::stream::follow::tests::within_deadline(reader.follower.next()).await;
                reader.read_lines(lines.unwrap().unwrap());
            }
        }
        for reader in &self.readers {
            self.check(reader).map_err(|why| {
                let received: Vec<String> = reader.received.iter().map(Value::to_string).collect();
                format!("after {}: {why}\n{}", reader.after, received.join("\n"))
            })?;
        }
        Ok(())
    }

    fn check(&self, reader: &TestReader) -> Result<(), String> {
        let seqs: Vec<Seq> = reader.received.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        if !seqs.windows(2).all(|pair| pair[0] < pair[1])
            || seqs.first().is_some_and(|seq| *seq <= reader.after)
        {
            return Err(format!("numbers must rise: {seqs:?}"));
        }
        let until = reader.until.unwrap_or(Seq::MAX);
        let permanent: Vec<Seq> = seqs.iter().copied().filter(|seq| self.permanent.contains(seq)).collect();
        let expected: Vec<Seq> =
            self.permanent.iter().copied().filter(|seq| *seq > reader.after && *seq <= until).collect();
        if permanent != expected {
            return Err(format!("permanent events were {permanent:?}, expected {expected:?}"));
        }
        for message in &self.messages {
            self.check_message(reader, message)?;
        }
        Ok(())
    }

    fn check_message(&self, reader: &TestReader, message: &StreamedMessage) -> Result<(), String> {
        let end = message.last_seq.unwrap_or(Seq::MAX);
        let until = reader.until.unwrap_or(Seq::MAX);
        if reader.after >= end || until < message.first_seq {
            return Ok(());
        }
        let mut sums: HashMap<usize, String> = HashMap::new();
        let mut deltas = 0;
        for event in &reader.received {
            let seq = event["seq"].as_u64().unwrap();
            let kind = event["type"].as_str().unwrap();
            if seq < message.first_seq
                || seq > end
                || !["message.text_delta", "message.thinking_delta"].contains(&kind)
            {
                continue;
            }
            deltas += 1;
            let at = usize::try_from(event["index"].as_u64().unwrap()).unwrap();
            let content = message.blocks.get(at).map(|block| block.content);
            let fits = match content {
                Some(BlockContent::Text) => kind == "message.text_delta",
                Some(BlockContent::Thinking) => kind == "message.thinking_delta",
                _ => false,
            };
            if !fits || event["item_id"] != message.item_id.to_string() {
                return Err(format!("{kind} {seq} does not belong to {content:?}"));
            }
            let text = event["text"].as_str().unwrap();
            if text.len() > reader.follower.piece {
                return Err(format!("{kind} {seq} has {} bytes", text.len()));
            }
            sums.entry(at).or_default().push_str(text);
        }
        if reader.was_finished == Some(message.first_seq) && deltas == 0 {
            return Ok(()); // Only the item.
        }
        for (at, block) in message.blocks.iter().enumerate() {
            if block.content == BlockContent::Arguments {
                continue;
            }
            let before = &block.text[..message.bytes_before(at, reader.after)];
            let sum = format!("{before}{}", sums.get(&at).map_or("", String::as_str));
            let whole =
                if until < end { &block.text[..message.bytes_before(at, until)] } else { &block.text };
            // The follower may have received more of a completed message by then. A new subscription
            // receives only the item.
            let is_ahead = message.last_seq.is_some()
                && until < end
                && sum.starts_with(whole)
                && block.text.starts_with(&sum);
            if sum != whole && !is_ahead {
                return Err(format!("block {at} became {sum:?}, expected {whole:?}"));
            }
        }
        Ok(())
    }
}
