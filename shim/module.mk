# The shim: two preload libraries from the same objects. The second exports only dlsym, for programs that define cuInit and friends as data.

SHIM_DIRS := base calls object gpu out match trace audit policy process wrap api
SHIM_SRC  := $(foreach d,$(SHIM_DIRS),$(wildcard shim/$(d)/*.c shim/$(d)/*.S))
SHIM_OBJ  := $(patsubst %,$(B)/obj/%.o,$(basename $(SHIM_SRC)))
# One library without this mark turns the shadow stack off for its whole process. The C library's own first and last objects may have none; nothing of ours
# returns but to where it was called from.
SHIM_FLOW = $(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),-Wl$(COMMA)-z$(COMMA)shstk)
COMMA    := ,
SHIM_LINK = $(CC) $(CFLAGS) -shared $(SHIM_FLOW) -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-Bsymbolic-functions -Wl,--as-needed -static-libgcc

# What the writer's thread goes through is compiled as one by GCC: a launch passes all of these folders, in small functions, and takes a tenth less time so. Not the
# wrappers, which are named in assembly alone, nor what names versions of the C library's functions there. BY_FILE=1 compiles it file by file, as all else is.
WRITER_DIRS := base calls object gpu out match trace
WRITER_OBJ  := $(filter-out %/base/glibc.o,$(filter $(foreach d,$(WRITER_DIRS),$(B)/obj/shim/$(d)/%),$(SHIM_OBJ)))
WRITER_ONE  := $(if $(BY_FILE)$(findstring __clang__,$(shell $(CC) -dM -E -x c /dev/null)),$(WRITER_OBJ),$(B)/obj/writer/writer.o)
PRODUCT_OBJ := $(filter-out $(WRITER_OBJ),$(SHIM_OBJ)) $(WRITER_ONE)
WRITER_LTO   = $(filter-out -fno-lto,$(ALL_CFLAGS)) -flto -fno-fat-lto-objects $(EXTRA_CFLAGS)

$(B)/obj/writer/%.o: %.c Makefile shim/module.mk $(HEADERS_READY)
	@mkdir -p $(@D)
	$(CC) $(WRITER_LTO) -MMD -MP -c $< -o $@
$(B)/obj/writer/writer.o: $(WRITER_OBJ:$(B)/obj/%=$(B)/obj/writer/%)
	$(CC) $(WRITER_LTO) -flto-partition=one -r -flinker-output=nolto-rel $^ -o $@

all: $(B)/libcustream_shim.so $(B)/libcustream_shim_dlsym.so $(B)/libcustream.so

$(B)/libcustream_shim.so: $(PRODUCT_OBJ) $(GLIBC_COMPAT) shim/exports.map
	$(SHIM_LINK) -Wl,--version-script=shim/exports.map $(PRODUCT_OBJ) $(GLIBC_COMPAT) -o $@
$(B)/libcustream_shim_dlsym.so: $(PRODUCT_OBJ) $(GLIBC_COMPAT) shim/exports_dlsym.map
	$(SHIM_LINK) -Wl,--version-script=shim/exports_dlsym.map $(PRODUCT_OBJ) $(GLIBC_COMPAT) -o $@

# The API on its own: custream.h without the recorder, for programs that link or open it. Under the preload library its functions are the ones that are used.
API_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(filter-out shim/api/link.c shim/api/plugin.c,$(wildcard shim/api/*.c)) shim/api/alone/link.c shim/base/lock.c shim/base/log.c)
$(B)/libcustream.so.0: $(API_OBJ) shim/api/exports.map $(GLIBC_READY)
	$(SHIM_LINK) -Wl,--version-script=shim/api/exports.map -Wl,-soname,libcustream.so.0 -Wl,-z,nodelete $(GLIBC_FLOOR) $(API_OBJ) -o $@
$(B)/libcustream.so: $(B)/libcustream.so.0
	ln -sf libcustream.so.0 $@
