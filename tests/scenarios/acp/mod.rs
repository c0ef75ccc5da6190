//! `agentctl acp`: an editor, as a line of JSON in each direction, in front of the real bridge and the real daemon.

mod editor;
mod history;
mod judges;
mod lines;
mod prompts;
mod remote;
mod requests;
mod schema;
mod version_2;
