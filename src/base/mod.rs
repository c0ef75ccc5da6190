//! What every crate that does I/O may use: crash points, locks, files without links, processes, changes of folders, encodings of
//! texts. It contains no name of the product's concepts.

pub mod charset;
pub mod crash;
pub mod open;
pub mod proc;
pub mod sync;
pub mod test_skip;
pub mod watch;
