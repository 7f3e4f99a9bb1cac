# Tests of custream.h: programs whose tests are named by the rows of the table of stream APIs. Each is built twice: linked to libcustream.so, and
# so that it finds the functions by dlsym. threads.c is built with the sanitizers as well. Stands behind shim/, fakecuda/ and unit/module.mk, and
# before tests/module.mk.

API_T      := $(B)/tests/api
API_ROWS   := $(patsubst tests/api/%.c,%,$(wildcard tests/api/rows_*.c))
API_SRC    := $(patsubst $(B)/obj/%.o,%.c,$(API_OBJ))
API_FLAGS   = $(filter-out -fvisibility=hidden,$(ALL_CFLAGS)) -pthread

TEST_PROGRAMS += $(FAKE12)/libcuda.so.1 $(API_ROWS:%=$(API_T)/linked/%) $(API_ROWS:%=$(API_T)/dlopen/%) $(API_T)/abi $(API_T)/functions.txt
TEST_PROGRAMS += $(API_T)/linked/threads $(API_T)/dlopen/threads $(API_T)/asan/threads $(API_T)/tsan/threads

# Lists made from the header, so that none is written by hand.
$(API_T)/header.i: include/custream.h tests/api/module.mk
	@mkdir -p $(@D)
	$(CC) -E -P $< -o $@
$(API_T)/functions.txt: tests/api/header.awk $(API_T)/header.i
	awk -v want=functions -f $^ >$@.new && test -s $@.new && mv $@.new $@
$(API_T)/dynamic.inc: $(API_T)/functions.txt
	sed 's/.*/#define &(...) API_CALL(&, __VA_ARGS__)/' $< >$@
$(API_T)/abi.inc: tests/api/header.awk $(API_T)/header.i
	awk -v want=layout -f $^ >$@.new && test -s $@.new && mv $@.new $@
$(API_T)/abi: tests/api/abi.c $(API_T)/abi.inc
	$(CC) $(API_FLAGS) -I$(API_T) $(LDFLAGS) $< -o $@

API_HEADERS := tests/api/rows.h tests/api/rows_event.h tests/api/dynamic.h include/custream.h tests/api/module.mk

API_DYNAMIC := -DAPI_DLOPEN -Itests/api -I$(API_T)

# What all of a folder share is compiled once.
$(API_T)/linked/%.o: tests/api/%.c $(API_HEADERS) | $(HEADERS_READY)
	@mkdir -p $(@D)
	$(CC) $(API_FLAGS) -c $< -o $@
$(API_T)/dlopen/%.o: tests/api/%.c $(API_HEADERS) $(API_T)/dynamic.inc | $(HEADERS_READY)
	@mkdir -p $(@D)
	$(CC) $(API_FLAGS) $(API_DYNAMIC) -c $< -o $@
$(API_T)/linked/%: tests/api/%.c $(API_T)/linked/gpu.o $(API_HEADERS) $(B)/libcustream.so $(FAKE)/libcuda.so.1
	$(CC) $(API_FLAGS) $(LDFLAGS) $(filter %.c %.o,$^) -o $@ -L$(B) -lcustream -L$(FAKE) -lcuda
$(API_T)/dlopen/%: tests/api/%.c $(API_T)/dlopen/gpu.o $(API_HEADERS) $(API_T)/dynamic.inc $(FAKE)/libcuda.so.1
	$(CC) $(API_FLAGS) $(API_DYNAMIC) $(LDFLAGS) $(filter %.c %.o,$^) -o $@ -L$(FAKE) -lcuda -ldl
$(API_ROWS:%=$(API_T)/linked/%): $(API_T)/linked/rows.o
$(API_ROWS:%=$(API_T)/dlopen/%): $(API_T)/dlopen/rows.o

# The library's own sources, built with a sanitizer and linked into the program; the rules for the objects are those of the unit tests.
$(API_T)/asan/threads $(API_T)/tsan/threads: $(API_T)/%/threads: $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(UNIT_FLAGS_$*) $(filter %.o,$^) -o $@ -L$(FAKE) -lcuda -pthread -ldl
$(foreach s,asan tsan,$(eval $(API_T)/$(s)/threads: $(patsubst %.c,$(B)/obj-$(s)/%.o,$(API_SRC) tests/api/threads.c tests/api/gpu.c)))
