//! Restarts under load.
