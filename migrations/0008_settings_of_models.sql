-- How much a session's models may think, as it stands on the wire, and how freely they choose their words:
-- for lists. Null: left to the model.
alter table session add column thinking text;
alter table session add column temperature_thousandths integer;
alter table session add column top_p_thousandths integer;

-- What sessions were told before stands in their journals; the newest counts.
update session set thinking =
    (select json_extract(e.body, '$.thinking') from event e
     where e.session = session.id and e.kind in ('session.created', 'session.updated')
       and case when json_valid(e.body) then json_extract(e.body, '$.thinking') end is not null
     order by e.seq desc limit 1);
