# What reads files of others, under libFuzzer, with the address and undefined-behaviour sanitizers: one program, whose target FUZZ names. clang's, whatever CC is.

FUZZ_TARGETS := policy check report convert recover inspect clocks writer
FUZZ_FLAGS   := -Wno-format-zero-length -O1 -g1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_OBJ     := $(patsubst $(B)/obj/%,$(B)/obj-fuzz/%,$(filter-out %/main.o,$(CUSTREAM_OBJ))) $(B)/obj-fuzz/tests/fuzz/fuzz.o
FUZZ_SECONDS ?= 180

TEST_PROGRAMS += $(B)/tests/fuzz
$(B)/obj-fuzz/tools/custream/run.o: FUZZ_FLAGS += -DCUSTREAM_LIBDIR='"$(PREFIX)/lib"'
$(B)/obj-fuzz/%.o: %.c Makefile tests/fuzz/module.mk $(HEADERS_READY)
	@mkdir -p $(@D)
	clang $(ALL_CFLAGS) $(FUZZ_FLAGS) -MMD -MP -c $< -o $@
$(B)/tests/fuzz: $(FUZZ_OBJ)
	@mkdir -p $(@D)
	clang -fsanitize=fuzzer,address,undefined $^ -o $@ $(CUSTREAM_LIBS)
-include $(shell find $(B)/obj-fuzz -name '*.d' 2>/dev/null)

# Each target for a while. What breaks one is left in the folder build/fuzz, and what is new to the corpus too. FUZZ_SECONDS: of each.
.PHONY: fuzz
fuzz: $(B)/tests/fuzz
	tests/fuzz/fuzz.sh $< $(FUZZ_SECONDS) $(FUZZ_TARGETS)
