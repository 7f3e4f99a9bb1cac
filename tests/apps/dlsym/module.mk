# Programs and libraries of the look-up tests, each at -O0 and -O2: tests/cases/test_dlsym.py runs them with and without the shim.
#
# liblocal.so has a dependency of its own, libdep.so, that defines what it asks for; libbehind.so is preloaded behind the shim.

DLSYM     := $(B)/tests/dlsym
DLSYM_SRC := tests/apps/dlsym
DLSYM_NAMES := program data threads getproc libdep.so liblocal.so libbehind.so libfront.so libload.so libcupti.so.99
DLSYM_ALL := $(foreach o,O0 O2,$(addprefix $(DLSYM)/$(o)/,$(DLSYM_NAMES)))
TEST_PROGRAMS += $(DLSYM_ALL)
DLSYM_CC   = $(CC) -std=gnu11 $(WARN) -g -fPIC -pthread

define DLSYM_AT
$(DLSYM)/$(1)/program: $(DLSYM_SRC)/program.c $(DLSYM_SRC)/ask.h
	@mkdir -p $$(@D)
	$$(DLSYM_CC) -$(1) $$< -o $$@ -ldl
$(DLSYM)/$(1)/data: $(DLSYM_SRC)/program.c $(DLSYM_SRC)/ask.h
	@mkdir -p $$(@D)
	$$(DLSYM_CC) -$(1) -DDEFINES_DATA -rdynamic $$< -o $$@ -ldl
$(DLSYM)/$(1)/threads $(DLSYM)/$(1)/getproc: $(DLSYM)/$(1)/%: $(DLSYM_SRC)/%.c tests/gpu/own_entry.h
	@mkdir -p $$(@D)
	$$(DLSYM_CC) -$(1) $$< -o $$@ -ldl
$(DLSYM)/$(1)/libdep.so: $(DLSYM_SRC)/library.c $(DLSYM_SRC)/ask.h
	@mkdir -p $$(@D)
	$$(DLSYM_CC) -$(1) -shared -DWHO=dep -DDEFINES $$< -o $$@ -Wl,-soname,libdep.so
$(DLSYM)/$(1)/liblocal.so: $(DLSYM_SRC)/library.c $(DLSYM)/$(1)/libdep.so
	$$(DLSYM_CC) -$(1) -shared -DWHO=local $$< -o $$@ -Wl,--no-as-needed $(DLSYM)/$(1)/libdep.so -Wl,-rpath,'$$$$ORIGIN'
$(DLSYM)/$(1)/libbehind.so: $(DLSYM_SRC)/library.c $(DLSYM_SRC)/ask.h
	@mkdir -p $$(@D)
	$$(DLSYM_CC) -$(1) -shared -DWHO=behind $$< -o $$@
$(DLSYM)/$(1)/libfront.so: $(DLSYM_SRC)/library.c $(DLSYM_SRC)/ask.h
	@mkdir -p $$(@D)
	$$(DLSYM_CC) -$(1) -shared -DWHO=front $$< -o $$@
$(DLSYM)/$(1)/libload.so: $(DLSYM_SRC)/library.c $(DLSYM_SRC)/ask.h
	@mkdir -p $$(@D)
	$$(DLSYM_CC) -$(1) -shared -DWHO=load -DAT_LOAD $$< -o $$@
$(DLSYM)/$(1)/libcupti.so.99: $(DLSYM_SRC)/library.c $(DLSYM_SRC)/ask.h
	@mkdir -p $$(@D)
	$$(DLSYM_CC) -$(1) -shared -DWHO=cupti $$< -o $$@
endef
$(eval $(call DLSYM_AT,O0))
$(eval $(call DLSYM_AT,O2))

# For tests/cases/test_product.py: what a process had at its end, and a program that no preload reaches.
$(DLSYM)/libprobe.so: $(DLSYM_SRC)/probe.c
	@mkdir -p $(@D)
	$(DLSYM_CC) -O2 -shared $< -o $@
$(DLSYM)/static: $(DLSYM_SRC)/static.c
	@mkdir -p $(@D)
	$(DLSYM_CC) -O2 -static $< -o $@
TEST_PROGRAMS += $(DLSYM)/libprobe.so $(DLSYM)/static

.PHONY: dlsym-programs
dlsym-programs: $(DLSYM_ALL)
