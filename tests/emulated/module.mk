# The test cases with programs and preload libraries for aarch64, on this machine (docs/tests.md): `make check-aarch64`. QEMU runs each program. They have a build
# folder of their own, in which each program is a small one of this machine that becomes QEMU (start.c). The command is this machine's: it reads traces and talks to
# processes, and neither knows what machine made them.

EMULATED_LIBS := libcustream_shim.so libcustream_shim_dlsym.so libcustream.so.0 libcustream.so
EMULATED      := $(ARM)/qemu

.PHONY: check-aarch64 emulated emulated-programs
# By the make that builds for aarch64. Not there: what has a sanitizer, whose tables have no place under QEMU; the readers of this machine's command; a program that
# is about the x86 time-stamp counter.
EMULATED_NOT := %/fuzz %/policy-doc %/stamps %_asan %_tsan $(foreach s,asan tsan,$(UNIT)/$(s)/% $(API_T)/$(s)/%)
emulated-programs: $(EMULATED_LIBS:%=$(B)/%) $(FAKE12)/libcuda.so.1 $(FAKE)/broken/libcupti.so.13 $(filter-out $(EMULATED_NOT),$(TEST_PROGRAMS))
emulated: $(B)/custream $(ARM)/sysroot/owners
	+@$(MAKE) -s B=$(ARM) CC="aarch64-linux-gnu-gcc -idirafter /usr/include" emulated-programs
	@tests/emulated/folder.sh $(abspath $(B) $(ARM) $(EMULATED))
check-aarch64: emulated
	BUILD_DIR=$(EMULATED) $(PYTEST) tests/cases -n $(JOBS) --dist worksteal $(PYTEST_ARGS)
