# The shim: two preload libraries from the same objects. The second exports only dlsym, for programs that define cuInit and friends as data.

SHIM_DIRS := base calls object gpu trace policy hook api
SHIM_SRC  := $(foreach d,$(SHIM_DIRS),$(wildcard shim/$(d)/*.c shim/$(d)/*.S))
SHIM_OBJ  := $(patsubst %,$(B)/obj/%.o,$(basename $(SHIM_SRC)))
SHIM_LINK = $(CC) $(CFLAGS) -shared -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-Bsymbolic-functions -Wl,--as-needed -static-libgcc

all: $(B)/libcustream_shim.so $(B)/libcustream_shim_dlsym.so

$(B)/libcustream_shim.so: $(SHIM_OBJ) shim/exports.map
	$(SHIM_LINK) -Wl,--version-script=shim/exports.map $(SHIM_OBJ) -o $@
$(B)/libcustream_shim_dlsym.so: $(SHIM_OBJ) shim/exports_dlsym.map
	$(SHIM_LINK) -Wl,--version-script=shim/exports_dlsym.map $(SHIM_OBJ) -o $@
