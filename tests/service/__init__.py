"""The service as real processes, under load and during failures. Run by ``pytest -m service tests/service``."""
