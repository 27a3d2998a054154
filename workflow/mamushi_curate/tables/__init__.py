"""A table of a user's own, in any file that people have."""
