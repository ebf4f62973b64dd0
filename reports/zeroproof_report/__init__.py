"""Draws records of `zeroproof bench`, or of `zeroproof train`.

One HTML page, with its figures as files beside it.
"""
