# The preload library and the command with a sanitizer in them, and the test cases with these (docs/tests.md). Each sanitizer has a build folder, build/asan and
# build/tsan, in which all else is a link to what the plain build has: the programs are as they are.
#
# The runtime must stand in front of the C library. An auxiliary filter is put in front of the library that names it, so LD_PRELOAD is what it always is. INITFIRST:
# the runtime is up before any library calls a function of ours.

SANITIZED_RUNTIMES_asan := libubsan.so.1 libasan.so.8
SANITIZED_RUNTIMES_tsan := libtsan.so.2
# What runs before the runtime is up (early.c).
SANITIZED_EARLY := $(B)/obj/tests/sanitized/early.o $(B)/obj/shim/base/realdl.o $(B)/obj/shim/wrap/dlsym.o
SANITIZED_MADE  := libcustream_shim.so libcustream_shim_dlsym.so custream libreport.so
# The folders of the other sanitizer too: they would be links to themselves.
SANITIZED_LINKS  = $(filter-out $(SANITIZED_MADE) asan tsan pycache soak fuzz,$(notdir $(wildcard $(B)/*)))

define SANITIZED
SANITIZED_OBJ_$(1) := $(patsubst $(B)/obj/%,$(B)/obj-$(1)/%,$(filter-out $(SANITIZED_EARLY),$(SHIM_OBJ))) $(SANITIZED_EARLY) $(GLIBC_COMPAT)
$(B)/$(1)/libcustream_shim.so: shim/exports.map
$(B)/$(1)/libcustream_shim_dlsym.so: shim/exports_dlsym.map
$(B)/$(1)/libcustream_shim.so $(B)/$(1)/libcustream_shim_dlsym.so: $$(SANITIZED_OBJ_$(1))
	@mkdir -p $$(@D)
	$(SHIM_LINK) $(UNIT_FLAGS_$(1)) -Wl,-z,initfirst -Wl,--wrap=cs_route '-Wl,--auxiliary=$$$$ORIGIN/libreport.so' $$(SANITIZED_RUNTIMES_$(1):%=-Wl,--auxiliary=%) \
	  -Wl,--version-script=$$(filter %.map,$$^) $$(filter-out %.map,$$^) -o $$@
$(B)/$(1)/libreport.so: tests/sanitized/report.c
	@mkdir -p $$(@D)
	$(CC) $(ALL_CFLAGS) '-DREPORTS="$(abspath $(B))/$(1)/reports"' -shared $$< -o $$@
$(B)/$(1)/custream: $(patsubst $(B)/obj/%,$(B)/obj-$(1)/%,$(CUSTREAM_OBJ))
	@mkdir -p $$(@D)
	$(CC) $(UNIT_FLAGS_$(1)) $$^ -o $$@ $(CUSTREAM_LIBS)
# The place of a field, whether or not there is a structure, is looked at before it is read.
$(B)/obj-asan/shim/wrap/wrappers.o: UNIT_FLAGS_asan += -fno-sanitize=null
$(B)/obj-$(1)/tools/custream/run.o: UNIT_FLAGS_$(1) += -DCUSTREAM_LIBDIR='"$(PREFIX)/lib"'
.PHONY: $(1)-products check-$(1)
$(1)-products: $(SANITIZED_MADE:%=$(B)/$(1)/%)
	@ln -sfn $$(addprefix ../,$$(SANITIZED_LINKS)) $(B)/$(1)/
check-$(1): all test-programs
	+$$(MAKE) -s $(1)-products
	BUILD_DIR=$(B)/$(1) $$(PYTEST) tests/cases -n $$(JOBS) --dist worksteal $$(PYTEST_ARGS)
endef
$(eval $(call SANITIZED,asan))
$(eval $(call SANITIZED,tsan))
