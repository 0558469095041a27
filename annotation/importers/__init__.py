"""Readers of judgements made in other tools: pure rules from bytes to a plan. No file here knows the database."""
