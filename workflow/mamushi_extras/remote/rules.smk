# What a configuration names at a URL is read from its copy, without which no job starts.
from mamushi_extras.remote.urls import require_copies

if workflow.is_main_process:
    explained(require_copies, config)
