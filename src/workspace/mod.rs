//! Floor 2: what a session knows of its folder before the model is asked (Q9–Q11): the system
//! prompt, project instructions as data, and which parts wait for trust (S22).

mod instructions;
mod prompt;
mod trust;

pub use prompt::{Gathered, Request, gather};
