# make wheel: build/wheel/custream-VERSION-py3-none-manylinux_2_28_ARCH.whl. The first time it gets the tools that make wheels from PyPI.

WHEEL := $(B)/wheel
WHEEL_VENV ?= $(B)/wheel-venv

wheel: $(WHEEL)/stamp
$(WHEEL)/stamp: $(B)/custream $(B)/libcustream_shim.so $(B)/libcustream_shim_dlsym.so $(B)/libcustream.so.0 $(WHEEL_VENV)/stamp $(B)/microhttpd/copyright tools/wheel.sh VERSION LICENSE \
                include/custream.h python/pyproject.toml python/hatch_build.py python/README.md $(wildcard python/custream/*.py python/custream/*/*.py)
	CC='$(CC)' SYSROOT='$(SYSROOT)' HTTP=$(B)/microhttpd HEADERS=$(HEADERS) OBJECTS='$(CUSTREAM_OBJ)' LIBRARIES='$(CUSTREAM_LIBS)' PYTHON=$(abspath $(WHEEL_VENV)/bin/python) tools/wheel.sh $(B) $(WHEEL)
	@touch $@
$(WHEEL_VENV)/stamp: python/requirements.txt tools/venv.sh
	PYTHON='$(PYTHON)' tools/venv.sh $(@D) $<
	@touch $@
$(B)/microhttpd/copyright: tools/microhttpd.sh tools/apart.sh $(GLIBC_READY)
	CC='$(CC)' ANSWERS='$(CURDIR)/build/microhttpd/answers' LDFLAGS='$(patsubst -L%,-L$(CURDIR)/%,$(GLIBC_FLOOR))' tools/microhttpd.sh $(@D)

# The same for aarch64, made on x86-64 with Debian's libraries for arm64.
ARM := build/aarch64
ARM_CC := aarch64-linux-gnu-gcc -idirafter /usr/include -B$(CURDIR)/$(ARM)/sysroot/libraries -L$(CURDIR)/$(ARM)/sysroot/libraries
.PHONY: wheel-aarch64 wheel-parts
wheel-aarch64: $(ARM)/sysroot/owners $(WHEEL_VENV)/stamp
	+@$(MAKE) -s B=$(ARM) CC='$(ARM_CC)' DEBUG= SYSROOT=$(ARM)/sysroot WHEEL_VENV=$(WHEEL_VENV) wheel
$(ARM)/sysroot/owners: tools/sysroot.sh tools/apart.sh
	tools/sysroot.sh $(@D) aarch64-linux-gnu $(CUSTREAM_LIBS)
# What both wheels need from elsewhere, but for libmicrohttpd for aarch64. It mostly waits for the network: check starts it beside what is compiled.
wheel-parts: $(B)/microhttpd/copyright $(ARM)/sysroot/owners $(WHEEL_VENV)/stamp
