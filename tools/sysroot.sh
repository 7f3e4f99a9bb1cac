#!/bin/bash
# Gets the libraries that the command is linked with, for another architecture: sysroot.sh FOLDER TRIPLET LIBRARY...
# LIBRARY is a word of the link line, such as -lz. Nothing is installed: Debian's packages are unpacked into FOLDER.
#
# The packages are those that own the same files on this machine. FOLDER/owners has a line for each file: its name, and
# its package. FOLDER/libraries holds the libraries, for -B and -L of a compiler.
set -euo pipefail
folder=$1 triplet=$2
shift 2
arch=$(dpkg-architecture -t "$triplet" -qDEB_HOST_ARCH 2>/dev/null)

# Prints the package that owns a path of this machine. The package may have the path without /usr, from before the merge.
owner() {
    { dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "${1#/usr}"; } | cut -d: -f1
}

# Prints the packages for each -lNAME: those that own libNAME.so and libNAME.a, and, if such a
# name is a link, those that own the file to which the link leads.
packages() {
    local word file found
    for word in "$@"; do
        for file in "lib${word#-l}.so" "lib${word#-l}.a"; do
            found=$(gcc -print-file-name="$file")
            if [ -e "$found" ]; then
                owner "$(realpath "$(dirname "$found")")/$file"
                owner "$(realpath "$found")"
            fi
        done
    done | grep -v '^libc6' | sort -u
}

here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$folder"
mkdir -p "$folder/apt"
folder=$(cd "$folder" && pwd)
# shellcheck disable=SC2046
(cd "$folder/apt" && "$here/apart.sh" "$folder/apt/aside" "$arch" download $(packages "$@"))
for package in "$folder"/apt/*.deb; do
    dpkg-deb -x "$package" "$folder"
    dpkg-deb -c "$package" | awk -v name="$(dpkg-deb -f "$package" Package)" '!/\/$/ { sub(/.*\//, "", $6); print $6, name }' >>"$folder/owners"
done
rm -rf "$folder/apt"
# Links in the packages lead to absolute paths, so each name gets a link of ours to the file itself.
mkdir "$folder/libraries"
for place in "$folder/lib/$triplet" "$folder/usr/lib/$triplet"; do
    [ ! -d "$place" ] || for file in "$place"/lib*; do
        name=${file##*/}
        target=$(readlink "$file" || true)
        case $target in
            /*) file=$folder$target ;;
            ?*) file=$place/$target ;;
        esac
        ln -sf "$(realpath "$file")" "$folder/libraries/$name"
    done
done
