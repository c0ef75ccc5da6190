//! Checks that a record names because its program has a grammar of its own.

/// The check of a program, and why options and verbs are not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Check {
    /// Its first operand is a program.
    Awk,
    /// Each verb of a service tells its effect by its beginning.
    Aws,
    /// The words after `--` are options of the compiler for some verbs.
    Cargo,
    /// The target folder is the second operand.
    Clone,
    /// `-D NAME:TYPE=VALUE`, and words for the build tool after `--`.
    Cmake,
    /// Options for other programs within one word: `-Wl,-o,x`.
    Compiler,
    /// The operand of one verb is code.
    Coverage,
    /// The sign before a value decides whether it is a file.
    Curl,
    /// An operand is a date that is set.
    Date,
    /// The arguments are addresses of code.
    Deno,
    /// An option of one verb means something else before it.
    Docker,
    /// A value of one option is a template from a file.
    Gh,
    /// Options, aliases and addresses before and after the verb.
    Git,
    /// It sets only if there is a second operand.
    GitConfig,
    /// Packages by path or address.
    Go,
    /// Without a read-only verb, its operands decide what it does.
    Gpg,
    /// `-DNAME=value`, by the name.
    JavaProperties,
    /// An operand is a program.
    Jq,
    /// Signals and processes are both numbers.
    Kill,
    /// Formats from files, named within a value.
    Kubectl,
    /// Statements for a database.
    Mysql,
    /// Packages by name, path or address.
    Npm,
    /// `+COMMAND`, which a pager runs.
    PlusCommand,
    /// A format.
    Printf,
    /// `--NAME_out=OPTIONS:PATH`.
    Protoc,
    /// Addresses and filters of ffmpeg, with a grammar of their own.
    MediaFilter,
    /// Statements for a database.
    Psql,
    /// The same, for a client that runs its input.
    PsqlClient,
    /// `-o NAME=value`, by the name.
    Pytest,
    /// Commands of a database in any case.
    Redis,
    /// An operand `HOST:PATH` is on another machine.
    RemoteCopy,
    /// Arguments that name code: classes as values, files with options.
    CodeArgument,
    /// `HOST:PATH`, and the folder in which files are removed.
    Rsync,
    /// `-C NAME=value`, by the name.
    Rustc,
    /// Its first operand is a script.
    Sed,
    /// Switches with a path in the same word.
    SevenZip,
    /// Statements for a database.
    Sqlite,
    /// The first word may be a cluster of letters whose values follow.
    Tar,
    /// Expressions.
    Test,
    /// A version, a program or a folder.
    Uv,
}
