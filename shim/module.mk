# The shim: two preload libraries from the same objects. The second exports only dlsym, for programs that define cuInit and friends as data.

SHIM_DIRS := base calls object gpu out match trace audit policy process wrap api
SHIM_SRC  := $(foreach d,$(SHIM_DIRS),$(wildcard shim/$(d)/*.c shim/$(d)/*.S))
SHIM_OBJ  := $(patsubst %,$(B)/obj/%.o,$(basename $(SHIM_SRC)))
# One library without this mark turns the shadow stack off for its whole process. The C library's own first and last objects may have none; nothing of ours
# returns but to where it was called from.
SHIM_FLOW = $(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),-Wl$(COMMA)-z$(COMMA)shstk)
COMMA    := ,
SHIM_LINK = $(CC) $(CFLAGS) -shared $(SHIM_FLOW) -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-Bsymbolic-functions -Wl,--as-needed -static-libgcc

all: $(B)/libcustream_shim.so $(B)/libcustream_shim_dlsym.so $(B)/libcustream.so

$(B)/libcustream_shim.so: $(SHIM_OBJ) $(GLIBC_COMPAT) shim/exports.map
	$(SHIM_LINK) -Wl,--version-script=shim/exports.map $(SHIM_OBJ) $(GLIBC_COMPAT) -o $@
$(B)/libcustream_shim_dlsym.so: $(SHIM_OBJ) $(GLIBC_COMPAT) shim/exports_dlsym.map
	$(SHIM_LINK) -Wl,--version-script=shim/exports_dlsym.map $(SHIM_OBJ) $(GLIBC_COMPAT) -o $@

# The API on its own: custream.h without the recorder, for programs that link or open it. Under the preload library its functions are the ones that are used.
API_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(filter-out shim/api/link.c shim/api/plugin.c,$(wildcard shim/api/*.c)) shim/api/alone/link.c shim/base/lock.c shim/base/log.c)
$(B)/libcustream.so.0: $(API_OBJ) shim/api/exports.map $(GLIBC_READY)
	$(SHIM_LINK) -Wl,--version-script=shim/api/exports.map -Wl,-soname,libcustream.so.0 -Wl,-z,nodelete $(GLIBC_FLOOR) $(API_OBJ) -o $@
$(B)/libcustream.so: $(B)/libcustream.so.0
	ln -sf libcustream.so.0 $@
