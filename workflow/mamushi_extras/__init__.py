"""Rooms beside the paper's pipeline: corpora without labels, windows, tokens, audits and more.

The core, ``mamushi``, imports none of them: see ``mamushi.rooms`` for how it finds what they add.
"""
