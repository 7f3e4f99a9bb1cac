# The programs that the cases run. Each is one C file; those in APPS_LINKED are built a second time, linked to the driver, as NAME_linked.

APPS_DIR    := tests/apps
APPS_LINKED := timeline race keeps leaks asks
APPS_PLAIN  := $(filter-out asks nvtx_module changes maker runtime runtime_user runtime_deep keeps leaks other_preload front_preload in_constructor null_stream held held_library no_threads scarce interrupts faults graph_copies late_graph crowd slow_cupti hangs,$(patsubst $(APPS_DIR)/%.c,%,$(wildcard $(APPS_DIR)/*.c)))
APPS        := $(patsubst %,$(B)/tests/%,$(APPS_PLAIN) keeps leaks null_stream graph_copies late_graph crowd timeline_linked race_linked asks_linked)
APPS        += $(B)/tests/profiled_linked
TEST_PROGRAMS += $(APPS) $(B)/tests/libmaker.so $(B)/tests/libnvtx_module.so

APPS_FLAGS  = $(filter-out -fvisibility=hidden,$(ALL_CFLAGS)) -D_GNU_SOURCE -pthread
APPS_DRIVER = -L$(FAKE) -lcuda

$(APPS): $(APPS_DIR)/app.h $(APPS_DIR)/module.mk
$(patsubst %,$(B)/tests/%,$(APPS_PLAIN)): $(B)/tests/%: $(APPS_DIR)/%.c
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) $(LDFLAGS) $< -o $@ -ldl $(APPS_LIBS)
$(B)/tests/script: $(APPS_DIR)/script_clock.h tests/fakecuda/driver/clock.h
$(B)/tests/floats: APPS_LIBS = -lm
# Linked to CUPTI alone, as a profiler is.
$(B)/tests/profiled_linked: $(APPS_DIR)/profiled.c $(FAKE)/libcuda.so.1 $(FAKE)/libcupti.so.13
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -DAPP_CUPTI $(LDFLAGS) $< -o $@ -L$(FAKE) -lcupti -ldl
$(B)/tests/%_linked: $(APPS_DIR)/%.c $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -DAPP_LINKED $(LDFLAGS) $< -o $@ $(APPS_DRIVER) -ldl
$(B)/tests/libmaker.so: $(APPS_DIR)/maker.c $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -shared $(LDFLAGS) $< -o $@ $(APPS_DRIVER)
# A module with a copy of NVTX of its own.
$(B)/tests/libnvtx_module.so: $(APPS_DIR)/nvtx_module.c $(APPS_DIR)/module.mk
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -shared $(LDFLAGS) $< -o $@ -ldl
# These run on a real GPU too, so they are linked as programs are.
$(B)/tests/null_stream $(B)/tests/graph_copies $(B)/tests/late_graph $(B)/tests/crowd: $(B)/tests/%: $(APPS_DIR)/%.c $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) $(LDFLAGS) $< -o $@ $(APPS_DRIVER)
# Programs that plant what a report must find.
PLANTED_SRC := $(wildcard $(APPS_DIR)/planted/*.c)
TEST_PROGRAMS += $(B)/tests/planted
$(B)/tests/planted: $(PLANTED_SRC) $(APPS_DIR)/planted/planted.h $(APPS_DIR)/planted/device.h $(APPS_DIR)/module.mk $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) $(LDFLAGS) $(PLANTED_SRC) -o $@ $(APPS_DRIVER)
# Programs that hang, with the device of those.
HANGS_SRC := $(APPS_DIR)/hangs.c $(APPS_DIR)/planted/device.c $(APPS_DIR)/planted/measure.c
TEST_PROGRAMS += $(B)/tests/hangs
$(B)/tests/hangs: $(HANGS_SRC) $(APPS_DIR)/planted/planted.h $(APPS_DIR)/planted/device.h $(APPS_DIR)/module.mk $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) $(LDFLAGS) $(HANGS_SRC) -o $@ $(APPS_DRIVER)
# A program that uses the library: its folder is where the program is.
$(B)/tests/keeps $(B)/tests/leaks: $(B)/tests/%: $(APPS_DIR)/%.c $(B)/tests/libmaker.so
	$(CC) $(APPS_FLAGS) -DAPP_LINKED $(LDFLAGS) $< -o $@ -L$(B)/tests -lmaker '-Wl,-rpath,$$ORIGIN' $(APPS_DRIVER) -ldl
# Preloaded in front of the shim, or behind it; opened by a program.
TEST_PROGRAMS += $(B)/tests/libfront_preload.so $(B)/tests/libother_preload.so $(B)/tests/libin_constructor.so $(B)/tests/libscarce.so $(B)/tests/libinterrupts.so $(B)/tests/libfaults.so $(B)/tests/libchanges.so $(B)/tests/burst_asan $(B)/tests/burst_tsan $(B)/tests/timeline_tsan
$(B)/tests/libfront_preload.so $(B)/tests/libother_preload.so $(B)/tests/libin_constructor.so $(B)/tests/libscarce.so $(B)/tests/libinterrupts.so $(B)/tests/libfaults.so $(B)/tests/libchanges.so: $(B)/tests/lib%.so: $(APPS_DIR)/%.c $(APPS_DIR)/app.h $(APPS_DIR)/module.mk
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -shared $(LDFLAGS) $< -o $@ -ldl
# What runs while the loader's lock is held: bound at start to all that it calls.
TEST_PROGRAMS += $(B)/tests/libheld.so $(B)/tests/held $(B)/tests/held_siblings
HELD = $(CC) $(APPS_FLAGS) -DAPP_LINKED -Wl,-z,now $(LDFLAGS) $< -o $@
$(B)/tests/libheld.so: $(APPS_DIR)/held_library.c
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -shared $(LDFLAGS) $< -o $@
$(B)/tests/held: $(APPS_DIR)/held.c $(APPS_DIR)/held.h $(APPS_DIR)/app.h $(FAKE)/libcuda.so.1 $(FAKE)/libcudart.so.13 $(FAKE)/libcupti.so.13
	@mkdir -p $(@D)
	$(HELD) $(APPS_DRIVER) -lcudart -lcupti -ldl
$(B)/tests/held_siblings: tests/siblings.c $(APPS_DIR)/held.h $(APPS_DIR)/app.h $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(HELD) $(APPS_DRIVER) -ldl
# Static thread-local storage that leaves next to nothing of a stack of 512 KiB; a preload behind the shim that keeps it from making threads.
TEST_PROGRAMS += $(B)/tests/bigtls_500k $(B)/tests/libno_threads.so
$(B)/tests/bigtls_500k: $(APPS_DIR)/bigtls.c $(APPS_DIR)/app.h
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -DBIGTLS=500*1024 $(LDFLAGS) $< -o $@ -ldl
$(B)/tests/libno_threads.so: $(APPS_DIR)/no_threads.c
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -shared $(LDFLAGS) $< -o $@ -ldl
TEST_PROGRAMS += $(B)/tests/libslow_cupti.so $(B)/tests/libstuck_cupti.so
$(B)/tests/libstuck_cupti.so: APPS_FLAGS += -DSTUCK
$(B)/tests/libslow_cupti.so $(B)/tests/libstuck_cupti.so: $(APPS_DIR)/slow_cupti.c $(FAKE)/libcupti.so.13
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -shared -Wl,--no-as-needed $(LDFLAGS) $< -o $@ -L$(FAKE) -lcupti
# A program with a sanitizer in it, which stands in front of the C library.
$(B)/tests/burst_asan: SANITIZER = address
$(B)/tests/burst_tsan $(B)/tests/timeline_tsan: SANITIZER = thread
$(B)/tests/burst_asan $(B)/tests/burst_tsan: $(APPS_DIR)/burst.c
$(B)/tests/timeline_tsan: $(APPS_DIR)/timeline.c
$(B)/tests/burst_asan $(B)/tests/burst_tsan $(B)/tests/timeline_tsan: $(APPS_DIR)/app.h $(APPS_DIR)/module.mk
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -fsanitize=$(SANITIZER) $(LDFLAGS) $(filter %.c,$^) -o $@ -ldl
# Programs of the runtime. Beside the simulated one, copies of it: of another name, as Python's packages have them, and of CUDA 12. Both are where the
# libraries are that are linked to them; libruntime_user.so is linked to the one that others have too.
RT_COPIES := $(B)/tests/copies/libcudart-0123abcd.so.13 $(B)/tests/copies/libcudart.so.12
# libruntime_deep.so opens and closes libraries for a program.
RT_USERS  := $(B)/tests/libruntime_deep.so $(B)/tests/libruntime_user.so $(B)/tests/copies/libruntime_user_own.so $(B)/tests/copies/libruntime_user_12.so
TEST_PROGRAMS += $(B)/tests/runtime $(B)/tests/runtime_static $(RT_COPIES) $(RT_USERS)
# The last call of their functions is a jump, which the compiler makes only where it optimizes.
$(RT_USERS): private CFLAGS = -O2 $(DEBUG)
.PHONY: runtime-programs
runtime-programs: $(B)/tests/runtime $(B)/tests/runtime_copies $(B)/tests/runtime_moves $(RT_COPIES) $(RT_USERS)
$(RT_COPIES): $(FAKE_RT_OBJ) $(APPS_DIR)/module.mk
	@mkdir -p $(@D)
	echo 'libcudart.so.$(if $(findstring so.12,$@),12,13) { global: cuda[A-Z]*; __cuda*; local: *; };' >$@.map
	$(CC) $(CFLAGS) -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,--version-script=$@.map -Wl,-soname,$(notdir $@) -o $@ $(FAKE_RT_OBJ) -ldl
$(B)/tests/runtime: $(APPS_DIR)/runtime.c $(FAKE)/libcudart.so.13 $(APPS_DIR)/module.mk
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) $(LDFLAGS) $< -o $@ -L$(FAKE) -lcudart -ldl
# The same with the runtime in the program.
$(B)/tests/runtime_static: $(APPS_DIR)/runtime.c $(FAKE_RT_OBJ) $(APPS_DIR)/module.mk
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) $(LDFLAGS) $< $(FAKE_RT_OBJ) -o $@ -ldl -lpthread
$(B)/tests/libruntime_user.so: $(APPS_DIR)/runtime_user.c $(FAKE)/libcudart.so.13
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -shared -Wl,-z,lazy $(LDFLAGS) $< -o $@ -L$(FAKE) -lcudart
$(B)/tests/libruntime_deep.so: $(APPS_DIR)/runtime_deep.c $(APPS_DIR)/module.mk
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -shared $(LDFLAGS) $< -o $@ -ldl
$(B)/tests/copies/libruntime_user_own.so: $(APPS_DIR)/runtime_user.c $(B)/tests/copies/libcudart-0123abcd.so.13
	$(CC) $(APPS_FLAGS) -DUSER_TAIL=own_tail -shared -Wl,-soname,$(@F) -Wl,-z,lazy $(LDFLAGS) $< -o $@ '-Wl,-rpath,$$ORIGIN' $(@D)/libcudart-0123abcd.so.13
$(B)/tests/copies/libruntime_user_12.so: $(APPS_DIR)/runtime_user.c $(B)/tests/copies/libcudart.so.12 $(B)/tests/copies/libruntime_user_own.so
	$(CC) $(APPS_FLAGS) -DUSER_CALLS=own_tail -shared -Wl,-z,lazy $(LDFLAGS) $< -o $@ '-Wl,-rpath,$$ORIGIN' $(@D)/libcudart.so.12 $(@D)/libruntime_user_own.so
