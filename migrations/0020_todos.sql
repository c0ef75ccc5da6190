-- The few events of a session that decide about its todo list, so that `session.get` reads the newest of them alone.
create index if not exists event_of_todos on event (session, seq) where kind in ('todo.updated', 'session.cleared', 'session.rewound');
