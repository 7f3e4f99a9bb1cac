/* A library with an old and a default version of one symbol, for base/realdl: built with a GNU hash
 * table, and once more with the old kind. */
__asm__(".symver cs_sample_old, cs_sample@SAMPLE_1");
__asm__(".symver cs_sample_new, cs_sample@@SAMPLE_2");
__asm__(".symver cs_gone_old, cs_gone@SAMPLE_1");
int cs_sample_old(void);
int cs_sample_new(void);
int cs_gone_old(void);
int cs_sample_old(void) { return 1; }
int cs_sample_new(void) { return 2; }
int cs_gone_old(void) { return 3; }
int cs_plain(void);
int cs_plain(void) { return 4; }
__thread int cs_thread_variable = 5;
__attribute__((visibility("hidden"))) int cs_hidden(void);
int cs_hidden(void) { return 6; }
int cs_uses_missing(void);
extern int cs_elsewhere(void) __attribute__((weak));
int cs_uses_missing(void) { return cs_elsewhere ? cs_elsewhere() : cs_hidden(); }

static int resolved(void) { return 7; }
static void *resolve(void) { return (void *)resolved; }
int cs_indirect(void) __attribute__((ifunc("resolve")));
