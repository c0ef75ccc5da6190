//! Titles from the title model. After a successful turn, the engine requests one in the background, unless a
//! client has set a title. The model receives the user's text; the answer only if the user wrote none.

use crate::decide::plan::PlanBuilder;
use crate::decide::usage_estimate::{estimate, settle};
use crate::output::Effect;
use crate::request::model_texts;
use crate::state::Helper;
use types::event::{Event, Purpose, TitledBy, UsageReason};
use types::ids::Seq;
use types::invisible_chars::is_invisible;
use types::message::{Block, Message, Role, without_own_commands};
use types::model::{FaultKind, ModelFault, ModelReply, ModelRequest, ReplyBlock, StopReason};
use types::sampling::Sampling;
use types::thinking::Thinking;
use types::usage::{Budgets, Usage};

/// Maximum characters of a title.
const MAX_TITLE_CHARS: usize = 60;
/// How often a session requests a title.
pub(crate) const MAX_TITLE_REQUESTS: u32 = 3;
/// Maximum bytes of the text that the title model receives.
const MAX_PROMPT_BYTES: usize = 2_000;
/// Maximum tokens of the answer: more than a title needs, because some models think before they answer.
const OUTPUT_TOKENS: u32 = 200;

impl PlanBuilder<'_> {
    /// Sets a title that no client gave.
    pub fn set_title(&mut self, title: String, by: TitledBy) {
        let (title, titled_by, options) = (Some(title), Some(by), Box::default());
        self.push_session(Event::SessionUpdated { title, titled_by, options });
    }

    /// Requests a title after a turn with this `answer`, if the session needs one and `limits` allow it.
    pub fn ask_for_title(&mut self, answer: &str, limits: &Budgets) {
        let Some(quick) = self.engine.settings.quick.clone() else { return };
        let state = &self.state;
        let needs_one = state.titled_by == Some(TitledBy::Prompt);
        if !needs_one || state.helper.is_some() || state.title_tries >= MAX_TITLE_REQUESTS {
            return;
        }
        let own = state.spec.budgets;
        if [own, *limits].iter().any(|limits| self.over_session(limits, 0).is_some()) {
            return;
        }
        if (own.limits_money() || limits.limits_money()) && quick.model_snapshot.price.is_none() {
            // Without a price, a limit on money cannot be enforced for this model.
            return;
        }
        let Some(request) = self.title_request(&quick.model, answer) else { return };
        let max_usage =
            Usage { output_tokens: u64::from(OUTPUT_TOKENS), ..estimate(&request, 0, &quick.model_snapshot) };
        let max_usd = quick.model_snapshot.cost_usd_micros(&max_usage).unwrap_or(0);
        if [own, *limits].iter().any(|limits| !self.has_budget_for_helper_call(limits, &max_usage, max_usd)) {
            return;
        }
        let (purpose, model_snapshot) = (Purpose::Title, quick.model_snapshot);
        let token = self.push_session(Event::HelperStarted {
            purpose,
            model: quick.model,
            model_snapshot,
            max_usage,
        });
        self.add_effect(Effect::AskHelper { token, request: Box::new(request) });
    }

    /// Whether the session's limits leave room for the maximum usage of a helper call and for one model call of
    /// the session itself.
    fn has_budget_for_helper_call(&self, limits: &Budgets, max_usage: &Usage, max_usd: u64) -> bool {
        let spent = &self.state.spent;
        let fits = |limit: Option<u64>, used: u64, more: u64| {
            limit.is_none_or(|limit| used.saturating_add(more) <= limit)
        };
        fits(limits.session_usd_micros, spent.cost_at_least_usd_micros, max_usd)
            && fits(limits.session_output_tokens, spent.usage.output_tokens, max_usage.output_tokens)
            && fits(limits.session_model_calls, spent.calls, 2)
    }

    fn title_request(&self, model: &str, answer: &str) -> Option<ModelRequest> {
        let first = self.state.transcript.iter().find(|message| message.role == Role::User)?;
        let user_texts = first.content.iter().filter_map(|block| match block {
            Block::Text { text } if !text.starts_with(model_texts::REMINDER) => {
                Some(without_own_commands(text))
            }
            _ => None,
        });
        let user_text = user_texts.collect::<Vec<_>>().join("\n");
        let begin = |text: &str| text[..text.floor_char_boundary(MAX_PROMPT_BYTES)].trim().to_owned();
        let (user_text, answer) = (begin(&user_text), begin(answer));
        if user_text.is_empty() && answer.is_empty() {
            return None;
        }
        let text = match user_text.is_empty() {
            true => model_texts::for_title("assistant", &answer),
            false => model_texts::for_title("user", &user_text),
        };
        Some(ModelRequest {
            system: model_texts::TITLE.into(),
            messages: vec![Message::user(text).into()],
            max_output_tokens: Some(OUTPUT_TOKENS),
            thinking: Some(Thinking::Off),
            sampling: Sampling::default(),
            is_helper_call: true,
            ..ModelRequest::new(model.parse().ok()?)
        })
    }

    /// Ends a helper call: books its usage, and uses its text as the title if the session still needs one.
    pub fn helper_done(
        &mut self,
        token: Seq,
        outcome: Result<ModelReply, ModelFault>,
        began: bool,
        duration_ms: u64,
    ) {
        let Some(helper) = self.state.helper.clone().filter(|helper| helper.token == token) else { return };
        let (fault, detail) = match outcome {
            Ok(reply) => {
                // Some servers report no usage, which differs from zero usage. A cached answer has no usage.
                let estimated = reply.usage.all_tokens() == 0 && !reply.cache_hit;
                let usage = if estimated { helper.max_usage } else { reply.usage };
                let cost =
                    if reply.cache_hit { Some(0) } else { helper.model_snapshot.cost_usd_micros(&usage) };
                self.book_helper(&helper, UsageReason::Helper, usage, cost, estimated);
                let title = title_of(&reply);
                for text in reply.notices {
                    self.push_session(Event::Notice { kind: "model".into(), text });
                }
                match title {
                    Some(title) => {
                        // A title that a client set meanwhile takes precedence.
                        if self.state.titled_by == Some(TitledBy::Prompt) {
                            self.set_title(title, TitledBy::Model);
                        }
                        (None, None)
                    }
                    None => {
                        let text = "the answer holds no title".to_owned();
                        (Some("unusable".to_owned()), Some(text))
                    }
                }
            }
            Err(fault) => {
                // A silent provider may be thinking, and may charge for the call.
                if began || fault.usage.is_some() || fault.kind == FaultKind::Idle {
                    let usage = settle(helper.max_usage, fault.usage.as_deref());
                    let cost = helper.model_snapshot.cost_usd_micros(&usage);
                    self.book_lost_helper(&helper, usage, cost);
                }
                (Some(fault.kind.name().to_owned()), Some(fault.message))
            }
        };
        self.end_helper(&helper, fault, detail, Some(duration_ms));
    }

    /// Drops the helper call and ignores its later output. Its request may have been sent and charged.
    pub fn drop_helper(&mut self) {
        let Some(helper) = self.state.helper.clone() else { return };
        let cost = helper.model_snapshot.cost_usd_micros(&helper.max_usage);
        self.book_lost_helper(&helper, helper.max_usage, cost);
        self.drop_unsent_helper();
    }

    /// Drops the helper call, whose request was not sent.
    pub fn drop_unsent_helper(&mut self) {
        let Some(helper) = self.state.helper.clone() else { return };
        self.end_helper(&helper, Some("stopped".into()), None, None);
    }

    /// Books a call without an answer, whose usage is an estimate.
    fn book_lost_helper(&mut self, helper: &Helper, usage: Usage, cost_usd_micros: Option<u64>) {
        self.book_helper(helper, UsageReason::LostAttempt, usage, cost_usd_micros, true);
    }

    fn book_helper(
        &mut self,
        helper: &Helper,
        reason: UsageReason,
        usage: Usage,
        cost_usd_micros: Option<u64>,
        estimated: bool,
    ) {
        self.push_session(Event::UsageBooked {
            model: helper.model.clone(),
            usage,
            cost_usd_micros,
            model_snapshot: Some(helper.model_snapshot),
            reason,
            purpose: Some(helper.purpose),
            estimated,
        });
    }

    fn end_helper(
        &mut self,
        helper: &Helper,
        fault: Option<String>,
        detail: Option<String>,
        duration_ms: Option<u64>,
    ) {
        let (purpose, model) = (helper.purpose, helper.model.clone());
        self.push_session(Event::HelperCompleted { purpose, model, fault, detail, duration_ms });
    }
}

/// The title in an answer: its first line with text, without decoration such as quotes or headings.
fn title_of(reply: &ModelReply) -> Option<String> {
    // A truncated, refused or paused answer gives no title.
    if !matches!(reply.stop_reason, StopReason::EndTurn | StopReason::StopSequence) {
        return None;
    }
    let text = reply.content.iter().filter_map(|block| match block {
        ReplyBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    clean_title(&text.collect::<String>())
}

fn clean_title(text: &str) -> Option<String> {
    // Some servers leave the reasoning in the text.
    let text = match text.trim_start().strip_prefix("<think>") {
        Some(thought) => thought.split_once("</think>")?.1,
        None => text,
    };
    let text = without_escapes(text);
    let line = text.lines().map(strip_title_marks).find(|line| line.chars().any(is_visible))?;
    // Text that could be mistaken for a session id is no title either.
    if line.chars().all(|char| char.is_ascii_hexdigit() || char == '-') {
        return None;
    }
    let mut title = String::new();
    let mut left = MAX_TITLE_CHARS;
    for word in line.split_whitespace() {
        let room = left.saturating_sub(usize::from(!title.is_empty()));
        let length = word.chars().count();
        if length > room {
            if title.is_empty() {
                title.extend(word.chars().take(MAX_TITLE_CHARS));
            }
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
        left = room - length;
    }
    Some(title)
}

/// A line without heading and list marks, quotes, and a prefix such as "Title:".
fn strip_title_marks(line: &str) -> &str {
    const QUOTES: &[char] = &['"', '\'', '`', '“', '”', '‘', '’', '«', '»', '„', '*', '_'];
    let mut line = line.trim().trim_start_matches(['#', '-', '>']).trim();
    loop {
        let before = line;
        line = line.trim_matches(QUOTES).trim();
        if let Some(rest) =
            line.get(..6).filter(|word| word.eq_ignore_ascii_case("title:")).and(line.get(6..))
        {
            line = rest.trim();
        }
        line = line.strip_suffix('.').unwrap_or(line);
        if line == before {
            return line;
        }
    }
}

/// The text without terminal escape sequences and without characters that reverse the writing direction.
fn without_escapes(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let introduced = match char {
            '\u{1b}' => chars.next(),
            '\u{9b}' => Some('['),
            '\u{9d}' => Some(']'),
            '\n' | '\t' => {
                clean.push(char);
                continue;
            }
            '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                clean.push('\n');
                continue;
            }
            _ => {
                if !is_invisible(char) && !is_blank(char) {
                    clean.push(char);
                }
                continue;
            }
        };
        match introduced {
            Some('[') => _ = chars.find(|char| ('@'..='~').contains(char)),
            Some(']' | 'P' | '^' | '_' | 'X') => {
                while let Some(char) = chars.next() {
                    if char == '\u{1b}' {
                        chars.next();
                    }
                    if matches!(char, '\u{7}' | '\u{1b}' | '\u{9c}' | '\n') {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    clean
}

/// A letter or a digit with a visible shape.
fn is_visible(char: char) -> bool {
    char.is_alphanumeric() && !is_blank(char)
}

/// Letters and patterns without a visible shape: the Hangul fillers and the empty Braille pattern.
fn is_blank(char: char) -> bool {
    matches!(char, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}')
}

#[cfg(test)]
mod tests {
    use crate::decide::title::*;

    #[test]
    fn title_is_cleaned_to_one_short_line() {
        let cases = [
            ("Mend the test", Some("Mend the test")),
            ("  \"Mend the test.\"\n", Some("Mend the test")),
            ("\n\n# **Title: “Mend the test”**\nmore", Some("Mend the test")),
            ("Title: `Mend`", Some("Mend")),
            ("- Mend the\ttest", Some("Mend the test")),
            ("<think>a title…</think>\nMend", Some("Mend")),
            ("<think>a title that never", None),
            ("\u{1b}[31mRed\u{1b}[0m alert\u{7}", Some("Red alert")),
            ("\u{1b}]0;owned\u{7}Calm\u{202e}", Some("Calm")),
            ("\u{9b}2JGone", Some("Gone")),
            ("\u{1b}]52;c;ZXZpbA==\u{1b}\\Safe", Some("Safe")),
            ("", None),
            (" \n\t\n", None),
            ("\"…\"\n---", None),
            ("...\nDots", Some("Dots")),
            ("Mend\rthe test\u{2028}now", Some("Mend")),
            ("Al\u{61c}so \u{e0041}this\u{fff9}", Some("Also this")),
            ("\u{3164}\u{2800}\u{115f}", None),
            ("01a20014-60b", None),
            ("Add 01a20014-60b", Some("Add 01a20014-60b")),
            ("Überprüfe die Straße", Some("Überprüfe die Straße")),
            ("Don't break it's", Some("Don't break it's")),
        ];
        for (text, expected) in cases {
            assert_eq!(clean_title(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn long_title_is_truncated_at_word_boundary() {
        let title = clean_title(&"seven77 ".repeat(20)).expect("a title");
        assert_eq!(title, ["seven77"; 7].join(" "));
        let exact = format!("{} {}", "a".repeat(29), "b".repeat(30));
        assert_eq!(clean_title(&exact).as_deref(), Some(exact.as_str()));
        let word = clean_title(&"ü".repeat(100)).expect("a title");
        assert_eq!(word, "ü".repeat(60));
    }
}
