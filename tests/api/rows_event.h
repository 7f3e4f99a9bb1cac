/* Short forms of the rows about events. */
#ifndef TESTS_API_ROWS_EVENT_H
#define TESTS_API_ROWS_EVENT_H

#include "tests/api/rows.h"

UNUSED static custream_event_options_t defaults(void)
{
    custream_event_options_t options;
    WORKS(custream_event_options_init(&options));
    return options;
}
UNUSED static custream_event_t made(const custream_event_options_t *options)
{
    custream_event_t e = NULL;
    WORKS(custream_event_create(&e, options));
    return e;
}
UNUSED static unsigned flags_of(custream_event_t e)
{
    unsigned flags = 99;
    WORKS(custream_event_get_flags(e, &flags));
    return flags;
}
UNUSED static int device_of_event(custream_event_t e)
{
    int device = UNTOUCHED_INT;
    WORKS(custream_event_get_device(e, &device));
    return device;
}
UNUSED static void refused(const custream_event_options_t *options)
{
    custream_event_t e;
    FAILS(custream_event_create(&e, options), INVALID_VALUE, e);
}

#endif
