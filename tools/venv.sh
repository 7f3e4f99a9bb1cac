#!/bin/bash
# Makes a virtual environment anew with the packages of a pinned list, and nothing else: venv.sh FOLDER LIST.
# If Python's own pip can install into another environment (22.3 and newer), the new one gets no pip: installing pip takes as long as a dozen packages.
#
#   PYTHON  the interpreter (default: python3)
set -euo pipefail
PYTHON=${PYTHON:-python3}
rm -rf "$1"
"$PYTHON" -m venv --without-pip "$1"
pip=("$PYTHON" -m pip --python "$1/bin/python" --disable-pip-version-check)
if ! "${pip[@]}" --version >/dev/null 2>&1; then
    "$PYTHON" -m venv "$1"
    pip=("$1/bin/python" -m pip --disable-pip-version-check)
fi
quiet=(--quiet --no-deps --requirement "$2")
# If the list names uv, uv installs the list, in a quarter of pip's processor time. If uv fails, pip
# installs the list: pip has settings of its own.
uv=$(sed -n 's/^\(uv==[^ ]*\).*/\1/p' "$2")
if [ -n "$uv" ] && "${pip[@]}" install --quiet --no-compile --no-deps "$uv" && "$1/bin/uv" pip install --no-cache --python "$1/bin/python" "${quiet[@]}"; then
    exit
fi
"${pip[@]}" install --no-compile "${quiet[@]}"
