"""Services: functions over a database session, a store, or an engine, of which operations are composed."""
