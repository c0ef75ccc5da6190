-- Schedules: what creates jobs at given times. As with jobs, these rows are the truth.
create table schedule (
    id          integer primary key autoincrement,  -- order of creation
    schedule_id text    not null unique,
    record      text    not null                    -- state and content of the schedule as JSON
) strict;

-- The slots that fired. The key keeps a slot from firing twice, whatever happens to the clock or the daemon.
create table schedule_firing (
    schedule_id text    not null,
    slot_ms     integer not null,
    job_id      text    not null,
    primary key (schedule_id, slot_ms)
) strict, without rowid;
