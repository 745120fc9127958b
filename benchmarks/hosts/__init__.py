"""Our adapters beside the hosts' own models, in one run."""
