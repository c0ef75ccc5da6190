//! Layer 2: what a session knows of its folder before the model is asked (Q9–Q11): the system
//! prompt, project instructions as data, facts of the repository, and what of the folder hangs on its
//! user's trust (S22).

mod git;
mod instructions;
mod project;
mod prompt;
mod repository;
mod root;
mod trust_inventory;

pub use project::Project;
pub use prompt::{Gathered, Request, gather};
pub use repository::repository;
pub use trust_inventory::{TrustInventory, scan};
