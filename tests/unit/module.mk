# Unit tests in C: each file of tests/unit is a program, linked with the shim's own objects, once plain and once with the address and undefined-behaviour
# sanitizers. race_*.c are the exception: built with the thread sanitizer alone. A file named tool_*.c has no tests; the Python cases drive it.

UNIT       := $(B)/tests/unit
UNIT_SRC   := $(filter-out tests/unit/race_%,$(wildcard tests/unit/*.c))
UNIT_RACES := $(wildcard tests/unit/race_*.c)
# Without direct.c and glibc.c: in a program, the sanitizers' functions and those of the tests stand in front.
UNIT_LAYERS := base calls object gpu out match trace audit policy
UNIT_SHIM  := $(filter $(foreach layer,$(UNIT_LAYERS),shim/$(layer)/%.c) shim/process/mode.c,$(filter-out shim/base/direct.c shim/base/glibc.c,$(SHIM_SRC)))
UNIT_LIBS  := $(UNIT)/lib/libversions_gnu.so $(UNIT)/lib/libversions_sysv.so

UNIT_FLAGS_asan := -O0 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
UNIT_FLAGS_tsan := -O0 -g1 -fsanitize=thread $(if $(findstring clang,$(CC)),,-Wno-tsan)

# Each is linked with all of the layers: by gold, where it is, in half of the time.
UNIT_LINKER := $(if $(shell command -v ld.gold),-fuse-ld=gold)

TEST_PROGRAMS += $(UNIT_SRC:tests/unit/%.c=$(UNIT)/plain/%) $(UNIT_SRC:tests/unit/%.c=$(UNIT)/asan/%) $(UNIT_RACES:tests/unit/%.c=$(UNIT)/tsan/%) $(UNIT_LIBS)

$(UNIT)/plain/libshim.a: $(UNIT_SHIM:%.c=$(B)/obj/%.o)
	@mkdir -p $(@D)
	rm -f $@ && ar rcs $@ $^
$(UNIT)/plain/%: $(B)/obj/tests/unit/%.o $(UNIT)/plain/libshim.a
	$(CC) $(CFLAGS) $(UNIT_LINKER) $^ -o $@ -pthread -lm

# One set of objects a sanitizer.
define UNIT_SANITIZED
$(B)/obj-$(1)/%.o: %.c Makefile tests/unit/module.mk $(HEADERS_READY)
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) $$(UNIT_FLAGS_$(1)) $$(UNIT_OWN) -MMD -MP -c $$< -o $$@
$(B)/obj-$(1)/tests/%.o: UNIT_OWN = -O0
$(UNIT)/$(1)/libshim.a: $(UNIT_SHIM:%.c=$(B)/obj-$(1)/%.o)
	@mkdir -p $$(@D)
	rm -f $$@ && ar rcs $$@ $$^
$(UNIT)/$(1)/%: $(B)/obj-$(1)/tests/unit/%.o $(UNIT)/$(1)/libshim.a
	$$(CC) $$(UNIT_FLAGS_$(1)) $(UNIT_LINKER) $$^ -o $$@ -pthread -lm
endef
$(eval $(call UNIT_SANITIZED,asan))
$(eval $(call UNIT_SANITIZED,tsan))
# The API as in libcustream.so, with the simulated driver.
$(UNIT)/tsan/race_api: $(patsubst $(B)/obj/%,$(B)/obj-tsan/%,$(API_OBJ))
# What the command prints reports with; no part of the shim.
UNIT_REPORT := $(addprefix tools/custream/,show.c model/table.c trace/numbers.c trace/texts.c $(addprefix report/,summary.c print_text.c print_running.c print_data.c)) shim/base/json.c shim/base/no_room.c shim/base/verdict.c
$(UNIT)/plain/tool_report: $(UNIT_REPORT:%.c=$(B)/obj/%.o)
$(UNIT)/asan/tool_report: $(UNIT_REPORT:%.c=$(B)/obj-asan/%.o)
.SECONDARY: $(UNIT_SRC:%.c=$(B)/obj/%.o) $(UNIT_SRC:%.c=$(B)/obj-asan/%.o) $(UNIT_RACES:%.c=$(B)/obj-tsan/%.o)
-include $(shell find $(B)/obj-asan $(B)/obj-tsan -name '*.d' 2>/dev/null)

$(UNIT)/lib/libversions_%.so: tests/unit/lib/versions.c tests/unit/lib/versions.map
	@mkdir -p $(@D)
	$(CC) -O1 -fPIC -shared -Wl,--hash-style=$* -Wl,--version-script=tests/unit/lib/versions.map $< -o $@
