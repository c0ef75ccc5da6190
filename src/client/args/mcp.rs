//! Arguments of `agentctl mcp`.

use clap::{Args, Subcommand, ValueEnum};

/// Actions on MCP servers.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// List the servers of this folder with their states; usable ones are started
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a server: a program with its arguments, or the address of an HTTP server
    Add(McpAddArgs),
    /// Remove a server that was added
    Remove {
        /// Its name
        name: String,
        /// Where it was added
        #[arg(long, value_enum, default_value = "user")]
        scope: McpScopeArg,
    },
    /// Start a server and report how that went
    Test {
        /// Its name
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List the tools of a server
    Tools {
        /// Its name
        name: String,
        /// As JSON, with the schemas
        #[arg(long)]
        json: bool,
    },
    /// List the resources of a server; `@NAME:URI` in an input attaches one
    Resources {
        /// Its name
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Be an MCP server on standard input and output that offers sessions as tools to other agents
    Serve {
        /// Reach every session, not only those that this server started
        #[arg(long)]
        all_sessions: bool,
    },
    /// Show the newest lines that a server wrote
    Logs {
        /// Its name
        name: String,
    },
}

/// Arguments of `mcp add`.
#[derive(Debug, Args)]
pub struct McpAddArgs {
    /// The name of the server
    pub name: String,
    /// For you, or in the project's .mcp.json
    #[arg(long, value_enum, default_value = "user")]
    pub scope: McpScopeArg,
    /// A variable of the program's environment, NAME=VALUE; ${VAR} is replaced when it starts
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// A header of each request, "NAME: VALUE"; ${VAR} is replaced
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Run the program in the sandbox of commands
    #[arg(long)]
    pub sandbox: bool,
    /// Let the server ask you questions during a call
    #[arg(long)]
    pub elicitation: bool,
    /// Let the server ask for model calls; you decide about each
    #[arg(long)]
    pub sampling: bool,
    /// Time limit of a call, for example 30s
    #[arg(long)]
    pub timeout: Option<String>,
    /// The program and its arguments after --, or an address
    #[arg(required = true)]
    pub target: Vec<String>,
}

/// Where a server is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum McpScopeArg {
    /// For you
    User,
    /// In the project's .mcp.json
    Project,
}
