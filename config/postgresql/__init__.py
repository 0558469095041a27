"""Django's PostgreSQL backend with what the busiest pages need (see `base`)."""
