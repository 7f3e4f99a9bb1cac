# What tests/cases/test_loading.py runs: programs and libraries that make it hard for who looks symbols up.
LOADING     := $(B)/tests/loading
LOADING_SRC := tests/apps/loading
LOADING_CC   = $(CC) $(APPS_FLAGS) -fPIC
TEST_PROGRAMS += $(addprefix $(LOADING)/,program linked_far linked_emulated linked_late linked_chooses own_syscall libuser.so libfar.so libemulated.so libemulator.so liblate.so libchooses.so)

$(LOADING)/program $(LOADING)/own_syscall: $(LOADING)/%: $(LOADING_SRC)/%.c $(LOADING_SRC)/module.mk
	@mkdir -p $(@D)
	$(LOADING_CC) $(LDFLAGS) $< -o $@ -ldl
$(LOADING)/linked_%: $(LOADING_SRC)/program.c $(LOADING)/lib%.so
	$(LOADING_CC) -DLINKED $(LDFLAGS) $< -o $@ -L$(@D) -l$* '-Wl,-rpath,$$ORIGIN' -Wl,-rpath-link,$(FAKE) -ldl
$(LOADING)/libuser.so: $(LOADING_SRC)/user.c $(LOADING_SRC)/module.mk $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(LOADING_CC) -shared $(LDFLAGS) $< -o $@ $(APPS_DRIVER)
# Its addresses in the file are higher than any that it can have in a process.
$(LOADING)/libfar.so: $(LOADING_SRC)/user.c $(LOADING_SRC)/module.mk $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(LOADING_CC) -shared $(LDFLAGS) $< -o $@ $(APPS_DRIVER) -Wl,-Ttext-segment=0x7f0000000000000
$(LOADING)/libemulator.so: $(LOADING_SRC)/emulator.c $(LOADING_SRC)/module.mk
	@mkdir -p $(@D)
	$(LOADING_CC) -shared $(LDFLAGS) $< -o $@ -Wl,-soname,libemulator.so
$(LOADING)/libemulated.so: $(LOADING_SRC)/user.c $(LOADING)/libemulator.so
	$(LOADING_CC) -shared $(LDFLAGS) $< -o $@ -L$(@D) -lemulator '-Wl,-rpath,$$ORIGIN'
$(LOADING)/liblate.so: $(LOADING_SRC)/opens_late.c $(LOADING_SRC)/module.mk
	@mkdir -p $(@D)
	$(LOADING_CC) -shared $(LDFLAGS) $< -o $@ -ldl
$(LOADING)/libchooses.so: $(LOADING_SRC)/chooses.c $(LOADING_SRC)/module.mk
	@mkdir -p $(@D)
	$(LOADING_CC) -shared $(LDFLAGS) $< -o $@ -Wl,-z,now
