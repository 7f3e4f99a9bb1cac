/* A static program: the loader, and with it every preload, stays away from it. */
#include <stdio.h>

int main(int argc, char **argv) { return printf("static %s\n", argc > 1 ? argv[1] : ""), 3; }
