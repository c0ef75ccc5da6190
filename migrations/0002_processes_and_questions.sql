-- Processes of tool calls, kept while they may be alive, so that the next start can end them (S9).
create table process (
    call_id    text    not null primary key,
    session    integer not null references session (id) on delete cascade,
    pid        integer not null, -- leads its own session and group
    started    integer not null, -- in clock ticks since boot, as /proc tells it: against reused ids
    boot_id    text    not null,
    at_ms      integer not null
) strict, without rowid;

create index process_by_session on process (session);

-- Questions to a person: what they are stands in the journal.
create table question (
    request_id  text    not null primary key,
    session     integer not null references session (id) on delete cascade,
    seq         integer not null,
    settled_seq integer            -- null while it is pending
) strict, without rowid;

create index question_by_session on question (session, settled_seq);
