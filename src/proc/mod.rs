//! Layer 0: processes, as the kernel tells of them in `/proc`, and which children of this process
//! have an owner in it.
//!
//! - `stat`: what is read of a process; nothing here is cached, everything may be over when it is
//!   read.
//! - `child`, `inside`: a child, and one that begins its life in a cgroup.
//! - `code`: the program's own pages.
//! - `owned`: children that somebody here waits for, and the end of those that nobody does.

mod child;
mod owned;
mod release_startup_pages;
mod spawn_in_cgroup;
mod stat;

pub use child::Child;
pub use owned::{adopt_orphans, has_no_orphan, is_adopted, is_alone, reap, spawn, spawn_plain};
pub use release_startup_pages::release_startup_pages as let_go_of_code;
pub use spawn_in_cgroup::{CgroupChild, spawn_inside};
pub use stat::{Process, all, boot_id, cgroup, environ, has_entry, is_there, one};
