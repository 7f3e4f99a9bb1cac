# The simulated GPU: build/fakecuda/libcuda.so.1, the same as a CUDA 12.0 driver in build/fakecuda12.0, and the stand-ins build/fakecuda/libcudart.so.13
# and libcupti.so.13.

FAKE      := $(B)/fakecuda
FAKE12    := $(B)/fakecuda12.0
FAKE_DIR  := tests/fakecuda
FAKE_SRC  := $(wildcard $(FAKE_DIR)/driver/*.c)
FAKE_OBJ  := $(patsubst %.c,$(B)/obj/%.o,$(filter-out %/version.c,$(FAKE_SRC)))
FAKE_RT_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(FAKE_DIR)/cudart/*.c))
FAKE_CUPTI_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(FAKE_DIR)/cupti/*.c))
FAKE_CUPTI_INC := $(FAKE)/cupti_driver.inc $(FAKE)/cupti_runtime.inc $(FAKE)/cupti_results.inc
FAKE_INC  := $(FAKE)/versions.inc $(FAKE)/symbols.inc $(FAKE)/errors.inc
FAKE_TEST := $(patsubst $(FAKE_DIR)/test/%.c,$(B)/tests/fakecuda_%,$(wildcard $(FAKE_DIR)/test/*.c))

all: $(FAKE)/libcuda.so.1 $(FAKE12)/libcuda.so.1 $(FAKE)/libcudart.so.13 $(FAKE)/libcupti.so.13 $(FAKE)/broken/libcupti.so.13

# Lists made from NVIDIA's headers: the declared symbols, which version each is, the error codes. cudaProfiler.h is not in every package of headers.
$(FAKE)/cuda_api.i: $(HEADERS_READY) Makefile
	@mkdir -p $(@D)
	$(CC) -E -P -D__CUDA_API_VERSION_INTERNAL $(CUDA_INC_DIR)/cuda.h -o $@
$(FAKE)/versions.txt: $(FAKE_DIR)/gen/versions.awk $(FAKE)/cuda_api.i $(FAKE_DIR)/module.mk
	(LC_ALL=C awk -f $(filter %.awk %.i,$^) $(CUDA_INC_DIR)/cudaTypedefs.h; \
		echo cuProfilerStart 4000 0 cuProfilerStart; echo cuProfilerStop 4000 0 cuProfilerStop) | \
		LC_ALL=C sort -k1,1 -k3,3n -k2,2n >$@.new && test -s $@.new && mv $@.new $@
$(FAKE)/versions.inc: $(FAKE)/versions.txt
	awk '{print "VERSION(" $$1 ", " $$2 ", " $$3 ", " $$4 ")"}' $< >$@
$(FAKE)/symbols.inc: $(FAKE)/versions.txt
	awk '{print "SYMBOL(" $$4 ")"}' $< | LC_ALL=C sort -u >$@
$(FAKE)/errors.inc: $(FAKE_DIR)/gen/errors.awk $(HEADERS_READY)
	@mkdir -p $(@D)
	LC_ALL=C awk -f $< $(CUDA_INC_DIR)/cuda.h >$@

# What a library exports: all cu* but what came after the version that it plays.
$(FAKE)/exports.map: $(FAKE)/versions.txt $(FAKE_DIR)/module.mk
	echo '{ global: cu[A-Z]*; custream_fakecuda_*; local: *; };' >$@
$(FAKE12)/exports.map: $(FAKE)/versions.txt $(FAKE_DIR)/module.mk
	@mkdir -p $(@D)
	(echo '{ global: custream_fakecuda_*;'; awk '$$2 <= 12000 {print $$4 ";"}' $<; echo 'local: *; };') >$@

$(B)/obj/$(FAKE_DIR)/driver/symbol.o $(B)/obj/$(FAKE_DIR)/driver/fallback.o: EXTRA_CFLAGS = -I$(FAKE)
$(B)/obj/$(FAKE_DIR)/driver/symbol.o $(B)/obj/$(FAKE_DIR)/driver/fallback.o: | $(FAKE_INC)
$(B)/obj/$(FAKE_DIR)/driver/version12.o: $(FAKE_DIR)/driver/version.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DFAKE_VERSION_CAP=12000 -c $< -o $@

FAKE_LINK = $(CC) $(CFLAGS) -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,--version-script=$(filter %.map,$^)

$(FAKE)/libcuda.so.1: $(FAKE_OBJ) $(B)/obj/$(FAKE_DIR)/driver/version.o $(FAKE)/exports.map
	$(FAKE_LINK) -Wl,-soname,libcuda.so.1 -o $@ $(filter %.o,$^) -pthread
	ln -sf libcuda.so.1 $(FAKE)/libcuda.so
$(FAKE12)/libcuda.so.1: $(FAKE_OBJ) $(B)/obj/$(FAKE_DIR)/driver/version12.o $(FAKE12)/exports.map
	$(FAKE_LINK) -Wl,-soname,libcuda.so.1 -o $@ $(filter %.o,$^) -pthread
	ln -sf libcuda.so.1 $(FAKE12)/libcuda.so

$(FAKE)/exports_rt.map: $(FAKE_DIR)/module.mk
	@mkdir -p $(@D)
	echo 'libcudart.so.13 { global: cuda[A-Z]*; __cuda*; local: *; };' >$@
$(FAKE)/libcudart.so.13: $(FAKE_RT_OBJ) $(FAKE)/exports_rt.map
	$(FAKE_LINK) -Wl,-soname,libcudart.so.13 -o $@ $(filter %.o,$^) -ldl
	ln -sf libcudart.so.13 $(FAKE)/libcudart.so

# CUPTI: names and numbers come from its headers. The broken one is a library that loads and has nothing of what it should.
$(FAKE)/cupti_driver.inc: CUPTI_LIST = -v prefix=CUPTI_DRIVER_TRACE_CBID_cu -v cut=CUPTI_DRIVER_TRACE_CBID_
$(FAKE)/cupti_driver.inc: CUPTI_FROM = $(CUPTI_INC)/cupti_driver_cbid.h
$(FAKE)/cupti_runtime.inc: CUPTI_LIST = -v prefix=CUPTI_RUNTIME_TRACE_CBID_cuda -v cut=CUPTI_RUNTIME_TRACE_CBID_
$(FAKE)/cupti_runtime.inc: CUPTI_FROM = $(CUPTI_INC)/cupti_runtime_cbid.h
$(FAKE)/cupti_results.inc: CUPTI_LIST = -v prefix=CUPTI_ -v cut=
$(FAKE)/cupti_results.inc: CUPTI_FROM = $(CUPTI_INC)/cupti_result.h
$(FAKE_CUPTI_INC): $(FAKE_DIR)/gen/cupti.awk $(HEADERS_READY)
	@mkdir -p $(@D)
	LC_ALL=C awk $(CUPTI_LIST) -f $< $(CUPTI_FROM) | LC_ALL=C sort >$@.new && test -s $@.new && mv $@.new $@

$(FAKE_CUPTI_OBJ): EXTRA_CFLAGS = -I$(FAKE) -DCUPTI_LIB
$(B)/obj/$(FAKE_DIR)/cupti/names.o: $(FAKE_CUPTI_INC)
$(FAKE)/exports_cupti.map:
	@mkdir -p $(@D)
	echo '{ global: cupti[A-Z]*; local: *; };' >$@
$(FAKE)/libcupti.so.13: $(FAKE_CUPTI_OBJ) $(FAKE)/exports_cupti.map
	$(FAKE_LINK) -Wl,-soname,libcupti.so.13 -Wl,-z,nodelete -o $@ $(filter %.o,$^) -pthread -ldl
	ln -sf libcupti.so.13 $(FAKE)/libcupti.so
$(FAKE)/broken/libcupti.so.13:
	@mkdir -p $(@D)
	$(CC) -shared -nostdlib -Wl,-soname,libcupti.so.13 -o $@ -x c /dev/null

# The preload library under the virtual clock: the product's objects, file by file, and a clock that asks the driver.
$(B)/virtual/libcustream_shim.so: $(filter-out %/shim/base/clock.o,$(SHIM_OBJ)) $(B)/obj/$(FAKE_DIR)/shim/clock.o $(GLIBC_COMPAT) shim/exports.map
	@mkdir -p $(@D)
	$(SHIM_LINK) -Wl,--wrap=clock_gettime -Wl,--version-script=$(filter %.map,$^) $(filter-out %.map,$^) -o $@
TEST_PROGRAMS += $(B)/virtual/libcustream_shim.so

# Its own tests: programs that link it and run without the shim.
TEST_PROGRAMS += $(FAKE_TEST)
fakecuda-tests: $(FAKE_TEST)
.PHONY: fakecuda-tests
$(B)/tests/fakecuda_%: $(FAKE_DIR)/test/%.c $(wildcard $(FAKE_DIR)/test/*.h) $(FAKE)/libcuda.so.1 $(FAKE)/libcudart.so.13 $(FAKE)/libcupti.so.13
	@mkdir -p $(@D)
	$(CC) $(filter-out -fvisibility=hidden,$(ALL_CFLAGS)) $< -o $@ -L$(FAKE) \
		$(if $(findstring cupti,$*),-lcupti) $(if $(findstring runtime,$*),-lcudart) $(if $(filter-out runtime,$*),-lcuda) -pthread -ldl -lm
