//! Knowledge about shell programs: their options, whether they read or write, and which of them run
//! other commands.

pub(super) mod escape_exceptions;
pub(super) mod escape_options;
pub(super) mod inner_commands;
pub(super) mod option_spec;
pub(super) mod records;
pub(super) mod runners;
pub(super) mod special;
pub(super) mod table;
pub(super) mod transparent_wrappers;
