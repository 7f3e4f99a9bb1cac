#!/bin/sh
# Runs after `make install` and `make uninstall`: ldconfig.sh DESTDIR [PREFIX]. As root it runs ldconfig. With a PREFIX it then says how to preload the library:
# by its name if the loader finds that name, else by its path. With a DESTDIR it does nothing:
# the files go into a package, and installing the package runs ldconfig.
set -eu
[ -z "$1" ] || exit 0
PATH=$PATH:/usr/sbin:/sbin # `su` leaves these folders out
[ "$(id -u)" != 0 ] || ldconfig
[ -n "${2:-}" ] || exit 0
library=$2/lib/libcustream_shim.so
if ldconfig -p | grep -qF "=> $library"; then
    echo "custream: installed. LD_PRELOAD=libcustream_shim.so ./app, or custream run -- ./app"
else
    echo "custream: installed where the loader does not look for libraries. Say LD_PRELOAD=$library ./app, or $2/bin/custream run -- ./app"
fi
