-- The few events of a session that hold its settings, so that `session.get` reads them without the rest of the journal.
create index if not exists event_of_settings on event (session, seq) where kind in ('session.created', 'session.updated');
