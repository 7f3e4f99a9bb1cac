#!/bin/bash
# Gets the headers that tools/headers.txt names from PyPI into build/cuda-headers: headers.sh build (only those for the build) | all.
# Headers that are up to date stay. `make` and `make deps` run this script if headers are missing.
# It needs no root and installs nothing; it only names the Debian packages that the build lacks.
#
#   HEADERS  the folder (default: build/cuda-headers)
#   PYTHON, VENV  the interpreter and the virtual environment with pip (default: python3, build/venv)
#   CC       the compiler that has to find the other libraries' headers (default: gcc)
set -euo pipefail
cd "$(dirname "$0")/.."
HEADERS=${HEADERS:-build/cuda-headers}
PYTHON=${PYTHON:-python3}
VENV=${VENV:-build/venv}
CC=${CC:-gcc}

die() { printf 'custream: %s\n' "$@" >&2; exit 1; }

# Prints the Debian packages that the build lacks. It looks for files of these packages, so files
# that were installed in another way count too.
missing_packages() {
    local words
    read -ra words <<<"$CC"
    command -v "${words[0]}" >/dev/null || echo gcc
    # Without a compiler, has_header looks in Debian's folder.
    has_header stdlib.h || echo libc6-dev
    has_header cjson/cJSON.h || echo libcjson-dev
    has_header zlib.h || echo zlib1g-dev
    has_header gelf.h || echo libelf-dev
    has_header microhttpd.h || echo libmicrohttpd-dev
    find_pip || echo python3-venv
}

has_header() {
    if command -v "${words[0]}" >/dev/null; then
        echo "#include <$1>" | "${words[@]}" -E -x c - >/dev/null 2>&1
    else
        [ -e "/usr/include/$1" ]
    fi
}

# Sets PIP_PYTHON to a Python with pip, or to "venv" if VENV_PYTHON can make one. Fails if neither is found.
find_pip() {
    local candidate
    for candidate in "$VENV/bin/python" "$PYTHON" /usr/bin/python3; do
        if "$candidate" -m pip --version >/dev/null 2>&1; then
            PIP_PYTHON=$candidate
            return
        fi
    done
    for candidate in "$PYTHON" /usr/bin/python3; do
        if "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
            VENV_PYTHON=$candidate
            PIP_PYTHON=venv
            return
        fi
    done
    return 1
}

download() {
    "$PIP_PYTHON" -m pip --disable-pip-version-check download --quiet --no-deps "$@" ||
        die "$folder could not be had from PyPI: pip's lines above say why" \
            "without network: copy $HEADERS from a machine where make has run"
}

# Headers are the same for every architecture, so one platform's wheels serve all.
flat_of_wheels() {
    local platform wheel platforms=()
    for platform in manylinux_2_28 manylinux_2_27 manylinux_2_25 manylinux2014 manylinux1; do
        platforms+=(--platform "${platform}_x86_64")
    done
    download --only-binary :all: "${platforms[@]}" --dest "$work" "$@"
    for wheel in "$work"/*.whl; do
        "$PIP_PYTHON" -m zipfile -e "$wheel" "$work/unpacked"
    done
    cp -r "$work"/unpacked/nvidia/*/include/. "$work/flat/"
    [ -e "$work/flat/cuda.h" ] || [ -e "$work/flat/cupti.h" ] || die "no cuda.h in $*"
}

flat_of_source() {
    echo "$*" >"$work/wanted.txt"
    download --no-binary :all: --require-hashes --dest "$work" -r "$work/wanted.txt"
    mkdir "$work/unpacked"
    tar -xzf "$work"/*.tar.gz -C "$work/unpacked" --strip-components=1
    cp "$work"/unpacked/LICENSE "$work"/unpacked/*/"${folder##*/}".[ch] "$work/flat/" # only these: another file may have the name of a system header
}

# Puts the headers of some packages into one folder without folders below: install FOLDER PACKAGE...
install() {
    local folder="$HEADERS/$1" work="$WORK/$1"
    shift
    echo "custream: getting from PyPI into $folder: $1"
    mkdir -p "$work/flat"
    case $* in
        *--hash=*) flat_of_source "$@" ;;
        *) flat_of_wheels "$@" ;;
    esac
    echo "$*" >"$work/flat/wheels.txt"
    rm -rf "$folder"
    mv "$work/flat" "$folder"
}

# wanted[FOLDER]: the packages of a folder that is missing or out of date.
declare -A wanted=()
while read -r folder wheels; do
    case $1:$folder in
        *:'#'* | build:12.0) continue ;;
    esac
    if [ "$(cat "$HEADERS/$folder/wheels.txt" 2>/dev/null)" != "$wheels" ]; then
        wanted[$folder]=$wheels
    elif [ tools/headers.txt -nt "$HEADERS/$folder/wheels.txt" ]; then
        touch "$HEADERS/$folder/wheels.txt"
    fi
done <tools/headers.txt
[ ${#wanted[@]} != 0 ] || exit 0

packages=$(missing_packages | paste -sd ' ')
if [ -n "$packages" ]; then
    die "to build it, the machine lacks these Debian packages, or what is in them: $packages" "as root: apt-get update && apt-get install -y --no-install-recommends $packages"
fi
find_pip
mkdir -p "$HEADERS"
WORK=$(mktemp -d "$HEADERS/tmp.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
if [ "$PIP_PYTHON" = venv ]; then
    "$VENV_PYTHON" -m venv "$WORK/venv"
    PIP_PYTHON=$WORK/venv/bin/python
fi
under_way=() # all at once: they mostly wait for the network
for folder in "${!wanted[@]}"; do
    # shellcheck disable=SC2086
    install "$folder" ${wanted[$folder]} &
    under_way+=($!)
done
for one in "${under_way[@]}"; do wait "$one"; done
