#!/bin/sh
# What the installation needs from the system, checked before it starts: one line per missing thing, with the apt command.
PYTHON=${PYTHON:-python3}
missing=""

if ! command -v "$PYTHON" >/dev/null 2>&1; then
    echo "make: $PYTHON is not there: sudo apt install python3 python3-venv, or make PYTHON=/path/to/python3.12" >&2
    exit 1
fi
if ! "$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; then
    echo "make: $("$PYTHON" --version) is not supported; Python 3.11, 3.12 or 3.13 is needed: make PYTHON=python3.12" >&2
    exit 1
fi
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
command -v c++ >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 || missing="$missing g++"
command -v cmake >/dev/null 2>&1 || missing="$missing cmake"
if [ -n "$missing" ]; then
    echo "make: missing:$missing. Install with: sudo apt install$missing" >&2
    exit 1
fi
