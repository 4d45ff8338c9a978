"""Services: the functions that operations are built from. They work on a database session, a store, or an engine."""
