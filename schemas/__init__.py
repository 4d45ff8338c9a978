"""What goes in and out of the API, one module per noun."""
