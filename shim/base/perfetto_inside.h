/* Between perfetto.c and perfetto_event.c. */
#ifndef CS_BASE_PERFETTO_INSIDE_H
#define CS_BASE_PERFETTO_INSIDE_H

#include "shim/base/perfetto.h"

enum { CS_PF_LIST = 128 }; /* with the type of a field: several values */

/* What has a number: of a sequence (`more`) the first three; of the file the others, fields by their type. */
enum cs_pf_kind { CS_PF_KNOWS_CATEGORY, CS_PF_KNOWS_NAME, CS_PF_KNOWS_KEY, CS_PF_KNOWS_FIELD, CS_PF_KNOWS_WORD, CS_PF_KNOWS_TRACK };
cs_u32 cs_pf_learn(struct cs_pf *pf, enum cs_pf_kind kind, unsigned more, const struct cs_pf_text *text); /* 0: it cannot be told */

cs_u64 cs_pf_thread_track(struct cs_pf *pf, cs_u32 pid, cs_u32 tid);
cs_u64 cs_pf_counter_track(struct cs_pf *pf); /* of the counter that is being written, and the key */

char *cs_pf_put_text(char *at, unsigned field, const char *text, size_t n); /* with what is no UTF-8 replaced */

/* A packet among the news. */
char *cs_pf_news(struct cs_pf *pf, char **packet);
void cs_pf_news_end(struct cs_pf *pf, char *packet, char *at);

#endif
