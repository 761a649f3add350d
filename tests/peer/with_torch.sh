#!/bin/sh
# Runs a script with the first python3 that has torch; without one, says so and ends with 77, which
# ctest counts as skipped.
#
#   with_torch.sh [--pythons "PATH..."] SCRIPT [ARGUMENTS...]
set -u
pythons="/usr/bin/python3 python3"
if [ "$1" = --pythons ]; then
  pythons=$2
  shift 2
fi
for python in $pythons; do
  if "$python" -c 'import torch' 2>/dev/null; then
    PYTHONDONTWRITEBYTECODE=1 exec "$python" "$@"
  fi
done
echo "skipped: no python3 with torch, looked at $pythons, on Debian: apt-get install python3-torch"
exit 77
