-- Folders that their user trusts (S22), each bound to a digest of what it held then.
create table trust (
    cwd    text    not null primary key, -- absolute and free of links
    digest text    not null,
    at_ms  integer not null
) strict, without rowid;
