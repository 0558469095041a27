"""The same test as an oTree project: eighteen pages, one text field each. `benchmarks.otree` copies and starts it."""
