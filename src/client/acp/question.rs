//! Questions to the user that are not about permission: as a form if the client has forms, else as requests with one
//! option for each answer.

use serde_json::{Map, Value, json};

use super::mapper::Features;
use super::schema::{
    CallContent, CallState, OptionKind, PermissionOption, PermissionParams, ToolCall, ToolKind, Versioned,
    chosen_option,
};
use super::wire::{OpenRequest, Output};
use crate::answer::question as answer;
use api::params::AnswerParams;
use types::ids::SessionId;
use types::question::{Choice, Question, UserAnswer, UserQuestion};

const DECLINED: &str = "The user declined to answer.";

/// Asks the user. `None` if there is no answer for the daemon: the question was withdrawn, or the user dismissed a
/// decision that only a user can make.
pub(super) async fn ask(
    output: &Output,
    session_id: SessionId,
    question: &Question,
    features: Features,
    open: &OpenRequest,
) -> Option<AnswerParams> {
    let params = |tool_call, options| -> Versioned<PermissionParams> {
        let session_id = session_id.to_string();
        let params = PermissionParams { session_id, tool_call, options, reason: None, is_about_call: false };
        params.written(features.version)
    };
    if !answer::is_typed(question) {
        let call = decision_call(question);
        let reply =
            open.ask(output, "session/request_permission", &params(call, decision_options(question))).await?;
        let choice = Choice::of_name(chosen_option(reply.as_ref())?)?;
        return Some(answer::params(question.request_id, choice.name()));
    }
    if features.forms {
        let reply = open.ask(output, "elicitation/create", &form(session_id, question)).await?;
        return Some(answer::answers(question.request_id, form_answers(question, reply.as_ref())));
    }
    let mut answers = Vec::new();
    for (index, one) in question.questions.iter().enumerate() {
        let call = question_call(question, index, one);
        let reply =
            open.ask(output, "session/request_permission", &params(call, question_options(one))).await?;
        answers.push(option_answer(one, reply.as_ref()));
    }
    Some(answer::answers(question.request_id, answers))
}

fn decision_call(question: &Question) -> ToolCall {
    let output = question.output.as_deref().filter(|output| !output.is_empty());
    ToolCall {
        tool_call_id: question.call_id.map_or_else(|| question.request_id.to_string(), |id| id.to_string()),
        title: Some(question.text.clone()),
        kind: Some(ToolKind::Other),
        status: Some(CallState::Pending),
        content: output.map(|output| vec![CallContent::text(output)]),
        raw_input: question.input.clone(),
        ..ToolCall::default()
    }
}

fn decision_options(question: &Question) -> Vec<PermissionOption> {
    let option = |choice: &Choice| {
        let (name, kind) = match choice {
            Choice::Continue => ("Continue the turn", OptionKind::AllowOnce),
            Choice::Abort => ("End the turn", OptionKind::RejectOnce),
        };
        PermissionOption { option_id: choice.name().to_owned(), name: name.to_owned(), kind }
    };
    question.options.iter().map(option).collect()
}

fn question_call(question: &Question, index: usize, one: &UserQuestion) -> ToolCall {
    let descriptions: Vec<String> = one
        .options
        .iter()
        .filter_map(|option| Some(format!("{}: {}", option.label, option.description.as_deref()?)))
        .collect();
    ToolCall {
        tool_call_id: format!("{}-{}", question.request_id, index + 1),
        title: Some(one.question.clone()),
        kind: Some(ToolKind::Other),
        status: Some(CallState::Pending),
        content: Some(descriptions.into_iter().map(CallContent::text).collect()),
        ..ToolCall::default()
    }
}

fn question_options(one: &UserQuestion) -> Vec<PermissionOption> {
    let option = |(index, label): (usize, &String)| PermissionOption {
        option_id: format!("option:{index}"),
        name: label.clone(),
        kind: OptionKind::AllowOnce,
    };
    let decline = PermissionOption {
        option_id: "decline".into(),
        name: "Decline to answer".into(),
        kind: OptionKind::RejectOnce,
    };
    one.options.iter().map(|option| &option.label).enumerate().map(option).chain([decline]).collect()
}

fn declined() -> UserAnswer {
    UserAnswer { choices: Vec::new(), text: Some(DECLINED.into()) }
}

fn option_answer(one: &UserQuestion, reply: Option<&Value>) -> UserAnswer {
    let index = chosen_option(reply).and_then(|id| id.strip_prefix("option:")?.parse::<usize>().ok());
    match index.and_then(|index| one.options.get(index)) {
        Some(option) => UserAnswer { choices: vec![option.label.clone()], text: None },
        None => declined(),
    }
}

fn form(session_id: SessionId, question: &Question) -> Value {
    let mut properties = Map::new();
    for (index, one) in question.questions.iter().enumerate() {
        let choices: Vec<Value> = one
            .options
            .iter()
            .map(|option| {
                let title = option.label.as_str();
                match &option.description {
                    Some(description) => json!({"const": title, "title": title, "description": description}),
                    None => json!({"const": title, "title": title}),
                }
            })
            .collect();
        let title = one.header.as_deref().unwrap_or(&one.question);
        if !choices.is_empty() {
            let field = if one.multi_select {
                json!({"type": "array", "title": title, "description": one.question, "items": {"anyOf": choices}})
            } else {
                json!({"type": "string", "title": title, "description": one.question, "oneOf": choices})
            };
            properties.insert(choice_field(index), field);
        }
        let own = if choices_are_given(one) { "In your own words" } else { title };
        let field = json!({"type": "string", "title": own, "description": one.question});
        properties.insert(text_field(index), field);
    }
    let mut params = json!({
        "sessionId": session_id.to_string(),
        "mode": "form",
        "message": question.text,
        "requestedSchema": {"type": "object", "properties": properties},
    });
    if let Some(call_id) = question.call_id {
        params["toolCallId"] = call_id.to_string().into();
    }
    params
}

fn choices_are_given(one: &UserQuestion) -> bool {
    !one.options.is_empty()
}

fn choice_field(index: usize) -> String {
    format!("question{}", index + 1)
}

fn text_field(index: usize) -> String {
    format!("question{}_text", index + 1)
}

/// One answer for each question. Parts of the reply that do not fit count as not given.
fn form_answers(question: &Question, reply: Option<&Value>) -> Vec<UserAnswer> {
    let content = reply.filter(|reply| reply["action"] == "accept").map(|reply| &reply["content"]);
    let answer = |(index, one): (usize, &UserQuestion)| {
        let Some(content) = content else { return declined() };
        let chosen = match &content[choice_field(index)] {
            Value::Array(several) if one.multi_select => several.as_slice(),
            other => std::slice::from_ref(other),
        };
        let mut choices: Vec<String> = Vec::new();
        for label in chosen.iter().filter_map(Value::as_str) {
            let is_offered = one.options.iter().any(|option| option.label == label);
            if is_offered && !choices.iter().any(|known| known == label) {
                choices.push(label.to_owned());
            }
        }
        let text = content[text_field(index)].as_str().filter(|text| !text.trim().is_empty());
        if choices.is_empty() && text.is_none() {
            return declined();
        }
        UserAnswer { choices, text: text.map(str::to_owned) }
    };
    question.questions.iter().enumerate().map(answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        serde_json::from_value(json!({
            "request_id": "ask_0190f2a4-0000-7000-8000-000000000001", "kind": "question", "text": "Which?",
            "options": [],
            "questions": [
                {"question": "Which?", "options": [{"label": "a"}, {"label": "b", "description": "the second"}]},
                {"question": "Which ones?", "options": [{"label": "x"}, {"label": "y"}], "multi_select": true},
                {"question": "Why?"}
            ]
        }))
        .expect("a question")
    }

    #[test]
    fn form_answers_fit_their_questions_whatever_the_reply() {
        let question = question();
        let replies = [
            None,
            Some(json!({"action": "decline"})),
            Some(json!({"action": "cancel", "content": {"question1": "a"}})),
            Some(json!({"action": "accept"})),
            Some(
                json!({"action": "accept", "content": {"question1": 4, "question2": "z", "question3_text": []}}),
            ),
            Some(
                json!({"action": "accept", "content": {"question1": ["a", "b"], "question2": ["x", "x", "z"]}}),
            ),
            Some(json!({"action": "accept", "content": "a"})),
            Some(json!("a")),
        ];
        for reply in replies {
            let answers = form_answers(&question, reply.as_ref());
            let checked = types::question::check_answers(&question.questions, &answers);
            assert_eq!(checked, Ok(()), "{reply:?}: {answers:?}");
        }
        let content =
            json!({"question1": "b", "question2": ["y", "x"], "question2_text": " ", "question3_text": "so"});
        let answers = form_answers(&question, Some(&json!({"action": "accept", "content": content})));
        assert_eq!(answers[0].choices, ["b"]);
        assert_eq!((answers[1].choices.len(), &answers[1].text), (2, &None));
        assert_eq!(answers[2].text.as_deref(), Some("so"));
    }

    #[test]
    fn question_without_form_takes_only_its_options() {
        let question = question();
        let one = &question.questions[0];
        let reply = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
        assert_eq!(option_answer(one, Some(&reply("option:1"))).choices, ["b"]);
        for wrong in ["option:2", "option:-1", "decline", "a", ""] {
            assert_eq!(option_answer(one, Some(&reply(wrong))), declined(), "{wrong}");
        }
        assert_eq!(option_answer(one, None), declined());
    }
}
