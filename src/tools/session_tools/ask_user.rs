//! AskUser: questions to the user. The call never runs as a tool: the engine raises the question, and the user's
//! answer becomes the result of the call.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::error::ToolError;
use types::question::{QuestionOption, UserQuestion};
use types::tool::{PreparedCall, Subject};

pub(super) const NAME: &str = "AskUser";

/// Maximum number of questions in a call, and of options of a question.
const MAX_QUESTIONS: usize = 8;
const MAX_OPTIONS: usize = 16;
/// Maximum bytes of a question, and of a label, a header or a description.
const MAX_QUESTION_BYTES: usize = 4_000;
const MAX_LABEL_BYTES: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The questions. Ask together what you need to know together.
    questions: Vec<UserQuestion>,
}

pub(super) const DESCRIPTION: &str = "Asks the user, and waits for the answer. Use it if a decision is the user's and \
    the work depends on it: a choice between approaches, a missing requirement. Do not ask for what you can find out \
    with other tools, nor for permission. Offer options where you can; the user may always answer with own words.";

pub(super) fn prepare(input: &Input) -> Result<PreparedCall, ToolError> {
    check(&input.questions)?;
    let first = input.questions.first().map(|question| question.question.as_str()).unwrap_or_default();
    let line: String = first.lines().next().unwrap_or_default().chars().take(120).collect();
    Ok(PreparedCall::new(Subject::Question { questions: input.questions.clone() }, format!("Ask: {line}")))
}

fn check(questions: &[UserQuestion]) -> Result<(), ToolError> {
    let wrong = |path: String, problem: String| {
        Err(ToolError::new(
            "invalid_input",
            format!("the arguments of {NAME} are wrong at `{path}`: {problem}"),
        )
        .with(json!({ "path": path, "problem": problem })))
    };
    if questions.is_empty() || questions.len() > MAX_QUESTIONS {
        return wrong("questions".into(), format!("expected 1 to {MAX_QUESTIONS}, got {}", questions.len()));
    }
    for (at, question) in questions.iter().enumerate() {
        let place = format!("questions[{at}]");
        if question.question.trim().is_empty() {
            return wrong(format!("{place}.question"), "it is empty".into());
        }
        if question.question.len() > MAX_QUESTION_BYTES {
            return wrong(format!("{place}.question"), format!("longer than {MAX_QUESTION_BYTES} bytes"));
        }
        if question.header.as_ref().is_some_and(|header| header.len() > MAX_LABEL_BYTES) {
            return wrong(format!("{place}.header"), format!("longer than {MAX_LABEL_BYTES} bytes"));
        }
        if question.options.len() > MAX_OPTIONS {
            let problem = format!("{} options; at most {MAX_OPTIONS}", question.options.len());
            return wrong(format!("{place}.options"), problem);
        }
        for (nth, QuestionOption { label, description }) in question.options.iter().enumerate() {
            let place = format!("{place}.options[{nth}]");
            if label.trim().is_empty() {
                return wrong(format!("{place}.label"), "it is empty".into());
            }
            if label.len().max(description.as_ref().map_or(0, String::len)) > MAX_LABEL_BYTES {
                return wrong(place, format!("longer than {MAX_LABEL_BYTES} bytes"));
            }
            if question.options[..nth].iter().any(|other| other.label == *label) {
                return wrong(format!("{place}.label"), format!("{label:?} occurs twice"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_without_text_or_with_equal_labels_is_refused() {
        let refusal = |questions: serde_json::Value| {
            let input: Input = serde_json::from_value(json!({ "questions": questions })).expect("an input");
            prepare(&input).err().map(|error| error.text)
        };
        assert_eq!(refusal(json!([{"question": "Which?", "options": [{"label": "a"}]}])), None);
        assert!(refusal(json!([])).is_some_and(|text| text.contains("`questions`")));
        assert!(
            refusal(json!([{"question": " "}])).is_some_and(|text| text.contains("questions[0].question"))
        );
        let twice = json!([{"question": "Which?", "options": [{"label": "a"}, {"label": "a"}]}]);
        assert!(refusal(twice).is_some_and(|text| text.contains("occurs twice")));
    }
}
