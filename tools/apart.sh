#!/bin/bash
# apt-get with lists and a cache of its own in FOLDER, for an architecture: apart.sh FOLDER ARCH WORD... It knows sources too.
# Nothing of the system's changes. The first use gets the lists.
set -euo pipefail
folder=$1 arch=$2
shift 2
aside=(-qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root -o Debug::NoLocking=1
    -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache"
    -o Dir::Etc::SourceParts="$folder/sources" -o Dir::Etc::SourceList=/dev/null)
if [ ! -d "$folder/state" ]; then
    mkdir -p "$folder"/state/lists/partial "$folder"/cache/archives/partial "$folder/sources"
    touch "$folder/status"
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb deb-src/' "$list" >"$folder/sources/${list##*/}"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed -n 's/^deb\(-src\)\{0,1\} \(.*\)/deb \2\ndeb-src \2/p' "$list" | sort -u >"$folder/sources/${list##*/}.list"
    done
    apt-get "${aside[@]}" update
fi
apt-get "${aside[@]}" "$@"
