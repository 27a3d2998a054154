"""Rooms beside the paper's pipeline: corpora without labels, windows, tokens, audits and more.

The core, ``mamushi``, imports none of them: ``mamushi.registry`` finds what they add.
"""
