#!/bin/sh
# The compiler of the test cases, as BUILD/bin/gcc: what they compile is for aarch64, and starts as the other programs do.
set -eu
here=$(dirname "$(realpath "$0")")
aarch64-linux-gnu-gcc -idirafter /usr/include "$@"
made=
while [ $# -gt 0 ]; do
    case $1 in
    -shared | -c | -E | -S) exit ;;
    -o) made=$2 ;;
    esac
    shift
done
[ -z "$made" ] || { mv "$made" "$made.aarch64" && exec "$here"/starter.sh "$(dirname "$(dirname "$0")")" "$(realpath "$made.aarch64")" "$(realpath "$made.aarch64" | sed 's/\.aarch64$//')"; }
