-- Messages about jobs. A row is written in the transaction of the state that it reports.
create table job_delivery (
    id          integer primary key autoincrement,  -- order in which they are owed, never reused
    job         integer not null references job (id) on delete cascade,
    webhook_id  text    not null unique,            -- the same for all tries
    target      text    not null,                   -- name of the table [jobs.notify.NAME]; no address
    job_state   text    not null,
    status      text    not null,                   -- pending, delivered or failed
    tries       integer not null default 0,
    next_try_ms integer,                            -- null: no further try
    owed_at_ms  integer not null,
    error       text,                               -- why the last try failed
    body        text    not null                    -- the message; empty when no try follows
) strict;

create index job_delivery_due on job_delivery (next_try_ms, id) where status = 'pending';
create index job_delivery_by_job on job_delivery (job, id);
