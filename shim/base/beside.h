/* Libraries that the shim opens at run time and that lie in its own folder, as in the wheel. */
#ifndef CS_BASE_BESIDE_H
#define CS_BASE_BESIDE_H

/* NULL: there is none, or it cannot be opened. Takes the loader's lock if there is one. */
void *cs_open_beside(const char *soname);

#endif
