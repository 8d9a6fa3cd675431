#include "client/dlctl/web/past.h"

#include <string.h>

static void forget_oldest(struct past *past) {
        glance_free(past->looks[0].glance);
        memmove(past->looks, past->looks + 1, --past->n * sizeof(past->looks[0]));
}

void past_take(struct past *past, uint64_t now_ns, struct glance *glance) {
        if (past->n > 0 && now_ns - past->looks[past->n - 1].ns < PAST_GAP_NS) {
                glance_free(glance);
                return;
        }
        if (past->n == PAST_LOOKS)
                forget_oldest(past);
        past->looks[past->n++] = (struct past_look){ now_ns, glance };
}

bool past_find(const struct past *past, uint64_t now_ns, const Dlp__Job *job, struct look *ret_look) {
        for (size_t i = 0; i < past->n; i++)
                if (now_ns - past->looks[i].ns <= (PAST_LOOKS + 1) * PAST_GAP_NS &&
                    glance_find(past->looks[i].glance, job, ret_look))
                        return true;
        return false;
}

void past_free(struct past *past) {
        while (past->n > 0)
                forget_oldest(past);
}
