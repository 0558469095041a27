"""Readers of answers collected elsewhere: pure rules from bytes to a plan. No file here knows the database."""
