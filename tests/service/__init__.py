"""The service as real processes, under load and in trouble. Run by ``pytest -m service tests/service``."""
