#!/bin/sh
# starter.sh TO REAL STARTER: makes STARTER, a program of this machine that becomes QEMU for the aarch64 program REAL (start.c). TO is the build folder. The first
# thread has the program's name: QEMU is started under it, from TO/as.
set -eu
name=${3##*/}
ln -sf "$(command -v qemu-aarch64 || command -v qemu-aarch64-static)" "$1/as/$name"
exec /usr/bin/gcc -std=gnu11 -Wall -Wextra -Werror -O2 -fPIE -ffreestanding -fno-stack-protector -fcf-protection=none -nostdlib -pie -Wl,--dynamic-linker="$3" \
    -DQEMU="\"$1/as/$name\"" -DROOT="\"$1/root\"" -DPROGRAM="\"$2\"" "$(dirname "$(realpath "$0")")"/start.c -o "$3"
