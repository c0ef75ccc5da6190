//! Laws of the machine.
