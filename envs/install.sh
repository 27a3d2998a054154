#!/bin/sh
# Installs Mamushi from the folder that it stands in, with what requirements.lock pins for running
# it: no more, and nothing that the lock file does not name. Both container recipes call it.
set -eu
cd "$(dirname "$0")/.."
pins=$(mktemp)
sed '/^# For development/,$d' requirements.lock > "$pins"
python -m pip install --no-cache-dir --requirement "$pins"
python -m pip install --no-cache-dir --no-deps --no-build-isolation --editable .
rm "$pins"
