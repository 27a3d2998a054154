"""A file a selector: ``Settings`` and ``score(pool, settings, seed)``, as docs/templates/far.py."""
