# build/custream: the command, a process of its own. It shares with the shim only the table of
# options and the code that reads policies.

POLICY_READER := $(addprefix shim/policy/,file.c keys.c reading.c rules_check.c rules_read.c settle.c syntax.c) \
                 $(addprefix shim/base/,glob.c json.c log.c no_room.c options.c plain.c settings.c verdict.c)
POLICY_OBJ    := $(patsubst %.c,$(B)/obj/%.o,$(POLICY_READER) tools/custream/cjson.c)
CUSTREAM_OBJ  := $(sort $(patsubst %.c,$(B)/obj/%.o,$(wildcard tools/custream/*.c tools/custream/*/*.c) \
                 shim/base/claim.c shim/base/cut.c shim/base/loss.c shim/base/owner.c shim/base/perfetto.c shim/base/perfetto_event.c shim/base/perfetto_track.c shim/base/unpack.c shim/calls/calls.c shim/calls/runtime.c) $(POLICY_OBJ))

# The command contains the page of the findings (explain.c).
$(B)/obj/tools/custream/explain.o: docs/findings.md

$(B)/obj/tools/custream/run.o: EXTRA_CFLAGS += -DCUSTREAM_LIBDIR='"$(PREFIX)/lib"'

# The wheel links these libraries too (tools/wheel.sh).
CUSTREAM_LIBS := -lcjson -lelf -lz -lm
$(B)/custream: $(CUSTREAM_OBJ) $(GLIBC_READY)
	$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) -o $@ $(CUSTREAM_OBJ) $(GLIBC_FLOOR) $(CUSTREAM_LIBS)

# The manual page, from the command's own table.
PAGES := $(B)/pages/custream.1
$(PAGES): $(B)/custream tools/pages/pages tools/pages/custream.1.in
	@mkdir -p $(@D)
	$(PYTHON) tools/pages/pages $< > $@.new
	@mv $@.new $@

all: $(B)/custream $(PAGES)

# docs/policy.md, from the tables that policies are read by.
$(B)/policy-doc: $(B)/obj/dev/policy-doc/policy_doc.o $(POLICY_OBJ)
	$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) -o $@ $^ -lcjson

TEST_PROGRAMS += $(B)/policy-doc

.PHONY: docs
docs: $(B)/policy-doc
	$< docs/policy.md > $(B)/policy.md
	mv $(B)/policy.md docs/policy.md
	$(PYTHON) dev/api-doc/api-doc include/custream.h docs/api.md > $(B)/api.md
	mv $(B)/api.md docs/api.md
