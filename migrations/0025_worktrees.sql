-- Git worktrees that the daemon made. The rows are written before git is called, so that a start finds what a crash left.
create table worktree (
    id             integer primary key autoincrement,  -- order of creation, never reused
    name           text    not null unique,            -- its folder below DATA/worktrees
    job_id         text,
    session_id     text,
    created_at_ms  integer not null,
    finished_at_ms integer,          -- null: its job or session is not over
    removed_at_ms  integer,          -- null: it exists, or is being made
    record         text    not null  -- all of it as JSON
) strict;

create index worktree_by_job on worktree (job_id, id) where job_id is not null;
create index worktree_by_session on worktree (session_id, id) where session_id is not null;
create index worktree_present on worktree (id) where removed_at_ms is null;
