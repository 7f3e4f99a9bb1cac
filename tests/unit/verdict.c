/* What is said of a trace, in words (base/verdict.h). */
#include "shim/base/verdict.h"

#include "tests/unit/check.h"

static char text[4096];

static const char *sentence(struct cs_verdict v)
{
    cs_verdict_sentence(text, sizeof text, 0, &v);
    return text;
}

static const char *state(struct cs_verdict v)
{
    cs_verdict_state(text, sizeof text, 0, &v);
    return text;
}

static const char *losses(struct cs_verdict v)
{
    cs_verdict_losses(text, sizeof text, 0, &v);
    return text;
}

TEST(the_sentence_of_a_whole_trace)
{
    CHECK_TEXT(sentence((struct cs_verdict){.calls = 163, .operations = 58, .complete = true}),
        "163 calls, 58 GPU operations, nothing lost");
    CHECK_TEXT(sentence((struct cs_verdict){.calls = 1, .operations = 1, .complete = true}),
        "1 call, 1 GPU operation, nothing lost");
    CHECK_TEXT(sentence((struct cs_verdict){.calls = 2, .complete = true, .no_gpu_times = true}),
        "2 calls, nothing lost, no GPU times");
}

TEST(the_sentence_says_what_is_missing)
{
    CHECK_TEXT(sentence((struct cs_verdict){
                   .calls = 2, .operations = 3, .complete = true, .lost_calls = 7}),
        "2 calls, 3 GPU operations, lost records 7");
    CHECK_TEXT(sentence((struct cs_verdict){
                   .calls = 2, .operations = 3, .complete = true, .lost_work = 7}),
        "2 calls, 3 GPU operations, lost records 0, lost GPU work 7");
    CHECK_TEXT(
        sentence((struct cs_verdict){.calls = 2, .operations = 3, .complete = true, .untimed = 1}),
        "2 calls, 3 GPU operations, 1 GPU operation without times");
    CHECK_TEXT(sentence((struct cs_verdict){
                   .calls = 2, .operations = 3, .complete = true, .without_call = 1}),
        "2 calls, 3 GPU operations, 1 GPU operation without its call");
    CHECK_TEXT(sentence((struct cs_verdict){
                   .calls = 2, .operations = 3, .complete = true, .without_call = 2}),
        "2 calls, 3 GPU operations, 2 GPU operations without their calls");
    CHECK_TEXT(sentence((struct cs_verdict){
                   .calls = 2, .operations = 3, .complete = true, .gpu_cause = "x"}),
        "2 calls, 3 GPU operations, GPU times missing: x");
    CHECK_TEXT(sentence((struct cs_verdict){
                   .calls = 2, .complete = true, .no_gpu_times = true, .gpu_cause = "x"}),
        "2 calls, no GPU times: x");
    CHECK_TEXT(sentence((struct cs_verdict){.calls = 2, .operations = 3}),
        "2 calls, 3 GPU operations; incomplete: the process had not ended when the trailer was "
        "written");
    CHECK_TEXT(sentence((struct cs_verdict){.calls = 2,
                   .operations = 3,
                   .complete = true,
                   .ended = "its size limit",
                   .lost_calls = 4,
                   .calls_not_written = 4}),
        "2 calls, 3 GPU operations, lost records 4; ended at its size limit: 4 calls and 0 pieces "
        "of GPU work not written, later ones not counted");
}

TEST(what_a_full_table_lost_is_said)
{
    struct cs_verdict v = {
        .calls = 2, .operations = 3, .complete = true, .no_room = {[CS_NO_ROOM_FOR_WAITS] = 1}};
    CHECK_TEXT(sentence(v), "2 calls, 3 GPU operations, 1 wait without the work that released it");
    CHECK_TEXT(state(v), "incomplete");
    v.no_room[CS_NO_ROOM_FOR_WAITS] = 20;
    CHECK_TEXT(losses(v), "lost records 0, 20 waits without the work that released them");
}

TEST(the_state)
{
    CHECK_TEXT(state((struct cs_verdict){.complete = true}), "ok");
    CHECK_TEXT(state((struct cs_verdict){.complete = true, .without_call = 1}), "incomplete");
    CHECK_TEXT(state((struct cs_verdict){.cause = "c"}), "incomplete: c");
    CHECK_TEXT(state((struct cs_verdict){.no_memory_for = "a, b", .cause = "c"}),
        "incomplete: no memory for a, b");
    CHECK_TEXT(state((struct cs_verdict){.ended_by = "SIGTERM"}),
        "incomplete: ended by SIGTERM, and what came in the last half second may be missing");
    CHECK_TEXT(state((struct cs_verdict){.ended_by = "SIGTERM", .no_memory_for = "a"}),
        "incomplete: ended by SIGTERM, and what came in the last half second may be missing; no "
        "memory for a");
    CHECK_TEXT(state((struct cs_verdict){
                   .ended = "the disk is full", .no_memory_for = "a", .ended_by = "SIGKILL"}),
        "ended: the disk is full: 0 calls and 0 pieces of GPU work not written, later ones not "
        "counted; no memory for a; ended by SIGKILL");
}

TEST(the_losses)
{
    CHECK_TEXT(losses((struct cs_verdict){0}), "lost records 0");
    CHECK_TEXT(
        losses((struct cs_verdict){
            .lost_calls = 1, .lost_work = 2, .no_gpu_times = true, .gpu_cause = "c", .untimed = 3}),
        "lost records 1, lost GPU work 2, no GPU times: c, 3 GPU operations without times");
}

TEST(a_file_for_the_shell)
{
    static const char *const rows[][2] = {{"a/b-1.json.gz", "a/b-1.json.gz"}, {"a b", "'a b'"},
        {"it's", "'it'\\''s'"}, {"$x", "'$x'"}, {"-x", "./-x"}, {"~x", "'~x'"},
        {"a\nb", "$'a\\012b'"}, {"it's\t\\", "$'it\\047s\\011\\134'"}};
    for (size_t i = 0; i < CS_COUNT(rows); i++) {
        cs_verdict_advice(text, sizeof text, 0, rows[i][0]);
        char said[128];
        snprintf(said, sizeof said, "Next: custream report %s; custream open %s", rows[i][1],
            rows[i][1]);
        CHECK_TEXT(text, said);
    }
}

TEST(what_does_not_fit_is_cut)
{
    char small[8] = "";
    CHECK_IS(cs_verdict_sentence(small, sizeof small, 0, &(struct cs_verdict){.calls = 163}), 7);
    CHECK_TEXT(small, "163 cal");
    CHECK_IS(cs_verdict_put(small, sizeof small, 7, "more"), 7);
}

TEST(a_path_from_a_folder)
{
    CHECK_TEXT(cs_path_from("/a/b/c.json", "/a/b"), "c.json");
    CHECK_TEXT(cs_path_from("/a/b/c.json", "/a"), "b/c.json");
    CHECK_TEXT(cs_path_from("/a/bc.json", "/a/b"), "/a/bc.json");
    CHECK_TEXT(cs_path_from("/c.json", "/"), "/c.json");
    CHECK_TEXT(cs_path_from("/c.json", ""), "/c.json");
}
