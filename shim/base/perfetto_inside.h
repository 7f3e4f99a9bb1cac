/* Between the files perfetto*.c. */
#ifndef CS_BASE_PERFETTO_INSIDE_H
#define CS_BASE_PERFETTO_INSIDE_H

#include "shim/base/perfetto.h"

enum { CS_PF_LIST = 128 }; /* with the type of a field: several values */
enum { CS_PF_FIELDS = 2047 }; /* whose tags have two bytes */

/* What has a number: of a sequence (`more`) the first three; of the file the others, fields by their type. */
enum cs_pf_kind { CS_PF_KNOWS_CATEGORY, CS_PF_KNOWS_NAME, CS_PF_KNOWS_KEY, CS_PF_KNOWS_FIELD, CS_PF_KNOWS_WORD, CS_PF_KNOWS_TRACK, CS_PF_KNOWS_LANE, CS_PF_KINDS };
cs_u32 cs_pf_learn_slowly(struct cs_pf *pf, enum cs_pf_kind kind, unsigned more, const struct cs_pf_text *text);
cs_u64 cs_pf_key_of(const struct cs_pf_text *text, unsigned of);
struct cs_pf_entry *cs_pf_entry(struct cs_pf *pf, const struct cs_pf_text *text, unsigned of);
cs_u32 cs_pf_number(struct cs_pf *pf, enum cs_pf_kind kind, const void *what, size_t n, bool *is_new); /* of a track or lane; 0: it cannot be kept */

/* Both in one number. Of a sequence, or of the types that fields have, `more` is less than 1 << 13. */
static inline unsigned cs_pf_of(enum cs_pf_kind kind, unsigned more) { return kind << 13 | more; }
_Static_assert(CS_PF_SEQUENCES <= 1 << 13 && CS_PF_KINDS <= 8, "they have 16 bits");
_Static_assert(CS_PF_OF_UINT == (CS_PF_KNOWS_FIELD << 13 | CS_PF_FIELD_UINT), "the same as cs_pf_of");

static inline bool cs_pf_is(const struct cs_pf *pf, const struct cs_pf_key *key, unsigned of) { return key->of == of && key->file == pf->file; }
static inline struct cs_pf_numbered *cs_pf_numbered(struct cs_pf *pf, const struct cs_pf_text *text, unsigned of)
{
    return &pf->numbered[((text->number * 0x9e3779b97f4a7c15u >> 32) + of * 37) % CS_COUNT(pf->numbered)];
}

/* Its number; 0: it cannot be told, or not yet. */
static inline cs_u32 cs_pf_learn(struct cs_pf *pf, enum cs_pf_kind kind, unsigned more, const struct cs_pf_text *text)
{
    const unsigned of = cs_pf_of(kind, more);
    if (text->kept && cs_pf_is(pf, text->kept, of)) return text->kept->field;
    if (text->text_of) {
        const struct cs_pf_numbered *numbered = cs_pf_numbered(pf, text, of);
        if (numbered->number == text->number && numbered->text_of == text->text_of && cs_pf_is(pf, &numbered->key, of)) return numbered->key.field;
    }
    return cs_pf_learn_slowly(pf, kind, more, text);
}

/* perfetto_track.c */
const struct cs_pf_lane *cs_pf_lane(struct cs_pf *pf, cs_u32 pid, cs_u32 tid); /* it stays until the next call */
cs_u64 cs_pf_counter_track(struct cs_pf *pf); /* of the counter that is being written, and the key */
void cs_pf_sequence_begins(struct cs_pf *pf, unsigned sequence, cs_u64 track); /* what its times mean, and the track that is understood; 0: none */
void cs_pf_root_tell(struct cs_pf *pf); /* of all tracks */

static inline char *cs_pf_literal(char *at, unsigned field, const char *text) { return cs_pf_bytes(at, field, text, strlen(text)); }

/* A packet among the news. */
char *cs_pf_news(struct cs_pf *pf, char **packet);
void cs_pf_news_end(struct cs_pf *pf, char *packet, char *at);
char *cs_pf_news_out(struct cs_pf *pf, char *at);

#endif
