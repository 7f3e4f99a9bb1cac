# custream. Products: build/libcustream_shim.so, build/libcustream_shim_dlsym.so, build/custream, build/fakecuda/lib{cuda.so.1,cudart.so.13}.
# `make` builds them without network; `make deps` installs what building and testing need; demo, check and bench run deps first.

B       := build
ifeq ($(origin CC),default)
CC      := gcc
endif
PYTHON  ?= python3
PREFIX  ?= /usr/local
VENV    := $(B)/venv
VERSION := $(shell cat VERSION)

# CUDA headers: CUDA_INC if given, an installed toolkit, else what `make deps` unpacked from the PyPI wheel.
CUDA_INC ?= $(firstword $(wildcard $(CUDA_HOME)/include/cuda.h /usr/local/cuda/include/cuda.h /usr/include/cuda.h \
              $(B)/cuda-headers/default/cuda.h))
CUDA_INC_DIR = $(patsubst %/cuda.h,%,$(CUDA_INC))
# CUPTI's and NVTX's headers: of one known version, whatever toolkit is installed, since records are read by their layout.
CUPTI_INC := $(B)/cuda-headers/cupti

WARN   := -Wall -Wextra -Werror
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 $(WARN) $(CFLAGS) -fPIC -fvisibility=hidden -I. -Iinclude -isystem $(CUPTI_INC) $(if $(CUDA_INC_DIR),-isystem $(CUDA_INC_DIR)) -DCUSTREAM_VERSION_STRING='"$(VERSION)"'

.DEFAULT_GOAL := all
.PHONY: all deps demo check check-gpu bench install clean
all:

# Compiling one C or assembly file anywhere in the tree; dependencies are tracked.
$(B)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c $< -o $@
$(B)/obj/%.o: %.S Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

include shim/module.mk
include tools/custream/module.mk
include tests/fakecuda/module.mk
-include tests/apps/module.mk
-include tests/apps/dlsym/module.mk
-include tests/unit/module.mk
include tests/bench/module.mk
include tests/gpu/module.mk
include tests/api/module.mk
include tests/module.mk

# The sample program under the shim, on this machine's GPU or the simulated one.
demo:
	+@$(MAKE) --no-print-directory deps
	+@$(MAKE) --no-print-directory -s all $(B)/tests/demo
	@tools/demo.sh $(B)

# make install PREFIX=/usr/local [DESTDIR=...]
INSTALL := $(DESTDIR)$(PREFIX)
install: all
	install -d $(INSTALL)/lib/pkgconfig $(INSTALL)/bin $(INSTALL)/include $(INSTALL)/share/man/man1
	install -m 755 $(B)/libcustream_shim.so $(B)/libcustream_shim_dlsym.so $(B)/libcustream.so.0 $(INSTALL)/lib
	ln -sf libcustream.so.0 $(INSTALL)/lib/libcustream.so
	install -m 755 $(B)/custream $(INSTALL)/bin
	install -m 644 include/custream.h $(INSTALL)/include
	install -m 644 tools/custream/custream.1 $(INSTALL)/share/man/man1
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' tools/custream.pc.in > $(INSTALL)/lib/pkgconfig/custream.pc

clean:
	rm -rf $(B)/obj $(B)/*.so $(B)/*.so.0 $(B)/custream $(B)/fakecuda $(B)/fakecuda12.0 $(B)/tests $(B)/bench $(B)/gpu
