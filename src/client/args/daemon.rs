//! Subcommands that concern the daemon, its configuration, and the notes of a project.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Subcommands of `daemon`.
#[derive(Debug, Subcommand)]
pub enum DaemonCommand {
    /// Start it, if none runs
    Start,
    /// Stop it; sessions are kept
    Stop {
        /// Do not wait for running tools
        #[arg(long)]
        now: bool,
    },
    /// Stop it and start it again; sessions continue where they were
    Restart {
        /// Do not wait for running tools
        #[arg(long)]
        now: bool,
    },
    /// Read the configuration again without a restart
    Reload,
    /// Show whether it runs, and its settings
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the end of its log
    Logs,
    /// Pass bytes on between standard input and output and the daemon's socket; `-H ssh://…` runs this over there
    #[command(hide = true)]
    DialStdio {
        /// Start no daemon in place of one that a user stopped
        #[arg(long)]
        after_crash: bool,
    },
}

/// Subcommands of `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the values in force in this folder, without secrets
    Show(ConfigShowArgs),
}

/// Arguments of `config show`.
#[derive(Debug, Args)]
pub struct ConfigShowArgs {
    /// Also print where each value comes from
    #[arg(long)]
    pub origin: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// The folder whose project's file counts; by default the current one
    #[arg(short = 'w', long = "work-dir", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Subcommands of `memory`.
#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Print the names and first lines of the notes
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print one note
    Show {
        /// Name of the note
        name: String,
    },
    /// Write a note, or replace it
    Set {
        /// Name of the note: a-z, 0-9, _ and -
        name: String,
        /// Its text, or - to read it from standard input
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Remove a note
    #[command(visible_alias = "remove")]
    Rm {
        /// Name of the note
        name: String,
    },
}
