-- For a sub-agent: the session and the call that started it. And the agent that a session works as.
alter table session add column parent_session_id text;
alter table session add column parent_call_id text;
alter table session add column agent text;

create index session_by_parent on session (parent_session_id) where parent_session_id is not null;
