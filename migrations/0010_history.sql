-- The text of messages, for search: one row per completed message of a user or a model, written in the
-- transaction of its event. `seq` is the first event of the message's item.
create table message_text (
    id      integer primary key,
    session integer not null references session (id) on delete cascade,
    seq     integer not null,
    item_id text    not null,
    text    text    not null  -- at most 16 KiB
) strict;

create index message_text_by_session on message_text (session, seq);

create virtual table message_index using fts5 (
    text, content = 'message_text', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);

create trigger message_text_added after insert on message_text
begin
    insert into message_index (rowid, text) values (new.id, new.text);
end;

create trigger message_text_removed after delete on message_text
begin
    insert into message_index (message_index, rowid, text) values ('delete', old.id, old.text);
end;

-- Existing messages: the newest 20,000, so that the time of the migration is limited.
insert into message_text (session, seq, item_id, text)
select session, coalesce(json_extract(body, '$.item.first_seq'), seq), json_extract(body, '$.item_id'),
       substr(json_extract(body, '$.item.text'), 1, 8192)
from (select session, seq, body from event where kind = 'message.completed'
      order by at_ms desc limit 20000)
where case when json_valid(body) then
          json_extract(body, '$.item.kind') in ('user_message', 'assistant_message')
          and json_extract(body, '$.item.status') = 'completed'
          and json_extract(body, '$.item_id') is not null
          and coalesce(json_extract(body, '$.item.text'), '') <> ''
      end
order by session, seq;

-- The session whose history this session began with, as JSON.
alter table session add column forked_from text;
