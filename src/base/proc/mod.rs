//! Reads processes from `/proc`, starts children of this process, and collects their exit status.
//!
//! - `stat`: data of a process; nothing is cached, and a process may have ended when its data is used.
//! - `child`, `spawn_in_cgroup`: a child, and one that starts inside a cgroup.
//! - `release_startup_pages`: pages of the program's own file.
//! - `thread_cpu_time`: the processor time of a thread.
//! - `release_free_memory`: freed memory that the allocator still holds.
//! - `detach`: a program that keeps nothing of this process.
//! - `bind_to_parent`: a program that ends with this process.
//! - `variable`: the environment of this process.
//! - `own`: the name of this process, and its protection from others.
//! - `peer`: the process on the other side of a socket.
//! - `owned`: children that code in this process awaits, and reaping of all others.

mod bind_to_parent;
mod child;
mod detach;
mod own;
mod owned;
mod peer;
mod release_free_memory;
mod release_startup_pages;
mod spawn_in_cgroup;
mod stat;
mod thread_cpu_time;
mod variable;

pub use bind_to_parent::bind_to_parent;
pub use child::Child;
pub use detach::detach;
pub use own::{own_program, refuse_inspection, set_own_name};
pub use owned::{adopt_orphans, has_no_orphan, is_adopted, is_alone, reap, spawn, spawn_plain};
pub use peer::{PeerHandle, is_alive, is_shortage, peer_pid};
pub use release_free_memory::release_free_memory;
pub use release_startup_pages::release_startup_pages;
pub use spawn_in_cgroup::{CgroupChild, spawn_inside};
pub use stat::{
    Process, boot_id, cgroup, cgroups, environ, has_entry, is_there, lineage, list_processes, name, program,
    read_process, resident_bytes, writers,
};
pub use thread_cpu_time::thread_cpu_time;
pub use variable::variable;
