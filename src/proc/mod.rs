//! Floor 0: processes, as the kernel tells of them in `/proc`, and which children of this process
//! have an owner in it.
//!
//! - `stat`: what is read of a process; nothing here is cached, everything may be over when it is
//!   read.
//! - `child`, `inside`: a child, and one that begins its life in a cgroup.
//! - `code`: the program's own pages.
//! - `owned`: children that somebody here waits for, and the end of those that nobody does.

mod child;
mod code;
mod inside;
mod owned;
mod stat;

pub use child::Child;
pub use code::release_startup_pages as let_go_of_code;
pub use inside::{CgroupChild, spawn_inside};
pub use owned::{adopt_orphans, has_no_orphan, is_adopted, is_alone, reap, spawn, spawn_plain};
pub use stat::{Process, all, boot_id, cgroup, environ, has_entry, is_there, one};
