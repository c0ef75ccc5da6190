-- The cost ledger (Q35): one row a model call, written in the transaction of the event that tells of it.
-- Sessions come and go, their rows here stay. The sums by session and model are made when they are asked for.
create table ledger (
    session_id            text    not null, -- as it stands on the wire
    seq                   integer not null, -- the event of the session's journal
    at_ms                 integer not null,
    model                 text    not null,
    input_tokens          integer not null,
    output_tokens         integer not null,
    cache_read_tokens     integer not null,
    cache_write_tokens    integer not null,
    cache_write_1h_tokens integer not null,
    reasoning_tokens      integer not null,
    web_search_requests   integer not null,
    cost_usd_micros       integer,          -- null: the price is unknown
    lost                  integer not null, -- no answer came of it
    estimated             integer not null, -- the tokens are an upper estimate
    context_window        integer,
    max_output_tokens     integer,
    price                 text,             -- what it cost was reckoned with, as JSON
    primary key (session_id, seq)
) strict, without rowid;

create index ledger_by_time on ledger (at_ms);

-- What was called before there was a ledger stands in the journals.
insert into ledger
select s.session_id, e.seq, e.at_ms, coalesce(json_extract(e.body, '$.model'), ''),
       cast(coalesce(json_extract(e.body, '$.usage.input_tokens'), 0) as integer),
       cast(coalesce(json_extract(e.body, '$.usage.output_tokens'), 0) as integer),
       cast(coalesce(json_extract(e.body, '$.usage.cache_read_tokens'), 0) as integer),
       cast(coalesce(json_extract(e.body, '$.usage.cache_write_tokens'), 0) as integer),
       0,
       cast(coalesce(json_extract(e.body, '$.usage.reasoning_tokens'), 0) as integer),
       0,
       cast(json_extract(e.body, '$.cost_usd_micros') as integer),
       e.kind = 'usage',
       coalesce(json_extract(e.body, '$.estimated'), 0),
       null, null, null
from event e join session s on s.id = e.session
where e.kind in ('message.completed', 'usage')
  and case when json_valid(e.body) then json_extract(e.body, '$.usage') end is not null;

-- What the calls of a session cost at least, where not all prices are known.
alter table session add column cost_at_least_usd_micros integer not null default 0;

update session set cost_at_least_usd_micros = coalesce(
    (select cast(min(total(cost_usd_micros), 9e18) as integer) from ledger
     where ledger.session_id = session.session_id), 0);
