//! Fixed words for the model (Q25): the same thing is always said the same way.

/// A person said no.
pub const DENIED: &str =
    "The user denied this call. It was not run. Do not repeat it; try another way or ask.";

/// A rule said no.
pub fn denied_by_rule(reason: &str) -> String {
    format!("This call is not permitted here: {reason}. It was not run. Try another way.")
}

/// A person said no and why.
pub fn denied_with_feedback(feedback: &str) -> String {
    format!("The user denied this call and says: {feedback}\nIt was not run. Take this into account.")
}

/// The turn was aborted before or while the call ran.
pub const ABORTED: &str = "The user stopped this call. It may have had part of its effect.";

/// The turn was aborted before the call began.
pub const ABORTED_UNSTARTED: &str = "The user stopped the turn before this call began. It was not run.";

/// The daemon stopped while the call may have been running.
pub const UNKNOWN: &str = "The daemon stopped while this call may have been running. Its outcome is unknown: \
it may have happened, in part or as a whole, or not at all. Check before you repeat it.";

/// The same with what the call had said until then.
pub fn unknown(said: &str) -> String {
    match said.trim() {
        "" => format!("{UNKNOWN} No output of it is known."),
        _ => format!("{UNKNOWN} Until then it had written:\n{said}"),
    }
}

/// The daemon stopped during a change of a file, and the file holds the new content.
pub const EDIT_DONE: &str = "The daemon restarted during this call. The file holds exactly the new content: the change was made. \
Do not repeat it.";

/// The daemon stopped during a change of a file, and the file holds the old content.
pub const EDIT_NOT_DONE: &str = "The daemon restarted before this change was made: the file is as it was before the call. \
Repeat the call if you still want the change.";

/// The daemon stopped between the changes of several files; which were made follows.
pub const EDIT_PARTLY_DONE: &str =
    "The daemon restarted in the middle of this call, so only a part of it was done. ";

/// The daemon stopped before the call began.
pub const NOT_RUN_RESTART: &str =
    "This call was not run: the daemon restarted and the turn ended before it began.";

/// The daemon stopped while a call ran that changes nothing; its turn ended with it.
pub const LOST_RESTART: &str = "The daemon restarted while this call ran, and its result is lost. It changes nothing: repeat it if you need it.";
