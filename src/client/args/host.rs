//! Subcommands of `host`, and arguments of commands about other machines.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Subcommands of `host`.
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// Give a name to the daemon of another machine
    Add {
        /// The name: letters, digits, _ . -
        name: String,
        /// ssh://[USER@]HOST[:PORT][/SOCKET], or the path of a socket
        #[arg(value_name = "ADDRESS")]
        address: String,
    },
    /// List the hosts, and show which one is in force and why
    #[command(visible_alias = "ls")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Use a host for all commands without -H; `default` is this machine
    Use {
        /// The name of a host
        #[arg(value_name = "NAME")]
        host_name: String,
    },
    /// Remove a host from the list
    #[command(visible_alias = "remove")]
    Rm {
        /// The name of a host
        #[arg(value_name = "NAME")]
        host_name: String,
    },
}

/// Arguments of `acp`.
#[derive(Debug, Args)]
pub struct AcpArgs {
    /// The folder of new sessions, instead of the one that the editor names; for a daemon on another machine
    #[arg(short, long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// Answer version 2 of the protocol, a preview, if the editor asks for it; otherwise version 1
    #[arg(long)]
    pub experimental_v2: bool,
}
