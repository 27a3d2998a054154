"""What every job of a tiny model would make anew, and the server of a run makes before it forks."""

from transformers.conversion_mapping import get_checkpoint_conversion_mapping

from mamushi.io.digests import versions

get_checkpoint_conversion_mapping("llama")  # a quarter of a second, for regular expressions
versions()  # a fiftieth, for the metadata of packages
