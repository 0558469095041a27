"""Judges that learn from labels. The only place that knows torch, and loads it when it is asked for (`recipes`)."""
