#!/bin/sh
# folder.sh BUILD AARCH64 TO: makes the build folder TO whole. What BUILD has of the command and AARCH64 of libraries is there under a second name. In front of each
# program is a starter. TO/root is where QEMU looks first for what a program opens: the cross compiler's C library, and what Debian has of the libraries that ours open.
set -eu
build=$1 there=$2 to=$3 here=$(dirname "$(realpath "$0")")
rm -rf "$to"
mkdir -p "$to"/root/lib "$to"/as "$to"/bin
ln -s /usr/aarch64-linux-gnu/lib/*.so* "$there"/sysroot/libraries/*.so.[0-9] "$to"/root/lib/
ln -s "$here"/gcc.sh "$to"/bin/gcc
ln -s "$build"/cuda-headers "$to"/
cp -al "$there"/tests "$there"/fakecuda "$there"/fakecuda12.0 "$there"/libcustream*.so* "$build"/custream "$to"/
find "$to"/tests -type f -perm -u+x ! -name '*.so*' | while read -r program; do
    rm "$program"
    "$here"/starter.sh "$to" "$there/${program#"$to"/}" "$program"
done
