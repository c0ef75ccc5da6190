-- Grants for a workspace that are given, and do not stand in its policy file yet (P5). The row is written
-- with the answer and removed once the file is written; what a crash leaves, the next start writes.
create table owed_grant (
    request_id text not null primary key,
    workspace  text not null, -- its real path
    entry      text not null  -- the rule as it is to stand in the file
) strict, without rowid;
