# Installing what is missing, and the tests. `make check` is everything that needs no GPU; .ci/run calls it.
#
# Programs that the test cases run are built by `make test-programs`, before pytest starts; a folder of tests adds its own to TEST_PROGRAMS.

# Python keeps what it has compiled, in the build folder alone: processes that rewrite all assertions take five seconds each.
PYTEST       := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/$(B)/pycache $(VENV)/bin/python -m pytest -c tests/pytest.ini
PYTEST_ARGS  ?=
# More than two cores, since some wait; not many more, since each of them loads all tests (measured: docs/measurements.md).
PYTEST_JOBS  ?= 6
TEST_PROGRAMS += $(B)/tests/dump_calls $(B)/tests/dump_runtime $(B)/tests/siblings

# The tests' own programs are not optimized: that compiles in a quarter of the time. The simulated GPU is, a little. CFLAGS on the command line of make take the place
# of these. `private` keeps them from what a program is linked with.
TEST_CFLAGS := -O0 $(DEBUG)
$(B)/obj/tests/%.o: CFLAGS = $(TEST_CFLAGS)
$(B)/obj/tests/fakecuda/%.o: CFLAGS = -O1 $(DEBUG)
$(B)/tests/%: private CFLAGS = $(TEST_CFLAGS)

# Recipes are steps of their own make: what deps installs (headers, compilers) changes what the next step's makefiles see.
deps deps-build deps-packages deps-python:
	@B=$(B) HEADERS=$(HEADERS) PYTHON=$(PYTHON) tools/deps.sh $(patsubst deps-%,%,$(filter-out deps,$@))

# What only the tests need is installed while GCC compiles, and what other compilers make waits for that (PACKAGES_READY). Of what debuggers are told, lines are
# enough: that takes a sixth less to compile, and the code is the same.
check: export DEBUG := $(if $(filter file,$(origin DEBUG)),-g1,$(DEBUG))
check:
	+$(MAKE) deps-build
	+$(MAKE) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell expr $$(nproc) + 2)) PACKAGES_READY=deps-packages deps-packages deps-python wheel-parts other-compilers compiled-tests all test-programs
	+$(MAKE) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc)) -s wheel wheel-aarch64 deb
	$(PYTEST) tests/cases -n $(PYTEST_JOBS) --dist worksteal $(PYTEST_ARGS)

# The product with wrappers as builds for debugging, sanitizers and coverage have them, where no call becomes a jump: build/tests/O0, build/tests/O1.
WRAPPERS_O0 := -O0
WRAPPERS_O1 := -O1 -fno-optimize-sibling-calls
define SLOW_WRAPPERS
$(B)/tests/$(1)/wrap/wrappers.o: shim/wrap/wrappers.c Makefile tests/module.mk $(HEADERS_READY)
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) $$(WRAPPERS_$(1)) -MMD -MP -c $$< -o $$@
$(B)/tests/$(1)/libcustream_shim.so: $(B)/tests/$(1)/wrap/wrappers.o $(filter-out %/wrap/wrappers.o,$(PRODUCT_OBJ)) $(GLIBC_COMPAT) shim/exports.map
	$$(SHIM_LINK) -Wl,--version-script=shim/exports.map $$(filter-out %.map,$$^) -o $$@
TEST_PROGRAMS += $(B)/tests/$(1)/libcustream_shim.so
-include $(B)/tests/$(1)/wrap/wrappers.d
endef
$(eval $(call SLOW_WRAPPERS,O0))
$(eval $(call SLOW_WRAPPERS,O1))

.PHONY: deps-build deps-packages deps-python test-programs compiled-tests other-compilers clang-products aarch64-products check-layers print-cuda-include mutants
test-programs: $(TEST_PROGRAMS)
$(TEST_PROGRAMS): | $(HEADERS_READY)

# The Python files of the tests and Perfetto's trace processor, beside what else is compiled. The command says which cases of its options there are.
compiled-tests: deps-python $(B)/custream
	@mkdir -p $(B)
	@$(PYTEST) tests/cases --collect-only > $(B)/collected.log || { cat $(B)/collected.log; exit 1; }
	@$(VENV)/bin/python -c 'from tests.perfetto.engine import Engine; Engine().close()'

# Both tables as JSON lines, and a program that makes the first one's calls.
$(B)/tests/dump_calls $(B)/tests/dump_runtime $(B)/tests/siblings: $(B)/tests/%: $(B)/obj/tests/%.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) -o $@ $^ -ldl -pthread

# By other compilers, each in a folder of its own: the products, and for aarch64 the programs that run under qemu. Before pytest, whose tests have a time limit.
# Nobody debugs these, and a wheel is stripped. Clang's is optimized a little: that calls other functions of the C library.
PRODUCTS := libcustream_shim.so libcustream_shim_dlsym.so
other-compilers: clang-products aarch64-products
clang-products aarch64-products: | $(PACKAGES_READY)
aarch64-products: | $(B)/microhttpd/copyright
clang-products:
	+@$(MAKE) -s B=build/clang CC=clang CFLAGS=-O1 $(addprefix build/clang/,$(PRODUCTS))
aarch64-products:
	+@$(MAKE) -s B=build/aarch64 CC="aarch64-linux-gnu-gcc -idirafter /usr/include" DEBUG= \
	  $(addprefix build/aarch64/,microhttpd/copyright $(PRODUCTS) libcustream.so.0 fakecuda/libcuda.so.1) dlsym-programs runtime-programs

check-layers:
	dev/check-layers

# Small changes of the code, each against the tests that reach it: docs/mutants.md. Not a part of check. MUTANTS_ARGS: see dev/mutants/mutants --help.
SEED  ?= 1
COUNT ?= 500
JOBS  ?= $(shell nproc)
mutants: all test-programs $(B)/mutants-venv/stamp
	$(B)/mutants-venv/bin/python dev/mutants/mutants --seed $(SEED) --count $(COUNT) --jobs $(JOBS) $(MUTANTS_ARGS) $(patsubst %,'%',$(FILES))
$(B)/mutants-venv/stamp: dev/mutants/requirements.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --requirement $<
	touch $@

# Each system call, driver call and CUPTI call of the library fails once, in each mode: docs/tests.md. check runs a fixed sample. FAULTS_ARGS: --mode, --cross, --jobs.
.PHONY: faults
faults: all test-programs
	$(VENV)/bin/python -m tests.faults $(FAULTS_ARGS)

# What every command writes about the traces of tests/golden, as it is now: docs/tests.md. Look at what has changed before you commit it.
.PHONY: bless
bless: all
	$(VENV)/bin/python -m tests.golden.golden

# C as .clang-format wants it.
.PHONY: format
format:
	$(VENV)/bin/clang-format -i $$(git ls-files 'tools/*.[ch]' 'dev/*.[ch]' 'tests/*.[ch]')

# Memory, threads and descriptors of a program that runs for long: docs/tests.md. SOAK_ARGS: --calls 1e9, --sizes, --out FOLDER.
.PHONY: soak
SOAK_SECONDS ?= 480
soak: all test-programs
	$(VENV)/bin/python -m tests.soak --seconds $(SOAK_SECONDS) $(SOAK_ARGS)

# A process is killed that often in each form of trace, at full speed: docs/recover.md. check does a few of them.
.PHONY: kills
kills: all test-programs
	KILLS=$(or $(KILLS),200) $(VENV)/bin/python -m pytest -q -c tests/pytest.ini tests/cases/test_rings.py -k kills -n $(JOBS)

# The questions of `custream fleet` on Apache Spark, patient with a busy machine, whose executors are processes of their own, against DuckDB's answers: docs/tests.md. Not a part of check. Needs
# Java. The first time it gets Spark (434 MB).
.PHONY: check-spark
SPARK_MASTER ?= local-cluster[2,1,1024]
SPARK_RANKS  ?= 64
check-spark: $(B)/spark-venv/stamp
	@command -v java >/dev/null || { echo "custream: Spark needs Java: apt-get install openjdk-17-jre-headless" >&2; exit 1; }
	PYSPARK_SUBMIT_ARGS='--conf spark.sql.shuffle.partitions=4 --conf spark.worker.timeout=900 --conf spark.network.timeout=900s --conf spark.executor.heartbeatInterval=60s pyspark-shell' SPARK_MASTER='$(SPARK_MASTER)' SPARK_RANKS=$(SPARK_RANKS) $(B)/spark-venv/bin/python -m pytest -c tests/pytest.ini tests/spark
$(B)/spark-venv/stamp: tests/spark/requirements.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --requirement $<
	@touch $@

print-cuda-include:
	@echo $(CUDA_INC_DIR)
