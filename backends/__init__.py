"""Search engines behind one contract: see :mod:`backends.base`."""
