//! The answers to a question: about a call with an unknown outcome, about a paused turn, or of the model.

use api::params::AnswerParams;
use types::ids::QuestionId;
use types::question::{Choice, Question, QuestionKind, UserAnswer, UserQuestion};

/// The parameters of `session.answer` for a choice.
pub(crate) fn params(request_id: QuestionId, choice: &str) -> AnswerParams {
    AnswerParams { request_id, choice: Some(choice.into()), idempotency_key: None, answers: None }
}

/// The parameters of `session.answer` for the answers to questions of the model.
pub(crate) fn answers(request_id: QuestionId, answers: Vec<UserAnswer>) -> AnswerParams {
    AnswerParams { request_id, choice: None, idempotency_key: None, answers: Some(answers) }
}

/// The choice that a key or a typed word makes.
pub(crate) fn choice_of(typed: &str) -> Option<Choice> {
    match typed.to_ascii_lowercase().as_str() {
        "c" | "continue" => Some(Choice::Continue),
        "a" | "abort" => Some(Choice::Abort),
        _ => None,
    }
}

/// Whether the model asks the question, so that the user types the answers.
pub(crate) fn is_typed(question: &Question) -> bool {
    question.kind == QuestionKind::Question
}

/// A typed answer: numbers of options, or own words. The error tells the user what to type.
pub(crate) fn parse(question: &UserQuestion, typed: &str) -> Result<UserAnswer, String> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Err("type an answer".into());
    }
    if let Some(option) = question.options.iter().find(|option| option.label.eq_ignore_ascii_case(typed)) {
        return Ok(UserAnswer { choices: vec![option.label.clone()], text: None });
    }
    let parts: Vec<&str> = typed.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    let numbers: Option<Vec<usize>> = parts.iter().map(|word| word.parse().ok()).collect();
    let own_words = || UserAnswer { choices: Vec::new(), text: Some(typed.to_owned()) };
    let Some(numbers) = numbers.filter(|_| !question.options.is_empty()) else { return Ok(own_words()) };
    let last = question.options.len();
    let option = |number: &usize| number.checked_sub(1).and_then(|index| question.options.get(index));
    let chosen: Option<Vec<String>> =
        numbers.iter().map(|number| option(number).map(|option| option.label.clone())).collect();
    let Some(choices) = chosen else { return Err(format!("choose a number from 1 to {last}, or use words")) };
    if choices.len() > 1 && !question.multi_select {
        return Err("choose one of them, or use words".into());
    }
    Ok(UserAnswer { choices, text: None })
}

/// The answers to the first questions of a model that asks several. They are sent together with the last one.
#[derive(Debug, Default)]
pub(crate) struct GivenAnswers(Vec<UserAnswer>);

impl GivenAnswers {
    pub(crate) fn as_slice(&self) -> &[UserAnswer] {
        &self.0
    }

    /// The question that is answered next.
    pub(crate) fn next_question<'a>(&self, question: &'a Question) -> Option<&'a UserQuestion> {
        question.questions.get(self.0.len())
    }

    /// Adds the answer to the next question. The last answer returns the parameters of `session.answer`.
    pub(crate) fn add(&mut self, question: &Question, answer: UserAnswer) -> Option<AnswerParams> {
        self.0.push(answer);
        let is_complete = self.0.len() >= question.questions.len();
        is_complete.then(|| answers(question.request_id, std::mem::take(&mut self.0)))
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::question::QuestionOption;

    #[test]
    fn typed_answer_is_number_of_option_or_own_words() {
        let option = |label: &str| QuestionOption { label: label.into(), description: None };
        let one = UserQuestion {
            question: "Which?".into(),
            header: None,
            options: vec![option("red"), option("blue")],
            multi_select: false,
        };
        let many = UserQuestion { multi_select: true, ..one.clone() };
        let open = UserQuestion { options: Vec::new(), ..one.clone() };
        let text = |answer: Result<UserAnswer, String>| {
            answer.map(|answer| answer.text.unwrap_or_else(|| answer.choices.join("; ")))
        };
        assert_eq!(text(parse(&one, " 2 ")), Ok("blue".into()));
        assert_eq!(text(parse(&one, "neither of 2")), Ok("neither of 2".into()));
        assert_eq!(text(parse(&many, "2, 1")), Ok("blue; red".into()));
        assert_eq!(text(parse(&open, "42")), Ok("42".into()));
        assert!(parse(&one, "3").is_err_and(|error| error.contains("1 to 2")));
        assert!(parse(&one, "1 2").is_err());
        assert!(parse(&one, "  ").is_err());
    }
}
