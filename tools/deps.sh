#!/bin/bash
# Installs what the machine lacks for building and testing custream: Debian packages, PyPI packages into build/venv,
# NVIDIA's headers into build/cuda-headers. If nothing is missing, it returns at once. Run as `make deps`.
# `deps.sh build` installs only what GCC needs to compile. `deps.sh packages` and `deps.sh python` install the rest, both at once while the compiler works.
#
#   PYTHON  the interpreter that build/venv is made from (default: python3)
#   B       the build folder (default: build)
#   HEADERS the folder of NVIDIA's headers (default: build/cuda-headers)
set -euo pipefail
cd "$(dirname "$0")/.."
B=${B:-build}
PYTHON=${PYTHON:-python3}
REQUIREMENTS=tests/requirements.txt
say() { echo "deps: $*"; }
die() { echo "deps: $*" >&2; exit 1; }

# packages_build: the Debian packages for GCC, and for getting the rest from the network; some dozen
# MB. packages_tests: those for the tests; a gigabyte. On x86-64, qemu and the aarch64 compiler test
# the other architecture.
packages_build() {
    echo gcc make binutils libc6-dev libcjson-dev zlib1g-dev libelf-dev libmicrohttpd-dev dpkg-dev python3 python3-venv
}
packages_tests() {
    echo pkg-config clang chromium chromium-driver fonts-dejavu-core strace man-db manpages-dev groff mandoc zsh fish
    if [ "$(uname -m)" = x86_64 ]; then
        echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
    fi
}

missing_packages() {
    local wanted installed
    wanted=$(echo "$*" | tr ' ' '\n' | sort -u)
    # If dpkg-query does not know a package, it fails, but still lists the packages that it knows.
    # shellcheck disable=SC2086
    installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^ii *//p' | sort -u || true)
    comm -23 <(echo "$wanted") <(echo "$installed") | paste -sd ' '
}

# Installs those of the named packages that are missing.
install_packages() {
    local missing sudo="" log="$B/deps-apt-$mode.log"
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "not a Debian system: taking for granted what these packages hold: $*"
        return
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ]; then
        sudo="sudo -n"
        sudo -n true 2>/dev/null || die "these packages are missing; as root: apt-get update && apt-get install -y --no-install-recommends $missing"
    fi
    say "installing $missing"
    $sudo apt-get -qq update
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=600 install -y --no-install-recommends $missing >"$log" 2>&1 ||
        { tail -n 20 "$log" >&2; die "apt-get failed; its output is in $log"; }
}

# Makes build/venv anew if the pinned list has changed, or if the interpreter in build/venv fails.
install_python() {
    local stamp="$B/venv/requirements.sha256" wanted
    wanted=$(sha256sum <"$REQUIREMENTS")
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && "$B/venv/bin/python" -c '' 2>/dev/null; then
        return
    fi
    "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null || PYTHON=/usr/bin/python3
    say "making $B/venv with $("$PYTHON" --version)"
    PYTHON="$PYTHON" tools/venv.sh "$B/venv" "$REQUIREMENTS"
    echo "$wanted" >"$stamp"
}

mode=${1:-all}
mkdir -p "$B"
# shellcheck disable=SC2046
case $mode in
    build) install_packages $(packages_build) ;;
    packages) install_packages $(packages_tests) ;;
    all) install_packages $(packages_build) $(packages_tests) ;;
esac
case $mode in
    build) VENV="$B/venv" tools/headers.sh build ;;
    python | all) install_python; VENV="$B/venv" tools/headers.sh all ;;
esac
