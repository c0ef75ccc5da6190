-- Clearer names. For deltas, delta_of is the seq of the event that opened their item. grant_outbox holds grants
-- that are not yet in the policy file of their workspace.
alter table event rename column fold to delta_of;
alter table owed_grant rename to grant_outbox;

-- Events that an older version wrote in a form that this one does not write any more. The next start reads
-- each of them, which accepts the old names of fields, and writes it again.
alter table oversized rename to outdated_event;

-- Old names that are a value, or a key of JSON without a schema.
update event set kind = 'session.prompt_built' where kind = 'session.context';
update event set body = replace(body, '{"level":1,"network":true,"outside":true}',
                                      '{"level":1,"network":true,"unsandboxed":true}')
where instr(body, '{"level":1,"network":true,"outside":true}');
update event set body = replace(body, '"outside":"', '"unsandboxed":"')
where kind = 'tool.completed' and instr(body, '"tool":"Bash"') and instr(body, '"outside":"');
update event set body = replace(replace(replace(body,
    '"grant":"Outside(', '"grant":"Unsandboxed('),
    '"rule":"Outside(', '"rule":"Unsandboxed('),
    '"suggestions":["Outside(', '"suggestions":["Unsandboxed(')
where kind glob 'permission.*' and instr(body, '"Outside(');
update event set body = replace(replace(body,
    '"allowed_by":"Outside(', '"allowed_by":"Unsandboxed('),
    ', Outside(', ', Unsandboxed(')
where kind in ('tool.status', 'tool.started') and instr(body, 'Outside(');

insert or ignore into outdated_event (session, seq)
select session, seq from event
where delta_of is null
  and (kind in ('session.prompt_built', 'history.repaired', 'helper.started')
       or instr(body, '"cut":[') or instr(body, '"terms":{') or instr(body, '"told":{')
       or instr(body, '"only_looks":true') or instr(body, '"care":"') or instr(body, '"by":"nobody"'));
