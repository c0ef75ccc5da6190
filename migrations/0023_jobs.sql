-- Jobs. Unlike the summaries of sessions, these rows are the truth: no journal holds a job.
create table job (
    id              integer primary key autoincrement,  -- order of creation, never reused
    job_id          text    not null unique,
    state           text    not null,
    cwd             text    not null,
    schedule_id     text,
    template        text,
    unique_key      text,             -- null: the job keeps no other one from being created
    created_at_ms   integer not null,
    started_at_ms   integer,
    ended_at_ms     integer,
    cost_usd_micros integer not null, -- the known part
    record          text    not null, -- state of the job as JSON
    request         text    not null  -- what the job is asked to do, as JSON
) strict;

create unique index job_by_unique_key on job (unique_key) where unique_key is not null;
create index job_unfinished on job (state) where state in ('scheduled', 'queued', 'running', 'waiting', 'retrying');
create index job_by_schedule on job (schedule_id, id) where schedule_id is not null;
create index job_by_start on job (started_at_ms) where started_at_ms is not null;

create table job_event (
    job   integer not null references job (id) on delete cascade,
    seq   integer not null,
    at_ms integer not null,
    body  text    not null,
    primary key (job, seq)
) strict, without rowid;

-- Values that clients set and that outlive the daemon, for example that new jobs are paused.
create table daemon_setting (
    name  text not null primary key,
    value text not null
) strict, without rowid;

-- The job that a session is an attempt of.
alter table session add column job_id text;
create index session_by_job on session (job_id) where job_id is not null;
