"""Replies of models that were recorded elsewhere, as files. Nothing here knows the database."""
