-- Who decided what (P7, S27): one row a decision, written in the transaction of what it decided. Each
-- row holds the digest of the one before it, so that none can be changed, left out or put in between
-- without all later ones being made anew. Sessions come and go, their rows here stay.
create table audit (
    id         integer primary key, -- 1, 2, 3 … without a gap
    at_ms      integer not null,
    kind       text    not null,    -- who decided: a rule, an answer, a role …
    session_id text,                -- as it stands on the wire
    seq        integer,             -- the event of the session's journal that was written with it
    call_id    text,
    tool       text,                -- the tool, or the method that was called
    digest     text,                -- SHA-256 of tool, input, folder and session
    verdict    text    not null,
    rule       text,
    reason     text    not null,
    client     text,
    uid        integer,
    pid        integer,
    exe        text,
    sandbox    text    not null,
    prev       text    not null,    -- hash of the row before, empty for the first
    hash       text    not null     -- SHA-256 of all of the above
) strict;

create index audit_by_session on audit (session_id, id);

create trigger audit_stays before delete on audit
begin
    select raise(abort, 'the audit log is only added to');
end;

create trigger audit_is_fixed before update on audit
begin
    select raise(abort, 'the audit log is only added to');
end;
