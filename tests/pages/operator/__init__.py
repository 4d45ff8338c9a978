"""Tests of the operator area."""
