//! Pages of the manual: each test is one thing a person or an editor does with a running daemon.

mod submit;
