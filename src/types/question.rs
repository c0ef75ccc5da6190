//! Questions to the user that are not about permission. The daemon asks about a call with unknown outcome, about a turn
//! that a restart interrupted, and about a call that the model repeats. A model asks its own questions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::{CallId, QuestionId, SessionId};

/// A question as clients receive it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Its id; a restart does not change it.
    pub request_id: QuestionId,
    /// For a question of a sub-agent, shown in the sessions above it: the session that waits. The answer goes to that
    /// session.
    pub child_session_id: Option<SessionId>,
    /// The subject of the question.
    pub kind: QuestionKind,
    /// The question as text for users. If a model asks several questions, this is the first one.
    pub text: String,
    /// The call that it is about, if any.
    pub call_id: Option<CallId>,
    /// The call's tool.
    pub tool: Option<String>,
    /// The call's full arguments.
    pub input: Option<Value>,
    /// The call's output so far; only head and tail if it is long.
    pub output: Option<String>,
    /// The possible answers of the kinds `unknown_outcome`, `resume` and `repeated_call`.
    pub options: Vec<Choice>,
    /// With kind `question`: the questions of the model. Each of them needs an answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub questions: Vec<UserQuestion>,
}

/// The subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum QuestionKind {
    /// The daemon stopped while a call may have been running, so its outcome is unknown.
    UnknownOutcome,
    /// The daemon stopped during the turn, and `on_restart = "pause"` applies.
    Resume,
    /// The model asks the user (`AskUser`).
    Question,
    /// The model made the same call again and again, with the same result (`[session] repeat_limit`).
    RepeatedCall,
}

impl QuestionKind {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An answer to a question of the kinds `unknown_outcome`, `resume` and `repeated_call`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The turn continues. If the question is about a call, the model learns that the outcome of the call is unknown.
    Continue,
    /// The turn ends as aborted.
    Abort,
}

impl Choice {
    /// Both choices, in the order in which clients offer them.
    pub const ALL: [Choice; 2] = [Choice::Continue, Choice::Abort];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Continue => "continue",
            Choice::Abort => "abort",
        }
    }

    /// The choice with this name on the wire; `None` if there is none.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}

/// One question of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserQuestion {
    /// The complete question.
    pub question: String,
    /// A label of a few words for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub header: Option<String>,
    /// Suggested answers. The user may always answer in their own words.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub options: Vec<QuestionOption>,
    /// Whether several of the options may be chosen.
    #[serde(skip_serializing_if = "std::ops::Not::not", default, alias = "multiSelect")]
    pub multi_select: bool,
}

/// One suggested answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    /// The answer in a few words. The options of a question have different labels.
    pub label: String,
    /// Its meaning, or its consequences.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
}

/// The user's answer to one question of a model: options, own words, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserAnswer {
    /// Labels of the chosen options.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub choices: Vec<String>,
    /// The answer in the user's own words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
}

/// Maximum bytes of the user's own words in one answer.
const MAX_ANSWER_BYTES: usize = 16_384;

/// An answer that does not fit its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongAnswer {
    /// The wrong parameter, for example `answers[0].choices`.
    pub path: String,
    /// The reason, and how to correct the answer.
    pub why: String,
}

/// Checks that there is one answer for each question, and that each fits its question.
///
/// # Errors
/// The first answer that does not fit.
pub fn check_answers(questions: &[UserQuestion], answers: &[UserAnswer]) -> Result<(), WrongAnswer> {
    let wrong = |path: String, why: String| Err(WrongAnswer { path, why });
    if questions.len() != answers.len() {
        let why =
            format!("expected {} answers, one for each question, got {}", questions.len(), answers.len());
        return wrong("answers".into(), why);
    }
    for (at, (question, answer)) in questions.iter().zip(answers).enumerate() {
        let text = answer.text.as_deref().unwrap_or_default();
        if answer.choices.is_empty() && text.trim().is_empty() {
            return wrong(format!("answers[{at}]"), "give choices, a text, or both".into());
        }
        if text.len() > MAX_ANSWER_BYTES {
            let why = format!("{} bytes; expected at most {MAX_ANSWER_BYTES}", text.len());
            return wrong(format!("answers[{at}].text"), why);
        }
        let path = format!("answers[{at}].choices");
        for (nth, choice) in answer.choices.iter().enumerate() {
            if !question.options.iter().any(|option| option.label == *choice) {
                let labels: Vec<_> =
                    question.options.iter().map(|option| format!("{:?}", option.label)).collect();
                let known = match labels.as_slice() {
                    [] => "it has none; answer with a text".to_owned(),
                    labels => labels.join(", "),
                };
                return wrong(path, format!("{choice:?} is not one of the options: {known}"));
            }
            if answer.choices[..nth].contains(choice) {
                return wrong(path, format!("{choice:?} is chosen twice"));
            }
        }
        if answer.choices.len() > 1 && !question.multi_select {
            return wrong(path, "this question takes one choice".into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_that_does_not_fit_its_question_is_refused() {
        let option = |label: &str| QuestionOption { label: label.into(), description: None };
        let one = UserQuestion {
            question: "Which?".into(),
            header: None,
            options: vec![option("a"), option("b")],
            multi_select: false,
        };
        let many = UserQuestion { multi_select: true, ..one.clone() };
        let open = UserQuestion { options: Vec::new(), ..one.clone() };
        let chosen = |labels: &[&str]| UserAnswer {
            choices: labels.iter().map(|label| (*label).to_owned()).collect(),
            text: None,
        };
        let typed = |text: &str| UserAnswer { choices: Vec::new(), text: Some(text.into()) };
        let path = |question: &UserQuestion, answers: &[UserAnswer]| {
            check_answers(std::slice::from_ref(question), answers).err().map(|wrong| wrong.path)
        };
        assert_eq!(path(&one, &[chosen(&["a"])]), None);
        assert_eq!(path(&one, &[typed("neither")]), None);
        assert_eq!(path(&many, &[chosen(&["b", "a"])]), None);
        assert_eq!(path(&one, &[]).as_deref(), Some("answers"));
        assert_eq!(path(&one, &[typed(" ")]).as_deref(), Some("answers[0]"));
        assert_eq!(path(&one, &[chosen(&["c"])]).as_deref(), Some("answers[0].choices"));
        assert_eq!(path(&one, &[chosen(&["a", "b"])]).as_deref(), Some("answers[0].choices"));
        assert_eq!(path(&many, &[chosen(&["a", "a"])]).as_deref(), Some("answers[0].choices"));
        assert_eq!(path(&open, &[chosen(&["a"])]).as_deref(), Some("answers[0].choices"));
        assert_eq!(path(&open, &[typed(&"x".repeat(20_000))]).as_deref(), Some("answers[0].text"));
    }
}
