-- Content that is too large for an event or for a model. What is cut out of an event stands here and
-- nowhere else: the event names it in its list `cut`.
create table blob (
    id         integer primary key,
    session    integer not null references session (id) on delete cascade,
    blob_id    text    not null,
    media_type text    not null,
    bytes      integer not null,
    in_file    integer not null, -- 1: in a file of the folder blobs that has the blob's id as its name
    unique (session, blob_id)
) strict;

-- The content of those that are not in a file, in parts of 64 KiB.
create table blob_part (
    blob    integer not null references blob (id) on delete cascade,
    nth     integer not null,
    content blob    not null,
    primary key (blob, nth)
) strict;

-- Events that an older version wrote longer than they may be on the wire: cut by the next start.
create table oversized (
    session integer not null references session (id) on delete cascade,
    seq     integer not null,
    primary key (session, seq)
) strict, without rowid;

insert into oversized (session, seq)
select session, seq from event where fold is null and octet_length(body) > 65024;
