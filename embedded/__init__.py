"""Luria on one machine with nothing installed but Python: PostgreSQL and Valkey from wheels, one launcher.

`install.py`, `paths.py` and `child.py` use the standard library alone: they run before .venv exists.
"""
