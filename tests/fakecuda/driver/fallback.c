/*
 * Every symbol that cuda.h declares and nothing here simulates, as a weak function that refuses:
 * CUDA_ERROR_NOT_SUPPORTED. So a client's look-ups succeed as with a real driver, and what it lacks
 * shows in CUSTREAM_FAKE_LOG=1 by name. Made from cuda.h; its types are not needed.
 */
extern int fake_fallback(const char *name);

#define SYMBOL(name) \
    int name(void) __attribute__((weak, visibility("default"))); \
    int name(void) { return fake_fallback(#name); }
#include "symbols.inc"
