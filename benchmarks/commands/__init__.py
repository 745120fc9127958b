"""Commands of ``python -m benchmarks``: each module has a table `COMMANDS` of functions by name."""
