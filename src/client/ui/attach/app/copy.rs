//! `/copy`: the last answer of the model, or its last block of code. Pure.

use pulldown_cmark::{Event as Mark, Parser, Tag, TagEnd};

use crate::ui::attach::app::{App, Effect};

/// Maximum bytes that are copied. xterm and tmux drop more than about 74,000 bytes after encoding as Base64.
const MAX_COPIED_BYTES: usize = 74_000 / 4 * 3;

impl App {
    /// Copies the last answer, or its last block of code, and reports which of them was copied.
    pub(super) fn copy(&mut self, what: &str) -> Option<Effect> {
        let Some(answer) = self.scrollback.last_answer.as_deref() else {
            self.notice = "there is no answer to copy yet".into();
            return None;
        };
        let (text, name) = match what {
            "" => (answer.trim_end().to_owned(), "the last answer"),
            "code" => match last_code(answer) {
                Some(code) => (code, "the last code block"),
                None => {
                    self.notice = "the last answer has no code block; /copy copies all of it".into();
                    return None;
                }
            },
            _ => {
                self.notice = "/copy copies the last answer, /copy code its last code block".into();
                return None;
            }
        };
        if text.len() > MAX_COPIED_BYTES {
            self.notice = format!(
                "could not copy {name}: it has {} KB, and terminals take {}; `agentctl result` prints it",
                text.len() / 1_000,
                MAX_COPIED_BYTES / 1_000
            );
            return None;
        }
        let lines = text.lines().count();
        let plural = if lines == 1 { "" } else { "s" };
        self.notice = format!("copied {name}: {lines} line{plural}, {} characters", text.chars().count());
        Some(Effect::Copy(text))
    }
}

/// The text of the last block of code.
fn last_code(markdown: &str) -> Option<String> {
    let (mut last, mut open) = (None, None::<String>);
    for mark in Parser::new(markdown) {
        match mark {
            Mark::Start(Tag::CodeBlock(_)) => open = Some(String::new()),
            Mark::Text(text) => {
                if let Some(code) = &mut open {
                    code.push_str(&text);
                }
            }
            Mark::End(TagEnd::CodeBlock) => last = open.take(),
            _ => {}
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_code_block_is_found_without_its_fence() {
        assert_eq!(
            last_code("a\n```sh\none\n```\nb\n```rust\nfn x() {\n\n}\n```\nend"),
            Some("fn x() {\n\n}\n".into())
        );
        assert_eq!(last_code("text `code` text"), None);
        assert_eq!(last_code("```\nnot closed\n"), Some("not closed\n".into()));
    }
}
