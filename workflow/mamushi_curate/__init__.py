"""A user's own table: ranked in one process, by the stages that the workflow's rules call. The core
imports nothing from here."""
