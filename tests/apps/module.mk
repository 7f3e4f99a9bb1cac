# The programs that the cases run. Each is one C file; those in APPS_LINKED are built a second time, linked to the driver, as NAME_linked.

APPS_DIR    := tests/apps
APPS_LINKED := timeline race keeps leaks
APPS_PLAIN  := $(filter-out maker keeps leaks,$(patsubst $(APPS_DIR)/%.c,%,$(wildcard $(APPS_DIR)/*.c)))
APPS        := $(patsubst %,$(B)/tests/%,$(APPS_PLAIN) keeps leaks timeline_linked race_linked)
TEST_PROGRAMS += $(APPS) $(B)/tests/libmaker.so

APPS_FLAGS  = $(filter-out -fvisibility=hidden,$(ALL_CFLAGS)) -D_GNU_SOURCE -pthread
APPS_DRIVER = -L$(FAKE) -lcuda

$(APPS): $(APPS_DIR)/app.h $(APPS_DIR)/module.mk
$(patsubst %,$(B)/tests/%,$(APPS_PLAIN)): $(B)/tests/%: $(APPS_DIR)/%.c
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) $(LDFLAGS) $< -o $@ -ldl
$(B)/tests/%_linked: $(APPS_DIR)/%.c $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -DAPP_LINKED $(LDFLAGS) $< -o $@ $(APPS_DRIVER) -ldl
$(B)/tests/libmaker.so: $(APPS_DIR)/maker.c $(FAKE)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(APPS_FLAGS) -shared $(LDFLAGS) $< -o $@ $(APPS_DRIVER)
# A program that uses the library: its folder is where the program is.
$(B)/tests/keeps $(B)/tests/leaks: $(B)/tests/%: $(APPS_DIR)/%.c $(B)/tests/libmaker.so
	$(CC) $(APPS_FLAGS) -DAPP_LINKED $(LDFLAGS) $< -o $@ -L$(B)/tests -lmaker '-Wl,-rpath,$$ORIGIN' $(APPS_DRIVER) -ldl
