# So that the products also run with an older glibc than this machine's, 2.28 at least.
#
# The command and libcustream.so are linked against stubs of the C library in build/glibc. These name the old versions of its
# functions, and where an old glibc has them. $(GLIBC_FLOOR) stands on the link line, $(GLIBC_READY) among what it depends on.
# The preload libraries need libc alone: shim/base/glibc.c has their functions of other versions, one row each.
# $(GLIBC_COMPAT) holds what an old glibc lacks. The linker takes of it what a product uses.

GLIBC       := $(B)/glibc
GLIBC_OLD   := 2.28
GLIBC_FLOOR := -L$(GLIBC) -Wl,--allow-shlib-undefined
GLIBC_READY := $(GLIBC)/libc.so
GLIBC_COMPAT := $(GLIBC)/libcompat.a

$(GLIBC_COMPAT): $(patsubst %.c,$(B)/obj/%.o,$(wildcard tools/glibc/compat/*.c))
	@mkdir -p $(@D)
	rm -f $@
	$(AR) rc $@ $^

$(GLIBC_READY): $(GLIBC_COMPAT) tools/glibc/stubs.sh tools/glibc/symbols.awk
	CC='$(CC)' tools/glibc/stubs.sh $(GLIBC) $(GLIBC_OLD)
