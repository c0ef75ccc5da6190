# Recipes for contributors. Each one is one or two plain commands, which work without `just` too.

# List the recipes.
default:
    @just --list

# The fast gate (at most 3 minutes when warm): format, lints, unit tests of the crates that changed.
check:
    .ci/check

# The whole gate, as CI runs it.
ci:
    .ci/run

# Tests whose name contains NAME, in all crates.
test NAME:
    cargo test --workspace -- {{NAME}}

# Unit tests of one crate, for example `just unit engine`.
unit CRATE:
    cargo test -p {{CRATE}} --lib

# Write the generated pages and screens again.
bless:
    AGENTD_BLESS=1 cargo test -p agentd --test all -- contract reliability_document unreachable fault_table
    AGENTD_BLESS=1 cargo test -p client --lib -- fixture

# The demo: a real daemon, recorded model replies.
demo:
    cargo build --bins && target/debug/agentctl demo

# One benchmark: load, tools, sse, knowledge, retrieval or kill; arguments follow, for example `just bench load b4 b6`.
bench NAME *ARGS:
    cargo bench --bench {{NAME}} -- {{ARGS}}

# Sizes of the release programs.
size:
    cargo build --release --bins && ls -l target/release/agentd target/release/agentctl
