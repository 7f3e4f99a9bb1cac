/* Prints what a program that was built with custream.h relies on: sizes, offsets and numbers.
 * abi.inc is made from the header. */
#include <custream.h>

#include <stdio.h>

#define TYPE(type)         printf("size %s %zu\n", #type, sizeof(type));
#define FIELD(type, field) printf("field %s.%s %zu %zu\n", #type, #field, offsetof(type, field), \
    sizeof(((type *)0)->field));
#define NUMBER(name)       printf("number %s %d\n", #name, (int)name);

int main(void)
{
#include "abi.inc"
    return 0;
}
