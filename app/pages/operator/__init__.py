"""The operator area: accounts, health, and charts, for the operators of the service. Other callers get a 404."""
