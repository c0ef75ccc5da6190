-- For lists: what the user should know about the session, for example hooks that cannot be used. Null: nothing.
alter table session add column notice text;
