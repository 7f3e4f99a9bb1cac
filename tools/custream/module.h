/* Commands of which a part is a module of the wheel. */
#ifndef CS_TOOLS_MODULE_H
#define CS_TOOLS_MODULE_H

/* Becomes Python with custream.MODULE's command(), which gets this program's file and then argv[1..argc). CUSTREAM_PYTHON says which Python. Returns only if it
 * cannot, after one line on stderr. */
int module_run(const char *command, const char *module, int argc, char **argv);

#endif
