# build/custream: the command. Its own process; of the shim it shares the table of options and nothing else.

CUSTREAM_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tools/custream/*.c) shim/base/options.c shim/base/log.c)

$(B)/obj/tools/custream/run.o: EXTRA_CFLAGS += -DCUSTREAM_LIBDIR='"$(PREFIX)/lib"'

$(B)/custream: $(CUSTREAM_OBJ)
	$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) -o $@ $^ -lcjson -lz -lm

all: $(B)/custream
