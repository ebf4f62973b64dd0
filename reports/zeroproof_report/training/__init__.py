"""Draws records of `zeroproof train`."""
