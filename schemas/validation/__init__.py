"""The rules of what the service accepts, without a framework: schemas and services share them."""
