#!/bin/bash
# Makes the Debian package: deb.sh BUILD FOLDER. FOLDER gets custream_VERSION_ARCH.deb. `make deb` runs it, and needs no root.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 folder=$2
tree=$folder/tree
version=$(cat VERSION)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)}

for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "custream: make deb needs $tool, of Debian's package dpkg-dev" >&2; exit 1; }
done

rm -rf "$folder"
mkdir -p "$tree/DEBIAN" "$folder/debian"
make -s --no-print-directory B="$build" DESTDIR="$PWD/$tree" PREFIX=/usr install
strip --strip-unneeded -R .comment "$tree"/usr/lib/*.so "$tree"/usr/lib/*.so.0 "$tree"/usr/bin/custream
chmod 644 "$tree"/usr/lib/*.so "$tree"/usr/lib/*.so.0
gzip -9n "$tree/usr/share/man/man1/custream.1"

doc=$tree/usr/share/doc/custream
mkdir -p "$doc"
cp tools/deb/copyright README.md "$doc"
install -D -m 644 tools/deb/lintian-overrides "$tree/usr/share/lintian/overrides/custream"
printf 'custream (%s) unstable; urgency=medium\n\n  * Version %s.\n\n -- custream developers <custream@localhost>  %s\n' "$version" "$version" \
    "$(date -R -u -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
find "$tree/usr" -type f -exec chmod u+w {} +

# What it depends on: of the libraries that the products need, Debian's own answer. The library opens those of the command at run time.
# Of the C library it takes an older one than this machine's (tools/glibc).
printf 'Source: custream\n\nPackage: custream\nArchitecture: any\n' >"$folder/debian/control"
depends=$(cd "$folder" && dpkg-shlibdeps -O --ignore-missing-info -Ttree/substvars tree/usr/bin/custream tree/usr/lib/*.so 2>/dev/null | sed -n 's/libc6 ([^)]*)/libc6 (>= 2.28)/; s/^shlibs:Depends=//p')
# What `custream open` opens while it runs.
http=$(realpath "$(${CC:-gcc} -print-file-name=libmicrohttpd.so.12)")
recommends=$({ dpkg-query -S "$http" || dpkg-query -S "${http#/usr}"; } 2>/dev/null | cut -d: -f1)
sed "s/@VERSION@/$version/; s/@ARCH@/$(dpkg --print-architecture)/; s/@DEPENDS@/$depends/; s/@RECOMMENDS@/${recommends:-libmicrohttpd12}/; s/@SIZE@/$(du -k -s --apparent-size "$tree/usr" | cut -f1)/" \
    tools/deb/control.in >"$tree/DEBIAN/control"
[ -n "$depends" ] || { echo "custream: dpkg-shlibdeps found no package that the products need" >&2; exit 1; }
echo 'libcustream 0 custream' >"$tree/DEBIAN/shlibs"
echo 'activate-noawait ldconfig' >"$tree/DEBIAN/triggers"
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$tree" -type d -exec chmod 755 {} +
dpkg-deb --root-owner-group --build "$tree" "$folder" >/dev/null
ls "$folder"/*.deb
