# Speed, as ratios from one run, in lines `name value unit` (docs/measurements.md keeps those of a GPU). Never a test.

BENCH       := $(B)/bench
BENCH_CALLS := CUSTREAM_GPU=off CUSTREAM_FAKE_DIRECT=1 LD_LIBRARY_PATH=$(FAKE) LD_PRELOAD=$(abspath $(B))/libcustream_shim.so

$(BENCH)/calls: tests/bench/calls.c $(B)/obj/shim/base/clock.o $(B)/obj/shim/base/realdl.o $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(filter %.c %.o,$^) -o $@ -L$(FAKE) -lcuda -lpthread
$(BENCH)/parts: tests/bench/parts.c $(WRITER_ONE) $(B)/obj/shim/base/glibc.o
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(filter %.c %.o,$^) -o $@ -lpthread
$(BENCH)/load $(BENCH)/report: $(BENCH)/%: tests/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $< -o $@
# The rows of a trace, read by the command's own code.
$(BENCH)/rows: tests/bench/rows.c $(filter-out $(B)/obj/tools/custream/main.o,$(CUSTREAM_OBJ)) $(GLIBC_READY)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(filter %.c %.o,$^) $(GLIBC_FLOOR) -o $@ $(CUSTREAM_LIBS)

# Built with the tests, so that it stays buildable.
TEST_PROGRAMS += $(BENCH)/calls $(BENCH)/parts $(BENCH)/load $(BENCH)/report $(BENCH)/rows

.PHONY: bench bench-run bench-peers
bench:
	+$(MAKE) deps
	+$(MAKE) all $(BENCH)/calls $(BENCH)/parts $(BENCH)/load $(BENCH)/report $(BENCH)/rows
	@$(MAKE) --no-print-directory -s bench-run
bench-run:
	@CUSTREAM_TRACE=off $(BENCH_CALLS) $(BENCH)/calls pass
	@CUSTREAM_TRACE=$(BENCH)/closed.json CUSTREAM_WINDOW=profiler CUSTREAM_LOG=error $(BENCH_CALLS) $(BENCH)/calls closed
	@CUSTREAM_TRACE=off CUSTREAM_PRIORITY=0:-1 $(BENCH_CALLS) $(BENCH)/calls objects
	@CUSTREAM_TRACE=off CUSTREAM_DEFAULT_STREAM=per-thread $(BENCH_CALLS) $(BENCH)/calls steered
	@CUSTREAM_TRACE=$(BENCH)/hooks.json $(BENCH_CALLS) $(BENCH)/calls hooks
	@CUSTREAM_TRACE=$(BENCH)/record.json $(BENCH_CALLS) $(BENCH)/calls record
	@$(BENCH)/parts lookup
	@CUSTREAM_TRACE=$(BENCH)/threads.json $(BENCH_CALLS) $(BENCH)/calls threads
	@$(BENCH)/parts writer $(BENCH)/writer.json
	@$(BENCH)/parts writer $(BENCH)/writer.json.gz
	@CUSTREAM_TRACE=$(BENCH)/launches.json CUSTREAM_TRACE_MAX=16G $(BENCH_CALLS) CUSTREAM_GPU=auto CUSTREAM_FAKE_DIRECT=0 CUSTREAM_FAKE_KERNEL_NS=2000 $(BENCH)/calls writer
	@$(BENCH)/parts writer $(BENCH)/writer.pftrace
	@CUSTREAM_TRACE=$(BENCH)/launches.pftrace CUSTREAM_TRACE_MAX=16G $(BENCH_CALLS) CUSTREAM_GPU=auto CUSTREAM_FAKE_DIRECT=0 CUSTREAM_FAKE_KERNEL_NS=2000 $(BENCH)/calls writer
	@$(BENCH)/report $(B)/custream $(BENCH)/launches.json
	@$(BENCH)/rows $(BENCH)/launches.json
	@$(BENCH)/rows $(BENCH)/launches.pftrace
	@CUSTREAM_TRACE=$(BENCH)/rate.json CUSTREAM_TRACE_MAX=16G $(BENCH_CALLS) $(BENCH)/calls rate
	@tail -c 2000 $(BENCH)/rate.json | sed -n 's/.*"lost_records":\([0-9]*\).*/lost_at_1m \1 records/p'
	@$(BENCH)/load $(abspath $(B))/libcustream_shim.so /bin/true
	@rm -f $(BENCH)/*.json $(BENCH)/*.json.gz $(BENCH)/*.pftrace

# What other tracers take for a call, in the same run. Needs packages that nothing else here needs.
bench-peers: all $(BENCH)/calls
	@CC="$(CC)" tests/bench/peers.sh $(B)
