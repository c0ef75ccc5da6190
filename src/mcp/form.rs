//! A server's question to the user: converts its schema to questions, and answers to the requested values.

use serde_json::{Map, Value};

use crate::schema::server_validator;
use types::question::{QuestionOption, UserAnswer, UserQuestion};

/// Maximum number of values that a server may ask for at once.
const MAX_FIELDS: usize = 16;
/// Maximum number of options of one value.
const MAX_OPTIONS: usize = 60;
/// Maximum bytes of a server's message, and of a label or a description.
const MAX_MESSAGE_BYTES: usize = 4_000;
const MAX_LABEL_BYTES: usize = 200;

/// The option that gives the server nothing.
const DECLINE: &str = "decline to answer";
/// The option that leaves one value out.
const LEAVE_OUT: &str = "leave it out";
const CONFIRM: &str = "accept";
/// The text that declines a value without options. A text or a number has no options, because clients use
/// numbers to select options.
const DECLINE_WORD: &str = "decline";
const LEAVE_OUT_WORD: &str = "-";

/// A server's question.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    message: String,
    fields: Vec<Field>,
    schema: Value,
}

/// One value that the server requests.
#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: String,
    question: String,
    is_required: bool,
    kind: FieldKind,
}

#[derive(Clone, Debug, PartialEq)]
enum FieldKind {
    Text,
    Number {
        is_integer: bool,
    },
    Boolean,
    /// The labels with their values.
    Choice {
        options: Vec<(String, Value)>,
        is_multiple: bool,
    },
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum FormAnswer {
    /// The values by name.
    Accepted(Map<String, Value>),
    /// The user gives none.
    Declined,
}

impl Form {
    /// Reads a server's message and schema: an object of plain values. `order`: the names in the order of the server.
    ///
    /// # Errors
    /// A user cannot fill in the schema.
    pub fn parse(message: &str, schema: Value, order: &[String]) -> Result<Self, String> {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        if properties.len() > MAX_FIELDS {
            return Err(format!("it asks for {} values at once, {MAX_FIELDS} at most", properties.len()));
        }
        let field = |(name, property): (String, Value)| -> Result<Field, String> {
            let kind = FieldKind::parse(&property).map_err(|why| format!("the value {name:?} {why}"))?;
            let text = |key: &str| property[key].as_str().map(|text| cut(text, MAX_LABEL_BYTES));
            let title = text("title").unwrap_or(&name);
            let mut question = match text("description") {
                Some(description) => format!("{title}: {description}"),
                None => title.to_owned(),
            };
            let default = property.get("default").filter(|default| !default.is_null());
            question.extend(default.map(|default| format!(" (default: {})", cut(&value_text(default), 100))));
            let is_required = required.contains(&name.as_str());
            Ok(Field { name, question, is_required, kind })
        };
        let mut fields = properties.into_iter().map(field).collect::<Result<Vec<Field>, _>>()?;
        fields.sort_by_key(|field| order.iter().position(|name| *name == field.name));
        Ok(Self { message: cut(message.trim(), MAX_MESSAGE_BYTES).to_owned(), fields, schema })
    }

    /// The questions for the user. `mistake`: why earlier answers cannot be used.
    #[must_use]
    pub fn questions(&self, server: &str, mistake: Option<&str>) -> Vec<UserQuestion> {
        let mut asks = format!("The MCP server {server} asks: {}", self.message);
        if let Some(mistake) = mistake {
            asks.insert_str(0, &format!("{mistake}\n"));
        }
        let option = |label: &str| QuestionOption { label: label.to_owned(), description: None };
        if self.fields.is_empty() {
            let options = vec![option(CONFIRM), option(DECLINE)];
            return vec![UserQuestion { question: asks, header: None, options, multi_select: false }];
        }
        let question = |(at, field): (usize, &Field)| {
            let mut options: Vec<QuestionOption> =
                field.kind.labels().into_iter().map(|label| option(&label)).collect();
            let mut text =
                if at == 0 { format!("{asks}\n{}", field.question) } else { field.question.clone() };
            if field.kind.is_typed() {
                let leave_out = if field.is_required { "" } else { ", or - to leave it out" };
                text.push_str(&format!(
                    "\n(type it{leave_out}, or {DECLINE_WORD} to give no answers at all)"
                ));
            } else {
                let more = (!field.is_required).then_some(LEAVE_OUT).into_iter().chain([DECLINE]);
                for label in more {
                    if options.iter().all(|known| known.label != label) {
                        options.push(option(label));
                    }
                }
            }
            UserQuestion {
                question: text,
                header: Some(cut(&field.name, MAX_LABEL_BYTES).to_owned()),
                options,
                multi_select: matches!(field.kind, FieldKind::Choice { is_multiple: true, .. }),
            }
        };
        self.fields.iter().enumerate().map(question).collect()
    }

    /// The values of the user's answers, one for each question.
    ///
    /// # Errors
    /// An answer does not fit the schema; the text says which.
    pub fn read(&self, answers: &[UserAnswer]) -> Result<FormAnswer, String> {
        let chose = |answer: &UserAnswer, label: &str| answer.choices.iter().any(|choice| choice == label);
        let typed = |answer: &UserAnswer, word: &str| {
            answer.text.as_deref().is_some_and(|text| text.trim().eq_ignore_ascii_case(word))
        };
        let declines = |answer: &UserAnswer, field: Option<&Field>| {
            chose(answer, DECLINE) || typed(answer, DECLINE) || {
                field.is_none_or(|field| field.kind.is_typed()) && typed(answer, DECLINE_WORD)
            }
        };
        if answers.iter().enumerate().any(|(at, answer)| declines(answer, self.fields.get(at))) {
            return Ok(FormAnswer::Declined);
        }
        if self.fields.is_empty() && !answers.iter().any(|it| chose(it, CONFIRM) || typed(it, CONFIRM)) {
            return Err(format!("Choose {CONFIRM} or {DECLINE}."));
        }
        let mut values = Map::new();
        for (field, answer) in self.fields.iter().zip(answers) {
            let leaves_out = match field.kind.is_typed() {
                true => !field.is_required && typed(answer, LEAVE_OUT_WORD),
                false => {
                    chose(answer, LEAVE_OUT) && !field.kind.labels().iter().any(|label| label == LEAVE_OUT)
                }
            };
            if leaves_out {
                continue;
            }
            let value = field.kind.value(answer).map_err(|why| format!("{}: {why}.", field.name))?;
            values.insert(field.name.clone(), value);
        }
        // Check lengths, ranges and patterns. An invalid schema is no obstacle, because the server checks as well.
        if let Some(validator) = server_validator(&self.schema)
            && let Some(mistake) = validator.iter_errors(&Value::Object(values.clone())).next()
        {
            return Err(format!(
                "{}: {mistake}.",
                mistake.instance_path().to_string().trim_start_matches('/')
            ));
        }
        Ok(FormAnswer::Accepted(values))
    }
}

impl FieldKind {
    fn parse(property: &Value) -> Result<Self, String> {
        let list = |key: &str| property[key].as_array();
        let of_values = |values: &[Value], names: Option<&Vec<Value>>| {
            let label = |at: usize, value: &Value| {
                names.and_then(|names| names.get(at)).map_or_else(|| value_text(value), value_text)
            };
            values.iter().enumerate().map(|(at, value)| (label(at, value), value.clone())).collect()
        };
        let of_constants = |options: &[Value]| {
            let value_of = |option: &Value| {
                let value = option["const"].clone();
                (option["title"].as_str().map_or_else(|| value_text(&value), str::to_owned), value)
            };
            options.iter().map(value_of).collect()
        };
        let items = &property["items"];
        let (options, is_multiple): (Vec<(String, Value)>, bool) = if let Some(values) = list("enum") {
            (of_values(values, list("enumNames")), false)
        } else if let Some(constants) = list("oneOf") {
            (of_constants(constants), false)
        } else if let Some(values) = items["enum"].as_array() {
            (of_values(values, None), true)
        } else if let Some(constants) = items["anyOf"].as_array().or(items["oneOf"].as_array()) {
            (of_constants(constants), true)
        } else {
            return match property["type"].as_str() {
                Some("string") => Ok(FieldKind::Text),
                Some("number") => Ok(FieldKind::Number { is_integer: false }),
                Some("integer") => Ok(FieldKind::Number { is_integer: true }),
                Some("boolean") => Ok(FieldKind::Boolean),
                _ => Err("is not a text, a number, a truth value or a choice".into()),
            };
        };
        if options.len() > MAX_OPTIONS {
            return Err(format!("has {} options, {MAX_OPTIONS} at most", options.len()));
        }
        // Equal labels would make the options indistinguishable.
        let is_double = |at: usize| options[..at].iter().any(|(label, _)| *label == options[at].0);
        let options = match (0..options.len()).any(is_double) {
            true => options.into_iter().map(|(_, value)| (value_text(&value), value)).collect(),
            false => options,
        };
        let options =
            options.into_iter().map(|(label, value)| (cut(&label, MAX_LABEL_BYTES).to_owned(), value));
        Ok(FieldKind::Choice { options: options.collect(), is_multiple })
    }

    /// Whether the user types the value.
    const fn is_typed(&self) -> bool {
        matches!(self, FieldKind::Text | FieldKind::Number { .. })
    }

    fn labels(&self) -> Vec<String> {
        match self {
            FieldKind::Text | FieldKind::Number { .. } => Vec::new(),
            FieldKind::Boolean => vec!["yes".into(), "no".into()],
            FieldKind::Choice { options, .. } => options.iter().map(|(label, _)| label.clone()).collect(),
        }
    }

    fn value(&self, answer: &UserAnswer) -> Result<Value, String> {
        let text = answer.text.as_deref().unwrap_or_default().trim();
        let answers: Vec<&str> =
            answer.choices.iter().map(String::as_str).chain((!text.is_empty()).then_some(text)).collect();
        let first_answer = || answers.first().copied().unwrap_or_default();
        match self {
            FieldKind::Text => Ok(Value::from(first_answer())),
            FieldKind::Number { is_integer: true } => first_answer()
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| format!("{:?} is not a whole number", first_answer())),
            FieldKind::Number { is_integer: false } => first_answer()
                .parse::<f64>()
                .ok()
                .and_then(|number| serde_json::Number::from_f64(number).map(Value::Number))
                .ok_or_else(|| format!("{:?} is not a number", first_answer())),
            FieldKind::Boolean => match first_answer().to_ascii_lowercase().as_str() {
                "yes" | "true" => Ok(Value::Bool(true)),
                "no" | "false" => Ok(Value::Bool(false)),
                other => Err(format!("{other:?} is neither yes nor no")),
            },
            FieldKind::Choice { options, is_multiple } => {
                let find = |word: &str| {
                    let found =
                        options.iter().find(|(label, value)| label == word || value_text(value) == word);
                    found
                        .map(|(_, value)| value.clone())
                        .ok_or_else(|| format!("{word:?} is not one of the options"))
                };
                match is_multiple {
                    true => answers.iter().map(|word| find(word)).collect::<Result<_, _>>().map(Value::Array),
                    false => find(first_answer()),
                }
            }
        }
    }
}

/// A value as users see it.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn choice_answer(label: &str) -> UserAnswer {
        UserAnswer { choices: vec![label.into()], text: None }
    }

    fn text_answer(text: &str) -> UserAnswer {
        UserAnswer { choices: Vec::new(), text: Some(text.into()) }
    }

    fn form() -> Form {
        let schema = json!({"type": "object", "required": ["age", "color"], "properties": {
            "age": {"type": "integer", "title": "Age", "minimum": 18},
            "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
            "mail": {"type": "string", "description": "for replies"},
            "sure": {"type": "boolean", "default": true},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}
        }});
        Form::parse("Who are you?", schema, &[]).expect("a form")
    }

    #[test]
    fn schema_of_server_becomes_questions_with_options() {
        let questions = form().questions("shop", None);
        let labels = |at: usize| -> Vec<&str> {
            questions[at].options.iter().map(|option| option.label.as_str()).collect()
        };
        assert!(
            questions[0]
                .question
                .starts_with("The MCP server shop asks: Who are you?\nAge\n(type it, or decline")
        );
        assert!(labels(0).is_empty() && labels(2).is_empty(), "clients take numbers for options");
        assert_eq!(labels(1), ["Red", "Green", DECLINE]);
        assert!(
            questions[2]
                .question
                .starts_with("mail: for replies\n(type it, or - to leave it out, or decline")
        );
        assert_eq!(questions[3].question, "sure (default: true)");
        assert_eq!(labels(3), ["yes", "no", LEAVE_OUT, DECLINE]);
        assert!(questions[4].multi_select && !questions[3].multi_select);
        let bare = Form::parse("Go on?", json!({"type": "object", "properties": {}}), &[]).expect("a form");
        assert_eq!(bare.questions("shop", None)[0].options.len(), 2);
    }

    #[test]
    fn answers_become_values_of_their_types() {
        let tags = UserAnswer { choices: vec!["a".into(), "b".into()], text: None };
        let answers = [text_answer("20"), choice_answer("Green"), text_answer("-"), text_answer("no"), tags];
        let expected = json!({"age": 20, "color": "g", "sure": false, "tags": ["a", "b"]});
        let Ok(FormAnswer::Accepted(values)) = form().read(&answers) else { panic!("refused") };
        assert_eq!(Value::Object(values), expected);
    }

    #[test]
    fn wrong_answer_is_named_and_declined_form_has_no_values() {
        let with = |first: UserAnswer| {
            form().read(&[
                first,
                choice_answer("Red"),
                text_answer("-"),
                choice_answer(LEAVE_OUT),
                choice_answer("a"),
            ])
        };
        assert!(with(text_answer("old")).expect_err("wrong").contains("age: \"old\" is not a whole number"));
        assert!(with(text_answer("3")).expect_err("too young").contains("age"));
        assert_eq!(with(text_answer("Decline")), Ok(FormAnswer::Declined));
        let Ok(FormAnswer::Accepted(values)) = with(text_answer("30")) else { panic!("refused") };
        assert!(!values.contains_key("mail") && !values.contains_key("sure"), "{values:?}");
        let bare = Form::parse("Go on?", json!({"type": "object", "properties": {}}), &[]).expect("a form");
        assert_eq!(bare.read(&[choice_answer(DECLINE)]), Ok(FormAnswer::Declined));
        assert_eq!(bare.read(&[choice_answer(CONFIRM)]), Ok(FormAnswer::Accepted(Map::new())));
        assert!(bare.read(&[text_answer("what?")]).is_err());
    }

    #[test]
    fn questions_come_in_order_of_server() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        let form = Form::parse("m", schema, &["b".into(), "a".into()]).expect("a form");
        assert_eq!(form.questions("s", None)[1].header.as_deref(), Some("a"));
    }

    #[test]
    fn schema_with_nested_values_is_refused() {
        let nested = json!({"type": "object", "properties": {"x": {"type": "object"}}});
        assert!(Form::parse("m", nested, &[]).expect_err("nested").contains("\"x\""));
        let many: Map<String, Value> =
            (0..20).map(|at| (format!("v{at}"), json!({"type": "string"}))).collect();
        assert!(Form::parse("m", json!({"type": "object", "properties": many}), &[]).is_err());
    }
}
