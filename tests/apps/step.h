/*
 * Stepping: the processor traps after each instruction of a thread (its trap flag), and a handler
 * of SIGTRAP sees each place of a library's code that the thread comes by. Where there is no such
 * flag nothing is stepped.
 */
#ifndef APPS_STEP_H
#define APPS_STEP_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

struct step_code {
    const char *library;
    uintptr_t from, to;
};

__attribute__((unused)) static void step_find(struct step_code *code)
{
    char line[1024], mode[8];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (!strstr(line, code->library) || sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 ||
            mode[2] != 'x')
            continue;
        code->from = from, code->to = to;
    }
    if (maps) fclose(maps);
}

__attribute__((unused)) static int step_is_in(uintptr_t at, const struct step_code *code)
{
    return at >= code->from && at < code->to;
}

#if defined __x86_64__
enum { STEP_FLAG = 0x100 };
__attribute__((unused)) static uintptr_t step_place(const ucontext_t *at)
{
    return (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
}
__attribute__((unused)) static void step_no_more(ucontext_t *at)
{
    at->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEP_FLAG;
}
__attribute__((unused)) static inline void steps(int on)
{
    unsigned long flags;
    __asm__ volatile("sub $128, %%rsp\n\tpushfq\n\tpopq %0\n\tadd $128, %%rsp"
        : "=r"(flags)::"memory", "cc"); /* not on the compiler's red zone */
    flags = on ? flags | STEP_FLAG : flags & ~(unsigned long)STEP_FLAG;
    __asm__ volatile("sub $128, %%rsp\n\tpushq %0\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::"r"(flags)
        : "memory", "cc");
}
#else
__attribute__((unused)) static uintptr_t step_place(const ucontext_t *at) { return (void)at, 0; }
__attribute__((unused)) static void step_no_more(ucontext_t *at) { (void)at; }
__attribute__((unused)) static inline void steps(int on) { (void)on; }
#endif

#endif
