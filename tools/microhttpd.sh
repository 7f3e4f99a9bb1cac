#!/bin/bash
# Makes libmicrohttpd without TLS, for the wheel: microhttpd.sh FOLDER. Debian's library needs GnuTLS and its libraries, but `custream open`
# only serves plain HTTP on loopback. FOLDER gets libmicrohttpd.so.12 and its copyright, from the source of the system's package.
#
#   CC      the compiler
#   LDFLAGS the words that set the oldest C library
#   ANSWERS FOLDER/answers of another architecture: what configure found in Debian's headers and C library is not looked for again
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v dpkg-source >/dev/null; then
    echo "custream: the wheel needs Debian's source tools; as root: apt-get update && apt-get install -y --no-install-recommends dpkg-dev" >&2
    exit 1
fi
rm -rf "$1"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
here=$PWD
(cd "$folder" && "$here/tools/apart.sh" "$folder/apt" "$(dpkg --print-architecture)" source --download-only libmicrohttpd)
dpkg-source --no-check -x "$folder"/libmicrohttpd_*.dsc "$folder/source" >"$folder/log" 2>&1
{
    cd "$folder/source"
    [ ! -e "$ANSWERS" ] || grep -E '^(mhd_cv|ac_cv_(func|have|header|member|search|type))_' "$ANSWERS" >answers
    ./configure -q --cache-file=answers --host="$($CC -dumpmachine)" CC="$CC" LDFLAGS="$LDFLAGS" CFLAGS="-O2 -g0 -ffile-prefix-map=$folder=." --disable-static --disable-https \
        --disable-doc --disable-examples --disable-curl --disable-bauth --disable-dauth --disable-postprocessor --disable-messages --disable-nls --disable-dependency-tracking
    make -s -C src/microhttpd libmicrohttpd.la
} >>"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; exit 1; }
cp -L "$folder/source/src/microhttpd/.libs/libmicrohttpd.so.12" "$folder/source/debian/copyright" "$folder/source/answers" "$folder"
rm -rf "$folder/source" "$folder/apt"
