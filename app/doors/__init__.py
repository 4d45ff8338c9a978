"""Search in the words of other services, for programs that were written for them."""
