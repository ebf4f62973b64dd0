"""Draws records of `zeroproof bench`: one HTML page, with its figures as files beside it."""
