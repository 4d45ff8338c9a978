"""The audit log: who changed what, written in the transaction that changes it."""
