-- For lists: how the session's last turn ended (JSON), what its calls do now, and the tokens of its newest answer
-- with its request. Null: no turn has ended, nothing runs, no answer yet.
alter table session add column last_turn text;
alter table session add column activity text;
alter table session add column context_tokens integer;

update session set last_turn =
    (select json_object('subtype', json_extract(e.body, '$.result.subtype'),
                        'kind', json_extract(e.body, '$.result.errors[0].kind'),
                        'message', substr(json_extract(e.body, '$.result.errors[0].message'), 1, 200),
                        'ended_at_ms', e.at_ms,
                        'duration_ms', coalesce(json_extract(e.body, '$.result.duration_ms'), 0),
                        'permission_ms', coalesce(json_extract(e.body, '$.result.permission_ms'), 0))
     from event e
     where e.session = session.id and e.kind = 'turn.completed'
       and case when json_valid(e.body) then json_extract(e.body, '$.result.subtype') end is not null
     order by e.seq desc limit 1);
