/* The policy of a process (policy/load.h): from the environment and a file, and in the place of
 * another. What files may say: tests/cases/test_policy_file.py. */
#include "shim/policy/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>

#include "shim/base/options.h"
#include "shim/policy/keys.h"
#include "shim/policy/policies.h"
#include "tests/unit/check.h"

static const struct cs_policy *seen[64]; /* policies are never given back: without this the
                                            sanitizer would ask for those that were replaced */

static const struct cs_policy *now(void)
{
    static int count;
    return seen[count++] = cs_load(&cs_policy_now);
}

static int interruptions; /* of the next reads */

ssize_t read(int fd, void *to, size_t n)
{
    if (interruptions && interruptions--) return errno = EINTR, -1;
    return syscall(SYS_read, fd, to, n);
}

/* The environment's variables in pairs, NULL at the end; what is said on stderr. */
static const char *load_with(const char *const *environment)
{
    for (; *environment; environment += 2) setenv(environment[0], environment[1], 1);
    captured_begin();
    cs_options_read();
    cs_policy_load();
    return captured_end();
}
#define LOAD(...) load_with((const char *const[]){__VA_ARGS__ __VA_OPT__(,) NULL})

#define RULE(match, set) "{\"match\": {" match "}, \"set\": {" set "}}"

TEST(without_anything_there_is_no_policy)
{
    CHECK_TEXT(LOAD(), "");
    CHECK(!now());
    CHECK_TEXT(LOAD("CUSTREAM_POLICY", "{}"), "");
    CHECK(!now());
    CHECK_TEXT(LOAD("CUSTREAM_POLICY", " \n{\"trace\": \"t.json\", \"rules\": []}"), "");
    CHECK(!now());
    CHECK_TEXT(cs_option_text(CS_OPTION_TRACE), "t.json");
}

TEST(options_alone_make_a_policy)
{
    CHECK_TEXT(LOAD("CUSTREAM_DEFAULT_STREAM", "legacy", "CUSTREAM_DEFAULT_HANDLES", "all",
                   "CUSTREAM_PRIORITY", "0:-2,strict", "CUSTREAM_STREAMS", "pool:3",
                   "CUSTREAM_JITTER", "seed=5"),
        "");
    const struct cs_policy *p = now();
    REQUIRE(p);
    CHECK(p->default_stream == CS_DEFAULT_LEGACY && p->all_handles && !p->audit && !p->asks_caller);
    CHECK(p->priority.kind == CS_PRIORITY_CLAMP && p->priority.value == -2 && p->priority.strict);
    CHECK(p->sharing.kind == CS_SHARING_POOL && p->sharing.pool == 3 && p->jitter.on &&
          p->jitter.seed == 5);
    CHECK(p->rule_count == 0);
}

TEST(each_of_them_alone_acts)
{
    static const char *const acting[][2] = {{"CUSTREAM_DEFAULT_STREAM", "per-thread"},
        {"CUSTREAM_DEFAULT_STREAM", "audit"}, {"CUSTREAM_PRIORITY", "keep,strict"},
        {"CUSTREAM_PRIORITY", "shift:-1"}, {"CUSTREAM_STREAMS", "sync"},
        {"CUSTREAM_JITTER", "seed=1"}};
    for (size_t i = 0; i < CS_COUNT(acting); i++) {
        CHECK_TEXT(LOAD(acting[i][0], acting[i][1]), "");
        CHECK(now());
        unsetenv(acting[i][0]);
    }
    CHECK_TEXT(LOAD("CUSTREAM_DEFAULT_STREAM", "keep"), "");
    CHECK(!now());
}

TEST(every_key_is_read)
{
    CHECK_TEXT(
        LOAD("CUSTREAM_POLICY",
            "{\"default_stream\": \"per-thread\", \"trace_max\": 1048576, \"buffer\": \"64K\", "
            "\"full\": \"block\", \"rules\": [" RULE(
                "\"library\": \"l*\", \"thread\": \"t?\", \"call\": \"cu*\", \"device\": 3, "
                "\"nonblocking\": false, \"priority\": -7, "
                "\"nth\": 2, \"context\": \"created\"",
                "\"priority\": -5, \"nonblocking\": true, \"name\": \"n\\u00e9\\\"\", \"record\": "
                "false") ", " RULE("\"context\": \"primary\"",
                "\"default_stream\": \"legacy\", \"record\": true") ", " RULE("\"name\": \"comm*\"",
                "\"priority\": 0") "]}"),
        "");
    const struct cs_policy *p = now();
    REQUIRE(p && p->rule_count == 3);
    const struct cs_match *m = &p->rules[0].match;
    const struct cs_change *s = &p->rules[0].set;
    CHECK_TEXT(m->library, "l*");
    CHECK_TEXT(m->thread, "t?");
    CHECK_TEXT(m->call, "cu*");
    CHECK(!m->name && m->device == 3 && m->nonblocking == 0 && m->priority == -7 && m->nth == 2 &&
          m->context == CS_CONTEXT_CREATED);
    CHECK(s->priority == -5 && s->nonblocking == 1 && s->record == 0 &&
          s->default_stream == CS_DEFAULT_UNDECIDED);
    CHECK_TEXT(s->name, "n\xc3\xa9\"");
    m = &p->rules[1].match, s = &p->rules[1].set;
    CHECK(!m->library && !m->thread && !m->call && !m->name && m->device == CS_ANY &&
          m->nonblocking == CS_ANY && m->priority == CS_ANY && m->nth == CS_ANY);
    CHECK(m->context == CS_CONTEXT_PRIMARY && s->default_stream == CS_DEFAULT_LEGACY &&
          s->record == 1);
    CHECK(s->priority == CS_ANY && s->nonblocking == CS_ANY && !s->name);
    CHECK_TEXT(p->rules[2].match.name, "comm*");
    CHECK(p->default_stream == CS_DEFAULT_PER_THREAD && !p->asks_caller);
    CHECK_IS(cs_option_size(CS_OPTION_TRACE_MAX), 1 << 20);
    CHECK_IS(cs_option_size(CS_OPTION_BUFFER), 64 << 10);
    CHECK(cs_option_is(CS_OPTION_FULL, "block"));
}

/* The caller of each call on a default stream is worth its time only where a rule could tell by it.
 */
TEST(when_callers_are_asked_for)
{
    static const struct {
        const char *rules;
        bool asks;
    } cases[] = {
        {RULE("\"library\": \"l\"", "\"default_stream\": \"legacy\""), true},
        {RULE("\"library\": \"l\", \"thread\": \"t\", \"device\": 0, \"context\": \"primary\"",
             "\"priority\": -1"),
            true}, /* stands before later ones */
        {RULE("\"thread\": \"t\"", "\"default_stream\": \"legacy\""), false},
        {RULE("\"library\": \"l\", \"call\": \"*\"", "\"priority\": -1"), false},
        {RULE("\"library\": \"l\", \"name\": \"n\"", "\"priority\": -1"), false},
        {RULE("\"library\": \"l\", \"nonblocking\": true", "\"priority\": -1"), false},
        {RULE("\"library\": \"l\", \"priority\": 0", "\"priority\": -1"), false},
        {RULE("\"library\": \"l\", \"nth\": 1", "\"priority\": -1"), false},
    };
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        char text[512];
        snprintf(text, sizeof text, "{\"rules\": [%s]}", cases[i].rules);
        CHECK_TEXT(LOAD("CUSTREAM_POLICY", text), "");
        const struct cs_policy *p = now();
        REQUIRE(p);
        if (p->asks_caller != cases[i].asks) fprintf(stderr, "%s\n", text), check_failures++;
    }
}

/* Calls that a policy does not concern do not ask it. */
TEST(which_calls_a_policy_has_to_see)
{
    enum {
        OBJECTS = CS_REACH_OBJECTS,
        DEFAULTS = OBJECTS | CS_REACH_DEFAULTS,
        CALLS = OBJECTS | CS_REACH_CALLS
    };
    static const struct {
        const char *text;
        unsigned reach;
    } cases[] = {
        {"\"priority\": \"0:-1\"", OBJECTS},
        {"\"streams\": \"pool:2\"", OBJECTS},
        {"\"default_stream\": \"per-thread\"", DEFAULTS},
        {"\"default_stream\": \"audit\"", CALLS},
        {"\"streams\": \"serial\"", CALLS},
        {"\"streams\": \"sync\"", CALLS},
        {"\"jitter\": \"seed=1\"", CALLS},
        {"\"rules\": [" RULE("\"nonblocking\": true", "\"priority\": -1") "]", OBJECTS},
        {"\"rules\": [" RULE("\"thread\": \"t\"", "\"priority\": -1") "]",
            DEFAULTS}, /* it matches default streams too */
        {"\"rules\": [" RULE("\"nonblocking\": true", "\"record\": true") "]", OBJECTS},
        {"\"rules\": [" RULE("\"nonblocking\": true", "\"record\": false") "]", CALLS},
        {"\"rules\": [" RULE("", "\"record\": false") "]", DEFAULTS | CALLS},
    };
    CHECK_IS(cs_policy_reach(NULL), 0);
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        char text[512];
        snprintf(text, sizeof text, "{%s}", cases[i].text);
        CHECK_TEXT(LOAD("CUSTREAM_POLICY", text), "");
        const struct cs_policy *p = now();
        if (cs_policy_reach(p) != cases[i].reach)
            fprintf(stderr, "%s: %u\n", text, cs_policy_reach(p)), check_failures++;
    }
    LOAD("CUSTREAM_POLICY", "{}");
    CHECK(!now());
}

TEST(a_mistake_anywhere_and_nothing_is_applied)
{
    CHECK_TEXT(LOAD("CUSTREAM_POLICY",
                   "{\"full\": \"block\", \"default_stream\": \"legacy\", \"rules\": [" RULE(
                       "", "\"priority\": -1") "], \"buffer\": \"1\"}",
                   "CUSTREAM_TRACE_MAX", "2M"),
        "custream: warning: CUSTREAM_POLICY: buffer: \"1\" is not valid: allowed is a size from "
        "64K to 1G; the policy is not applied\n");
    CHECK(!now());
    CHECK_TEXT(cs_option_text(CS_OPTION_FULL), "drop");
    CHECK_TEXT(cs_option_text(CS_OPTION_DEFAULT_STREAM), "keep");
    CHECK_TEXT(cs_option_text(CS_OPTION_POLICY), "");
    CHECK_TEXT(cs_option_text(CS_OPTION_TRACE_MAX), "2M");
    CHECK_TEXT(LOAD("CUSTREAM_PRIORITY", "set:-1"),
        "custream: warning: CUSTREAM_POLICY: buffer: \"1\" is not valid: allowed is a size from "
        "64K to 1G; the policy is not applied\n");
    const struct cs_policy *p = now();
    CHECK(p && p->priority.value == -1 && p->default_stream == CS_DEFAULT_KEEP && !p->rule_count);
}

TEST(the_environment_beats_the_file)
{
    CHECK_TEXT(LOAD("CUSTREAM_POLICY", "{\"default_stream\": \"legacy\", \"priority\": \"set:-2\"}",
                   "CUSTREAM_DEFAULT_STREAM", "per-thread"),
        "");
    const struct cs_policy *p = now();
    CHECK(p && p->default_stream == CS_DEFAULT_PER_THREAD && p->priority.value == -2);
    CHECK_TEXT(LOAD("CUSTREAM_DEFAULT_STREAM", "own"),
        "custream: warning: CUSTREAM_DEFAULT_STREAM=own is not valid: allowed is "
        "keep|per-thread|legacy|audit; using keep\n");
    p = now();
    CHECK(p && p->default_stream == CS_DEFAULT_KEEP && p->priority.value == -2);
}

TEST(variables_that_contradict_each_other)
{
    CHECK_TEXT(LOAD("CUSTREAM_STREAMS", "serial", "CUSTREAM_DEFAULT_STREAM", "per-thread",
                   "CUSTREAM_PRIORITY", "set:-1", "CUSTREAM_DEFAULT_HANDLES", "all"),
        "custream: warning: CUSTREAM_DEFAULT_STREAM=per-thread contradicts "
        "CUSTREAM_STREAMS=serial: everything runs on one stream; "
        "using CUSTREAM_DEFAULT_STREAM=keep and CUSTREAM_STREAMS=keep\n"
        "custream: warning: CUSTREAM_DEFAULT_HANDLES=all contradicts CUSTREAM_DEFAULT_STREAM=keep: "
        "no default stream is changed; "
        "using CUSTREAM_DEFAULT_HANDLES=zero and CUSTREAM_DEFAULT_STREAM=keep\n");
    const struct cs_policy *p = now();
    REQUIRE(p);
    CHECK(p->default_stream == CS_DEFAULT_KEEP && p->sharing.kind == CS_SHARING_KEEP &&
          !p->all_handles && p->priority.value == -1);
    CHECK_TEXT(cs_option_text(CS_OPTION_STREAMS), "keep");
}

/* What a file gives makes sense of the variables, or nonsense: then it is the file that goes. */
TEST(a_file_among_variables)
{
    CHECK_TEXT(LOAD("CUSTREAM_DEFAULT_HANDLES", "all", "CUSTREAM_POLICY",
                   "{\"default_stream\": \"legacy\"}"),
        "");
    const struct cs_policy *p = now();
    CHECK(p && p->all_handles && p->default_stream == CS_DEFAULT_LEGACY);
    CHECK_TEXT(LOAD("CUSTREAM_DEFAULT_HANDLES", "all", "CUSTREAM_POLICY",
                   "{\"rules\": [" RULE("", "\"default_stream\": \"legacy\"") "]}"),
        "");
    p = now();
    CHECK(p && p->all_handles && p->rule_count == 1);
    CHECK_TEXT(
        LOAD("CUSTREAM_DEFAULT_HANDLES", "zero", "CUSTREAM_STREAMS", "serial", "CUSTREAM_POLICY",
            "{\"jitter\": \"seed=1\", \"default_stream\": \"per-thread\"}"),
        "custream: warning: CUSTREAM_POLICY: default_stream: \"per-thread\" contradicts "
        "CUSTREAM_STREAMS=serial: everything runs on one stream; "
        "the policy is not applied\n");
    p = now();
    CHECK(p && p->sharing.kind == CS_SHARING_SERIAL && !p->jitter.on &&
          p->default_stream == CS_DEFAULT_KEEP);
}

static char error[512];

TEST(another_takes_its_place)
{
    CHECK_TEXT(LOAD("CUSTREAM_PRIORITY", "0:-3", "CUSTREAM_POLICY",
                   "{\"jitter\": \"seed=1\", \"rules\": [" RULE("", "\"priority\": -1") "]}"),
        "");
    const struct cs_policy *first = now();
    REQUIRE(first && first->jitter.on);
    CHECK(cs_policy_replace(
        "{\"default_stream\": \"legacy\", \"rules\": [" RULE("", "\"priority\": -2") "]}", error,
        sizeof error));
    const struct cs_policy *second = now();
    REQUIRE(second && second != first);
    CHECK(second->default_stream == CS_DEFAULT_LEGACY && second->rule_count == 1 &&
          second->rules[0].set.priority == -2);
    CHECK(second->priority.value == -3 &&
          !second->jitter.on);                 /* the environment's stays, the first file's goes */
    CHECK(first->rules[0].set.priority == -1); /* streams made under it ask it */
    CHECK(cs_policy_replace("{\"priority\": \"0:-3\"}", error, sizeof error));
    const struct cs_policy *third = now();
    CHECK(third && third->default_stream == CS_DEFAULT_KEEP && !third->rule_count);
    CHECK_TEXT(error, "");
}

TEST(one_that_changes_nothing_leaves_none)
{
    LOAD("CUSTREAM_POLICY", "{\"jitter\": \"seed=1\"}");
    CHECK(now());
    CHECK(cs_policy_replace("{}", error, sizeof error));
    CHECK(!now());
}

TEST(what_is_refused_changes_nothing)
{
    static const char *const refused[][2] = {
        {"", "policy: is empty"},
        {"policy.json", "policy: line 1, column 1: not JSON: a value is missing"},
        {"{\"jitter\": \"seed=2\", \"trace\": \"t.json\"}",
            "policy: trace: cannot change in a running process"},
        {"{\"buffer\": 1048576}", "policy: buffer: cannot change in a running process"},
        {"{\"gpu\": \"off\"}", "policy: gpu: cannot change in a running process"},
        {"{\"log\": \"off\"}",
            "policy: log: \"off\" is not valid: allowed is error|warn|info|debug"},
        {"{\"priority\": \"0:-1\"}", "policy: priority: CUSTREAM_PRIORITY=0:-3 was set when the "
                                     "process started and beats \"0:-1\""},
        {"{\"rules\": [" RULE("", "\"priority\": -4") "]}",
            "policy: rules[0].set.priority: contradicts CUSTREAM_PRIORITY=0:-3: it lies outside of "
            "that range"},
        {"{\"default_stream\": \"per-thread\", \"streams\": \"serial\"}",
            "policy: default_stream: \"per-thread\" contradicts streams \"serial\": everything "
            "runs on one stream"},
    };
    CHECK_TEXT(LOAD("CUSTREAM_PRIORITY", "0:-3"), "");
    const struct cs_policy *before = now();
    REQUIRE(before);
    for (size_t i = 0; i < CS_COUNT(refused); i++) {
        CHECK(!cs_policy_replace(refused[i][0], error, sizeof error));
        CHECK_TEXT(error, refused[i][1]);
        CHECK(now() == before);
        CHECK_TEXT(cs_option_text(CS_OPTION_PRIORITY), "0:-3");
    }
}

TEST(an_interrupted_read_goes_on)
{
    FILE *file = fopen("policy.json", "w");
    REQUIRE(file);
    fputs("{\"streams\": \"sync\"}", file);
    fclose(file);
    interruptions = 2;
    CHECK_TEXT(LOAD("CUSTREAM_POLICY", "policy.json"), "");
    CHECK_IS(interruptions, 0);
    REQUIRE(now());
    CHECK(seen[0]->sharing.kind == CS_SHARING_SYNC);
}

/* Whatever is found where a policy should be. */
TEST(no_file_stays_open)
{
    static const char *const paths[] = {
        "p.json", "none.json", ".", "/dev/null", "long.json", "p.json", "whole.json"};
    static char blanks[(1 << 20) + 2];
    FILE *file = fopen("p.json", "w"), *longer = fopen("long.json", "w"),
         *whole = fopen("whole.json", "w");
    REQUIRE(file && longer && whole);
    memset(blanks, ' ', sizeof blanks - 1);
    blanks[0] = '{', blanks[1] = '}';
    fputs("{\"streams\": \"sync\"}", file);
    fputs(blanks, longer);
    blanks[1 << 20] = 0; /* as much as is allowed */
    fputs(blanks, whole);
    fclose(file), fclose(longer), fclose(whole);
    const int free_before = dup(0);
    close(free_before);
    for (size_t i = 0; i < CS_COUNT(paths); i++) {
        const char *said = LOAD("CUSTREAM_POLICY", paths[i]);
        CHECK(!*said == (!strcmp(paths[i], "p.json") || !strcmp(paths[i], "whole.json")));
        CHECK(!now() == !!strcmp(paths[i], "p.json"));
        const int free_now = dup(0);
        CHECK_IS(free_now, free_before);
        close(free_now);
    }
    remove("p.json"), remove("long.json"), remove("whole.json");
}

TEST(which_options_can_change_in_a_running_process)
{
    static const enum cs_option live[] = {CS_OPTION_DEFAULT_STREAM, CS_OPTION_DEFAULT_HANDLES,
        CS_OPTION_PRIORITY, CS_OPTION_STREAMS, CS_OPTION_JITTER};
    LOAD();
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        char text[256], key[CS_KEY_ROOM];
        bool may = false;
        for (size_t k = 0; k < CS_COUNT(live); k++) may = may || i == (int)live[k];
        snprintf(text, sizeof text, "{\"%s\": \"%s\"}", cs_option_key((enum cs_option)i, key),
            cs_option_info[i].preset);
        CHECK_IS(cs_policy_replace(text, error, sizeof error), may);
        CHECK(!now());
    }
}

TEST(a_small_room_for_the_error_is_enough)
{
    char small[9];
    memset(small, 'x', sizeof small);
    LOAD();
    CHECK(!cs_policy_replace("{\"rules\": [{}]}", small, 8));
    CHECK(memchr(small, 0, 8) && small[8] == 'x');
}

/* The program's own errno and the text that dlerror still owes it. */
TEST(errno_and_dlerror_are_kept)
{
    setenv("CUSTREAM_POLICY", "{\"jitter\": \"seed=1\"}", 1);
    cs_options_read();
    CHECK(!dlopen("/nowhere/libnothing.so", RTLD_NOW));
    errno = EDOM;
    cs_policy_load();
    CHECK_IS(errno, EDOM);
    CHECK(now());
    CHECK(cs_policy_replace("{}", error, sizeof error));
    CHECK_IS(errno, EDOM);
    setenv("CUSTREAM_POLICY", "/nowhere/policy.json", 1);
    cs_options_read();
    errno = EDOM;
    captured_begin();
    cs_policy_load();
    int after = errno;
    CHECK_TEXT(captured_end(), "custream: warning: /nowhere/policy.json: No such file or "
                               "directory; the policy is not applied\n");
    CHECK_IS(after, EDOM);
    const char *said = dlerror();
    CHECK(said && strstr(said, "/nowhere/libnothing.so"));
}

/* What a program asks for may be any number. A greater one asked for never gets a lesser one where
 * the rule keeps the order. */
TEST(priorities_at_the_ends_of_their_type)
{
    static const int asked[] = {INT_MIN, INT_MIN + 1, INT_MIN + 100, -101, -100, -5, -1, 0, 1, 100,
        INT_MAX - 100, INT_MAX - 1, INT_MAX};
    static const char *const rules[] = {"keep", "0:0", "0:-1", "0:-100", "set:-100", "set:0",
        "shift:-100", "shift:-1", "shift:1", "shift:100", "map:-1=-2,100=-100"};
    static const int greatest_of[] = {0, -5, -100};
    for (size_t r = 0; r < CS_COUNT(rules); r++)
        for (size_t g = 0; g < CS_COUNT(greatest_of); g++) {
            struct cs_priority rule;
            REQUIRE(cs_priority_read(rules[r], &rule));
            int given, before = INT_MIN;
            for (size_t i = 0; i < CS_COUNT(asked); i++) {
                CHECK(cs_priority_change(&rule, asked[i], 0, greatest_of[g], &given));
                CHECK(given <= 0 && given >= greatest_of[g]);
                CHECK(given >= before || rule.kind == CS_PRIORITY_MAP);
                before = given;
            }
        }
}
