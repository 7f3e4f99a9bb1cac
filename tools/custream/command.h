/* Declarations that the subcommands share. Functions here may exit, so the shim uses none of
 * them. */
#ifndef CS_TOOLS_COMMAND_H
#define CS_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/show.h"

/* The exit status, which every subcommand returns. `run` adds env(1)'s 126 and 127. */
enum command_status {
    STATUS_OK = 0,
    STATUS_BROKEN = 1,    /* check: a trace was read and breaks a rule; ctl: the process refused */
    STATUS_UNUSABLE = 2,  /* wrong usage, or a file that cannot be read as a trace at all */
    STATUS_CONDITION = 3, /* report, diff: a condition of --fail-if holds */
    STATUS_NOT_EXECUTABLE = 126,
    STATUS_NOT_FOUND = 127,
};

/* Declares command_run() and so on. Each is called with its own name as argv[0]. */
#define COMMAND(name, place, summary) int command_##name(int argc, char **argv);
#define ROW(...)
#include "tools/custream/commands.def"

/* Prints that memory is out, and exits. */
void out_of_memory(void) __attribute__((noreturn));
/* Makes room for one more element of `size` bytes, or calls out_of_memory(). Returns the array. */
void *array_room(void *array, size_t count, size_t *capacity, size_t size);
/* Puts one more element at the end of an array. The array may move. */
#define array_add(array, count, capacity, ...) \
    ((array) = array_room(array, count, &(capacity), sizeof *(array)), \
        (array)[(count)++] = (__VA_ARGS__))
/* Returns an array of zeros, the caller's to free, or calls out_of_memory(). */
void *array_zeros(size_t count, size_t size);
/* Returns a copy of the text, or calls out_of_memory(); NULL for NULL. */
char *kept(const char *text);
/* Returns an array whose elements are UINT32_MAX, which many files call NONE; or calls
 * out_of_memory(). */
uint32_t *array_none(size_t count);

/* Free several pointers. */
void free_each(void *const *pointers, size_t count);
#define free_all(...) free_each((void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))

/* The order of two numbers for qsort(): -1, 0 or 1. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))
/* Defines a function for qsort(). `order` is the order of two rows, to which `a` and `b` point. */
#define COMPARES(name, type, order) \
    static int name(const void *left, const void *right) \
    { \
        const type *const a = left; \
        const type *const b = right; \
        return order; \
    }
/* Gives the first `i` in [from, to) for which `before` is false; if there is none, gives `to`.
 * `before` is an expression with `i`. Once it is false, it must be false for all higher `i`. */
#define FIRST_NOT(i, from, to, before) \
    ({ \
        size_t low_ = (from), high_ = (to); \
        while (low_ < high_) { \
            const size_t i = low_ + (high_ - low_) / 2; \
            if (before) low_ = i + 1; \
            else high_ = i; \
        } \
        low_; \
    })

#endif
