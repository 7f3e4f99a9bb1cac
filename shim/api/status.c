#include "shim/api/status.h"

static const struct {
    const char *name, *text;
} texts[] = {
#define STATUS(name, text) [CUSTREAM_##name] = {"CUSTREAM_" #name, text}
    STATUS(SUCCESS, "done"),
    STATUS(NOT_READY, "work is still under way"),
    STATUS(INVALID_VALUE, "an argument is NULL, out of range, or an unknown flag"),
    STATUS(INVALID_HANDLE, "CUDA does not know the handle, or not any more"),
    STATUS(CLOSED, "the object was closed"),
    STATUS(DEVICE_MISMATCH, "stream, event and device do not belong together"),
    STATUS(PRIORITY_OUT_OF_RANGE, "the priority is outside of the device's range"),
    STATUS(CAPTURE_STATE, "the stream captures already, or does not, or its capture is paused or another's"),
    STATUS(CAPTURE_INVALIDATED, "the capture was broken by a call that is not permitted in it"),
    STATUS(CAPTURE_UNSUPPORTED, "not permitted in a capture, or on the default stream"),
    STATUS(TIMING_DISABLED, "the event takes no times"),
    STATUS(NOT_RECORDED, "the event was never recorded"),
    STATUS(IPC, "the event is not for other processes, or came from one"),
    STATUS(NO_CONTEXT, "no context is current"),
    STATUS(NOT_SUPPORTED, "not supported by this driver or this version of the library, or only with the preload library"),
    STATUS(NO_MEMORY, "out of host memory"),
    STATUS(DRIVER, "an error of CUDA's: custream_last_driver_error tells which"),
#undef STATUS
};

CS_EXPORT const char *custream_status_name(status s) { return (unsigned)s < CS_COUNT(texts) ? texts[s].name : "CUSTREAM_UNKNOWN"; }
CS_EXPORT const char *custream_status_string(status s) { return (unsigned)s < CS_COUNT(texts) ? texts[s].text : "not a status of custream"; }

CS_EXPORT const char *custream_version_string(void) { return CUSTREAM_VERSION_STRING; }

CS_EXPORT status custream_version(int *version)
{
    int parts[3] = {0, 0, 0}, n = 0;
    NEED(version);
    for (const char *c = CUSTREAM_VERSION_STRING; *c && n < 3; c++) {
        if (*c == '.') n++;
        else if (*c >= '0' && *c <= '9') parts[n] = parts[n] * 10 + (*c - '0');
        else break;
    }
    *version = 10000 * parts[0] + 100 * parts[1] + parts[2];
    return CUSTREAM_SUCCESS;
}
