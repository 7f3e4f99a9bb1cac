# Installing what is missing, and the tests. `make check` is everything that needs no GPU; .ci/run calls it.
#
# Programs that the test cases run are built by `make test-programs`, before pytest starts; a folder of tests adds its own to TEST_PROGRAMS.

PYTEST       := $(VENV)/bin/python -m pytest -c tests/pytest.ini
PYTEST_ARGS  ?=
PYTEST_JOBS  ?= 2
TEST_PROGRAMS += $(B)/tests/dump_calls $(B)/tests/dump_runtime $(B)/tests/siblings

# Recipes are steps of their own make: what deps installs (headers, compilers) changes what the next step's makefiles see.
deps:
	@B=$(B) PYTHON=$(PYTHON) CUDA_HOME=$(CUDA_HOME) CUDA_INC=$(filter-out $(B)/%,$(CUDA_INC)) tools/deps.sh

check:
	+$(MAKE) deps
	+$(MAKE) all test-programs
	$(PYTEST) tests/cases -n $(PYTEST_JOBS) --dist loadfile $(PYTEST_ARGS)

.PHONY: test-programs check-layers print-cuda-include
test-programs: $(TEST_PROGRAMS)

# Both tables as JSON lines, and a program that makes the first one's calls.
$(B)/tests/dump_calls $(B)/tests/dump_runtime $(B)/tests/siblings: $(B)/tests/%: $(B)/obj/tests/%.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) -o $@ $^ -ldl -pthread

check-layers:
	tools/check-layers

print-cuda-include:
	@echo $(CUDA_INC_DIR)
