# custream. Products: build/libcustream_shim.so, build/libcustream_shim_dlsym.so, build/custream, build/fakecuda/lib{cuda.so.1,cudart.so.13}.
# `make` builds them; the first time it gets NVIDIA's headers, and says which packages are missing. `make deps` installs what building and testing need; demo,
# check and bench run deps first.

B       := build
ifeq ($(origin CC),default)
CC      := gcc
endif
PYTHON  ?= python3
PREFIX  ?= /usr/local
VENV    := $(B)/venv
VERSION := $(shell cat VERSION)

# NVIDIA's headers, of the versions that tools/headers.txt names, whatever toolkit is installed: the call table has what the newest cuda.h declares, and CUPTI's
# records are read by their layout. Programs for a real GPU (tests/gpu) take the toolkit's own.
HEADERS      ?= build/cuda-headers
CUDA_INC_DIR := $(HEADERS)/13.5
CUPTI_INC    := $(HEADERS)/cupti
YYJSON_INC   := $(HEADERS)/yyjson
HEADERS_READY := $(CUDA_INC_DIR)/wheels.txt $(CUPTI_INC)/wheels.txt $(YYJSON_INC)/wheels.txt

WARN   := -Wall -Wextra -Werror
DEBUG  ?= -g
CFLAGS ?= -O2 $(DEBUG)
# Without link-time optimization, which distributions ask for in CFLAGS: wrappers are named in assembly alone, and it would take them for unused.
ALL_CFLAGS = -std=gnu11 $(WARN) $(CFLAGS) -fno-lto -fPIC -fvisibility=hidden -ffile-prefix-map=$(CURDIR)=. -I. -Iinclude -isystem $(CUPTI_INC) -isystem $(CUDA_INC_DIR) -isystem $(YYJSON_INC) -DCUSTREAM_VERSION_STRING='"$(VERSION)"'

.DEFAULT_GOAL := all
.PHONY: all deps demo check check-gpu bench install uninstall wheel deb clean
all:

# One run for both, which also looks for what else building needs.
$(HEADERS_READY) &: tools/headers.txt
	@HEADERS=$(HEADERS) PYTHON=$(PYTHON) VENV=$(VENV) CC='$(CC)' tools/headers.sh build

# Compiling one C or assembly file anywhere in the tree; dependencies are tracked.
$(B)/obj/%.o: %.c Makefile VERSION $(HEADERS_READY)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c $< -o $@
$(B)/obj/%.o: %.S Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

include tools/glibc/module.mk
include shim/module.mk
include tools/custream/module.mk
include tests/fakecuda/module.mk
-include tests/apps/module.mk
-include tests/apps/dlsym/module.mk
-include tests/apps/loading/module.mk
-include tests/unit/module.mk
include tests/bench/module.mk
include tests/gpu/module.mk
include tests/api/module.mk
include tests/fuzz/module.mk
include tests/sanitized/module.mk
include python/module.mk
include tests/module.mk
include tests/emulated/module.mk

# The sample program under the shim, on this machine's GPU or the simulated one.
demo:
	+@$(MAKE) --no-print-directory deps
	+@$(MAKE) --no-print-directory -s all $(B)/tests/demo
	@tools/demo.sh $(B)

# make install [PREFIX=/usr/local] [DESTDIR=...]; make uninstall with the same. Root builds nothing in somebody else's tree: after `make`, `sudo make install`
# leaves no file of root's in it, and fetches nothing.
INSTALL := $(DESTDIR)$(PREFIX)
INSTALLED := lib/libcustream_shim.so lib/libcustream_shim_dlsym.so lib/libcustream.so.0 lib/libcustream.so lib/pkgconfig/custream.pc bin/custream \
             include/custream.h share/man/man1/custream.1 share/bash-completion/completions/custream share/zsh/site-functions/_custream \
             share/fish/vendor_completions.d/custream.fish
IS_GUEST := $(if $(filter 0,$(shell id -u)),$(filter-out 0,$(shell stat -c %u .)))
install: $(if $(IS_GUEST),is-built,all)
	install -d $(sort $(dir $(addprefix $(INSTALL)/,$(INSTALLED))))
	install -m 755 $(B)/libcustream_shim.so $(B)/libcustream_shim_dlsym.so $(B)/libcustream.so.0 $(INSTALL)/lib
	ln -sf libcustream.so.0 $(INSTALL)/lib/libcustream.so
	install -m 755 $(B)/custream $(INSTALL)/bin
	install -m 644 include/custream.h $(INSTALL)/include
	install -m 644 $(B)/pages/custream.1 $(INSTALL)/share/man/man1
	install -m 644 tools/pages/custream.bash $(INSTALL)/share/bash-completion/completions/custream
	install -m 644 tools/pages/_custream $(INSTALL)/share/zsh/site-functions
	install -m 644 tools/pages/custream.fish $(INSTALL)/share/fish/vendor_completions.d
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' tools/custream.pc.in > $(INSTALL)/lib/pkgconfig/custream.pc
	@tools/ldconfig.sh '$(DESTDIR)' '$(PREFIX)'
uninstall:
	rm -f $(addprefix $(INSTALL)/,$(INSTALLED))
	@tools/ldconfig.sh '$(DESTDIR)'

# A Debian package: build/deb/custream_VERSION_ARCH.deb. Installing it has the loader find the library by its name.
deb: $(B)/deb/stamp
$(B)/deb/stamp: $(B)/custream $(B)/libcustream_shim.so $(B)/libcustream_shim_dlsym.so $(B)/libcustream.so.0 include/custream.h $(PAGES) \
                tools/custream.pc.in README.md VERSION $(wildcard tools/deb/*)
	+tools/deb/deb.sh $(B) $(B)/deb
	@touch $@

.PHONY: is-built
is-built:
	@$(MAKE) -s -q all || { echo "custream: not built, or not from the present files: run make first, not as root" >&2; exit 1; }

clean:
	rm -rf $(B)/obj $(B)/glibc $(B)/wheel $(B)/deb $(B)/*.so $(B)/*.so.0 $(B)/custream $(B)/pages $(B)/fakecuda $(B)/fakecuda12.0 $(B)/tests $(B)/bench $(B)/gpu $(B)/pycache $(B)/asan $(B)/tsan $(B)/collected.log
