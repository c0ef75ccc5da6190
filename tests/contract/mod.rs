//! What is promised in writing: the reference and the code say the same.
