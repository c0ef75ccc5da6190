//! Answers that a program gives without a user.

use crate::answer::permission::{self, PermissionChoice};
use crate::answer::question;
use api::params::{AnswerParams, ApproveParams};
use types::permission::RequestKind;
use types::question::{Choice, Question, QuestionKind, UserAnswer};
use types::session::PermissionRequest;

/// The policy that decides how requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerPolicy {
    /// The user at the terminal answers.
    Person,
    /// No user is present: the `on_timeout` action applies at once, with this reason.
    Deny(&'static str),
    /// For the demonstration: the program allows every request once, and shows it.
    Allow,
}

impl AnswerPolicy {
    /// The answer to a permission request, and the text that reports it; `None` if the user answers.
    pub(crate) fn permission_answer(
        self,
        request: &PermissionRequest,
    ) -> Option<(ApproveParams, &'static str)> {
        let params = |choice| permission::params(request, choice);
        match self {
            Self::Person => None,
            Self::Deny(reason) => {
                let denial = ApproveParams { no_approver: true, ..params(PermissionChoice::Deny) };
                Some((denial, reason))
            }
            // The commands of the demonstration need no access outside the sandbox.
            Self::Allow if request.kind == RequestKind::Sandbox => {
                Some((params(PermissionChoice::Deny), "answered by the demonstration: n (no)"))
            }
            Self::Allow => Some((params(PermissionChoice::Once), "answered by the demonstration: y (once)")),
        }
    }

    /// The answer to a question, and the text that reports it; `None` if the user answers. Without a user, a question
    /// of the model gets a text that says so. Any other question aborts the turn, because a guess could do harm.
    pub(crate) fn question_answer(self, question: &Question) -> Option<(AnswerParams, &'static str)> {
        let (choice, report) = match self {
            Self::Person => return None,
            _ if question::is_typed(question) => {
                return Some((absent_user_answer(question), "no answer: there is no user to ask"));
            }
            Self::Deny(_) if question.kind == QuestionKind::RepeatedCall => {
                (Choice::Abort, "aborted: the model repeats the same call, and there is no user to ask")
            }
            Self::Deny(_) => (Choice::Abort, "aborted: there is no user to ask"),
            Self::Allow => (Choice::Continue, "answered by the demonstration: c (continue)"),
        };
        Some((question::params(question.request_id, choice.name()), report))
    }
}

/// The answer to questions of the model if there is no user.
fn absent_user_answer(question: &Question) -> AnswerParams {
    let text = "No answer: there is no user at a terminal to ask. Decide yourself what is most likely meant, and say \
                which assumption you made.";
    let answer = UserAnswer { choices: Vec::new(), text: Some(text.into()) };
    question::answers(question.request_id, vec![answer; question.questions.len()])
}
