/*
 * What cuGetProcAddress gives, in both of its forms, by way of dlsym on the driver's handle: for
 * each question the status, the symbol status and the name of the symbol that was given, and
 * whether it lies in the driver or in the preloaded library. Then the same through the answers for
 * its own name; and what a question that the driver refuses leaves in the caller's variable, where
 * a pointer of the driver's stood.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../gpu/own_entry.h"

typedef int get4(const char *, void **, int, uint64_t);
typedef int get5(const char *, void **, int, uint64_t, int *);

static void show(
    const char *by, const char *name, int version, int flags, int result, int status, void *found)
{
    Dl_info info = {0};
    printf("%s %s %d %d: %d status %d ", by, name, version, flags, result, status);
    if (found && dladdr(found, &info))
        printf("%s %s\n", strstr(info.dli_fname, "libcustream_shim") ? "shim" : "driver",
            info.dli_sname ? info.dli_sname : "?");
    else printf("%s\n", found ? "nowhere" : "NULL");
}

static void *ask(const char *by, get4 *four, get5 *five, const char *name, int version, int flags)
{
    void *found = (void *)0x1;
    int status = -1, result = four ? four(name, &found, version, (uint64_t)flags)
                                   : five(name, &found, version, (uint64_t)flags, &status);
    if (found == (void *)0x1) found = NULL;
    show(by, name, version, flags, result, status, found);
    return found;
}

static void questions(const char *by, get4 *four, get5 *five)
{
    static const struct {
        const char *name;
        int version, flags;
    } all[] = {
        {"cuStreamCreate", 2000, 0},
        {"cuStreamDestroy", 2000, 0},
        {"cuStreamDestroy", 4000, 0},
        {"cuMemcpyHtoD", 2000, 0},
        {"cuMemcpyHtoD", 3020, 0},
        {"cuMemcpyHtoD", 7000, 2},
        {"cuLaunchKernel", 4000, 0},
        {"cuLaunchKernel", 7000, 2},
        {"cuLaunchKernel", 3000, 0},
        {"cuLaunchKernel", 4000, 2},
        {"cuDriverGetVersion", 2020, 0},
        {"cuNoSuchCall", 12000, 0},
        {"cuGetProcAddress", 11030, 0},
        {"cuGetProcAddress", 12000, 0},
        {"cuGetProcAddress", 11000, 0},
        {"cuEventRecord", 7000, 2},
        {"", 0, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ask(by, four, five, all[i].name, all[i].version, all[i].flags);
}

static void refused(get4 *four, get5 *five)
{
    void *real = own_entry("cuStreamCreate"), *found[2] = {real, real};
    const int result[2] = {four("cuStreamCreate", &found[0], 12000, 3),
        five("cuStreamCreate", &found[1], 12000, 3, &(int){0})};
    for (int i = 0; i < 2; i++)
        printf("refused: %d, %s\n", result[i], real && found[i] == real ? "left alone" : "changed");
}

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return printf("%s\n", dlerror()), 1;
    get4 *four = (get4 *)dlsym(driver, "cuGetProcAddress");
    get5 *five = (get5 *)dlsym(driver, "cuGetProcAddress_v2");
    if (!four || !five) return printf("no cuGetProcAddress\n"), 1;
    questions("4", four, NULL);
    questions("5", NULL, five);
    questions("4 of 4", (get4 *)ask("4", four, NULL, "cuGetProcAddress", 11030, 0), NULL);
    questions("5 of 5", NULL, (get5 *)ask("5", NULL, five, "cuGetProcAddress", 12000, 0));
    questions("5 of 4", NULL, (get5 *)ask("4", four, NULL, "cuGetProcAddress", 12000, 0));
    five("cuStreamCreate", NULL, 12000, 0,
        NULL); /* no place for the answer: the driver's own error, and no crash */
    printf("null: %d\n", five("cuStreamCreate", NULL, 12000, 0, NULL));
    refused(four, five);
    return 0;
}
