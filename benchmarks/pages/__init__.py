"""Pages and servers: the explorer in a browser, and the service under requests."""
