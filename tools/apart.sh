#!/bin/bash
# Runs apt-get WORD... for an architecture, with lists and a cache of its own in FOLDER: apart.sh FOLDER ARCH WORD... The system's own lists stay as they are.
# If the first WORD is `source`, the lists are those of source packages, else of binary ones. The first use of a FOLDER gets them.
set -euo pipefail
folder=$1 arch=$2
shift 2
[ "$1" = source ] && type=deb-src || type=deb
aside=(-qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root -o Debug::NoLocking=1
    -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache"
    -o Dir::Etc::SourceParts="$folder/sources" -o Dir::Etc::SourceList=/dev/null)
if [ ! -d "$folder/state" ]; then
    mkdir -p "$folder"/state/lists/partial "$folder"/cache/archives/partial "$folder/sources"
    touch "$folder/status"
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed "s/^Types:.*/Types: $type/" "$list" >"$folder/sources/${list##*/}"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed -n "s/^deb\(-src\)\{0,1\} /$type /p" "$list" | sort -u >"$folder/sources/${list##*/}.list"
    done
    apt-get "${aside[@]}" update
fi
apt-get "${aside[@]}" "$@"
