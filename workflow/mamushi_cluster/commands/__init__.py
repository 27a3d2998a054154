"""Commands for people that need Snakemake, in the form of ``mamushi.commands``."""
