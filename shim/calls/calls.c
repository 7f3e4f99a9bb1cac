#include "shim/calls/calls.h"

#include "shim/calls/how_words.h"
#include "shim/calls/shown.h"

const struct cs_call_info cs_call_info[CS_CALL_COUNT] = {
    [CS_CALL_CALLBACK] = {"callback", CS_KIND_NONE, 0, false, {{"function", CS_FORMAT_FUNCTION}}},
    [CS_CALL_LOSS] = {"lost", CS_KIND_NONE, 0, false, {{"count", CS_FORMAT_UINT}}},
    [CS_CALL_DELAY] = {"delay", CS_KIND_NONE, 0, false, {{"drawn_us", CS_FORMAT_UINT}, {"before", CS_FORMAT_CALL}, {"at", CS_FORMAT_DELAYED}}},
    [CS_CALL_CLOCK] = {"clock", CS_KIND_NONE, 0, false, {{NULL, CS_FORMAT_NONE}}},
    [CS_CALL_SITE] = {"site", CS_KIND_NONE, 0, false, {{NULL, CS_FORMAT_NONE}}},
    [CS_CALL_RANGE_PUSH] = {"range push", CS_KIND_NONE, 0, false, {{NULL, CS_FORMAT_NONE}}},
    [CS_CALL_RANGE_POP] = {"range pop", CS_KIND_NONE, 0, false, {{NULL, CS_FORMAT_NONE}}},
    [CS_CALL_MARK] = {"mark", CS_KIND_NONE, 0, false, {{NULL, CS_FORMAT_NONE}}},
    [CS_CALL_RANGE_START] = {"range start", CS_KIND_NONE, 0, false, {{NULL, CS_FORMAT_NONE}}},
    [CS_CALL_RANGE_END] = {"range end", CS_KIND_NONE, 0, false, {{NULL, CS_FORMAT_NONE}}},
#define SHOWN(label, format, value) {#label, CS_FORMAT_##format},
#define DESCRIBED(symbol, other, per_thread, kind, how, ...) [CS_CALL_##symbol] = {#symbol, CS_KIND_##kind, how, per_thread, {CS_SHOWN(SHOWN, ##__VA_ARGS__)}},
#define CALL(name, sibling, kind, how, stream, effect, parameters, arguments, ...) CS_SIBLINGS_##sibling(DESCRIBED, name, kind, how, ##__VA_ARGS__)
#include "shim/calls/calls.def"
#undef CALL
#undef DESCRIBED
#undef SHOWN
};

const struct cs_kind_info cs_kind_info[CS_KIND_COUNT] = {
#define KIND(name, text, implies, hook, jitter, ...) {#text, implies, jitter},
#include "shim/calls/kinds.def"
#undef KIND
};

const char *const cs_way_name[CS_WAY_COUNT] = {NULL, "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "Peer"};
