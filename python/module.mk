# make wheel: build/wheel/custream-VERSION-py3-none-manylinux_2_28_ARCH.whl. The first time it gets the tools that make wheels from PyPI.

WHEEL := $(B)/wheel

wheel: $(WHEEL)/stamp
$(WHEEL)/stamp: $(B)/custream $(B)/libcustream_shim.so $(B)/libcustream_shim_dlsym.so $(B)/libcustream.so.0 $(B)/wheel-venv/stamp tools/wheel.sh VERSION LICENSE \
                include/custream.h python/pyproject.toml python/hatch_build.py python/README.md $(wildcard python/custream/*.py)
	CC='$(CC)' OBJECTS='$(CUSTREAM_OBJ)' LIBRARIES='$(CUSTREAM_LIBS)' PYTHON=$(abspath $(B)/wheel-venv/bin/python) tools/wheel.sh $(B) $(WHEEL)
	@touch $@
$(B)/wheel-venv/stamp: python/requirements.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --requirement $<
	@touch $@
