//! Knowledge about shell programs: their options, whether they read or write, and which of them run
//! other commands. The records in `data` say what each program does; [`record`] describes them.

pub(super) mod call;
pub(super) mod exceptions;
pub(super) mod granted;
pub(super) mod inner_commands;
pub(super) mod listed_arguments;
pub(super) mod lookup;
pub(super) mod operands;
pub(super) mod record;
pub(super) mod special;
pub(super) mod text_rules;
pub(super) mod transparent_wrappers;
