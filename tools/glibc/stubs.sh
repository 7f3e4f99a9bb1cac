#!/bin/sh
# Makes stubs of the compiler's C library to link against: stubs.sh FOLDER VERSION (tools/glibc/module.mk). FOLDER/libc.so is
# what the compiler's -lc then finds, FOLDER/libm.so what -lm finds.
#
#   CC   the compiler
set -eu
cd "$(dirname "$0")/../.."
folder=$1
floor=$2

# list SONAME: what the compiler's library of that name defines, into FOLDER/stub/SONAME.list.
list() {
    LC_ALL=C readelf -W --dyn-syms "$(path_of "$1")" >"$folder/stub/$1.list"
}

# stub SONAME [OTHER]: FOLDER/stub/SONAME, of the functions in that library and of those that OTHER has taken in.
stub() {
    other=${2:-$1}
    LC_ALL=C awk -v soname="$1" -v floor="$floor" -v versions="$folder/stub/$1.map" -f tools/glibc/symbols.awk \
        source="$1" "$folder/stub/$1.list" source="$other" "$folder/stub/$other.list" >"$folder/stub/$1.S"
    $CC -shared -nostdlib -Wl,--version-script="$folder/stub/$1.map" -Wl,-soname="$1" "$folder/stub/$1.S" -o "$folder/stub/$1"
}

# The full path of a library of the compiler's.
path_of() { $CC -print-file-name="$1"; }

rm -rf "$folder/stub"
mkdir -p "$folder/stub"
here=$(cd "$folder" && pwd)
case $(path_of libc.so.6) in
    /*) ;;
    *) echo "custream: $CC has no libc.so.6: linking as it does" >&2; exit 0 ;;
esac
for soname in libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2; do list $soname; done
for soname in libc.so.6 libpthread.so.0 libdl.so.2; do stub $soname libc.so.6; done
stub libm.so.6
ln -sf stub/libm.so.6 "$folder/libm.so"
case $($CC -dumpmachine) in
    x86_64*) loader=$(path_of ld-linux-x86-64.so.2) ;;
    *) loader=$(path_of ld-linux-aarch64.so.1) ;;
esac
# The two stand in front of libc, as a program of that time has them.
echo "GROUP ( $here/libcompat.a AS_NEEDED ( $here/stub/libpthread.so.0 $here/stub/libdl.so.2 ) $here/stub/libc.so.6" \
    "$(path_of libc_nonshared.a) AS_NEEDED ( $loader ) )" >"$folder/libc.so"
