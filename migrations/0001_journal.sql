-- The journal is the truth; every other table is a summary that can be rebuilt from it.

create table session (
    id              integer primary key autoincrement,  -- short key of the event rows, never reused
    session_id      text    not null unique,
    title           text    not null,
    cwd             text    not null,
    model           text    not null,
    mode            text    not null,
    background      integer not null,
    state           text    not null,
    requires        text,
    turn_id         text,
    created_at_ms   integer not null,
    updated_at_ms   integer not null,
    last_seq        integer not null,
    usage           text    not null,
    cost_usd_micros integer,                            -- null: a price is unknown
    last_line       text    not null
) strict;

create index session_by_state on session (state);

create table event (
    session integer not null references session (id) on delete cascade,
    seq     integer not null,
    at_ms   integer not null,
    kind    text    not null,
    fold    integer,         -- foldable rows: seq of the event that opened what they belong to
    body    text    not null, -- the whole event as it stands on the wire
    primary key (session, seq)
) strict, without rowid;

create table item (
    session   integer not null references session (id) on delete cascade,
    first_seq integer not null,
    last_seq  integer not null,
    kind      text    not null,
    status    text    not null,
    primary key (session, first_seq)
) strict, without rowid;

create table permission_request (
    request_id  text    not null primary key,
    session     integer not null references session (id) on delete cascade,
    seq         integer not null,
    settled_seq integer            -- null while it is pending
) strict, without rowid;

create index permission_request_by_session on permission_request (session, settled_seq);

create table idempotency (
    method  text    not null,
    key     text    not null,
    session integer references session (id) on delete cascade,
    digest  text    not null,
    reply   text    not null,
    at_ms   integer not null,
    primary key (method, key)
) strict, without rowid;

create index idempotency_by_session on idempotency (session);
