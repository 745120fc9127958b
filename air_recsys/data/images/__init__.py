"""Pictures and masks in files and arrays."""
