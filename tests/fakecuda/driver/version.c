/* The version this build of the library is the driver of; 0: that of the headers. Compiled once per
 * variant (module.mk). */
#ifndef FAKE_VERSION_CAP
#define FAKE_VERSION_CAP 0
#endif

extern const int fake_version_cap;
const int fake_version_cap = FAKE_VERSION_CAP;
