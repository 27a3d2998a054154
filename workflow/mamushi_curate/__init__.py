"""A user's own table, ranked by the stages of the core, which imports nothing from here."""
