"""Lists of items: what ranks them, from factors or from graphs."""
