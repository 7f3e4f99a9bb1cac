# What reads files of others, under libFuzzer, with the address and undefined-behaviour sanitizers: one program, whose target FUZZ names. clang's, whatever CC is.
# It is built twice: build/tests/fuzz for the short search of check, not optimized, since compiling takes longer than that search; build/fuzz/program for `make fuzz`.

FUZZ_TARGETS := policy check report convert recover inspect clocks writer
FUZZ_FLAGS   := -Wno-format-zero-length -g1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_SECONDS ?= 180
TEST_PROGRAMS += $(B)/tests/fuzz

# The command without what no target reaches.
FUZZ_OBJ := $(filter-out $(foreach part,open live diff export,$(B)/obj/tools/custream/$(part)/%) $(addprefix $(B)/obj/tools/custream/,main.o run.o ctl.o complete.o module.o),$(CUSTREAM_OBJ))

# PROGRAM, the folder of its objects, how they are optimized.
define FUZZ_PROGRAM
$(2)/%.o: %.c Makefile tests/fuzz/module.mk $(HEADERS_READY) | $(PACKAGES_READY)
	@mkdir -p $$(@D)
	clang $$(ALL_CFLAGS) $$(FUZZ_FLAGS) $(3) -MMD -MP -c $$< -o $$@
$(1): $(FUZZ_OBJ:$(B)/obj/%=$(2)/%) $(2)/tests/fuzz/fuzz.o
	@mkdir -p $$(@D)
	clang -fsanitize=fuzzer,address,undefined $$^ -o $$@ $(CUSTREAM_LIBS)
-include $(shell find $(2) -name '*.d' 2>/dev/null)
endef
$(eval $(call FUZZ_PROGRAM,$(B)/tests/fuzz,$(B)/obj-fuzz,-O0))
$(eval $(call FUZZ_PROGRAM,$(B)/fuzz/program,$(B)/obj-fuzz-O1,-O1))

# Each target for a while. What breaks one is left in the folder build/fuzz, and what is new to the corpus too. FUZZ_SECONDS: of each.
.PHONY: fuzz
fuzz: $(B)/fuzz/program
	tests/fuzz/fuzz.sh $< $(FUZZ_SECONDS) $(FUZZ_TARGETS)
