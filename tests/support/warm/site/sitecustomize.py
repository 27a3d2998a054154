"""Hands a command over to the server of warm processes, before Python has begun with it.

Python imports a module of this name when it starts, where it finds one: here, through PYTHONPATH,
and only in the commands of tests that ask for it (``MAMUSHI_TESTS_WARM`` is the server's socket).
Other commands, and all of them where no server answers, go on as if this were not here.
"""

import os
import sys

_SOCKET = os.environ.get("MAMUSHI_TESTS_WARM")
_WORDS = sys.orig_argv[1 + (sys.orig_argv[1:2] in (["-P"], ["-u"])) :]
_IS_OURS = bool(_WORDS) and (
    (_WORDS[0] == "-m" and _WORDS[1] in ("mamushi", "snakemake", "torch.distributed.run"))
    or (_WORDS[0] == "-c" and "from mamushi.cli import main" in _WORDS[1])
    or os.path.basename(_WORDS[0]) in ("snakemake", "two.py")
)

if _SOCKET and _IS_OURS:
    from mamushi_cluster.warm import run_in_server

    status = run_in_server(_WORDS, _SOCKET)
    if status is not None:
        os._exit(status)
