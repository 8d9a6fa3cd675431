#include "daemon/tokenize/at_hand.h"

#include <errno.h>
#include <string.h>

void at_hand_fini(struct at_hand *at_hand) {
        for (uint32_t i = 0; i < at_hand->n; i++)
                tokenizer_unref(at_hand->items[i].tokenizer);
        at_hand->n = 0;
}

int at_hand_get(struct at_hand *at_hand, const char *name, struct tokenizer **ret_tokenizer, struct why *why) {
        for (uint32_t i = 0; i < at_hand->n; i++)
                if (strcmp(at_hand->items[i].name, name) == 0) {
                        *ret_tokenizer = tokenizer_ref(at_hand->items[i].tokenizer);
                        return 0;
                }
        if (at_hand->result < 0 && strcmp(at_hand->missing, name) == 0)
                return why_set(why, at_hand->result, "%s", at_hand->why.text);
        if (at_hand->n == AT_HAND_MAX)
                return why_set(why, -EINVAL, "more than %u tokenizers are named", AT_HAND_MAX);
        strcpy(at_hand->missing, name);
        at_hand->result = 0;
        return why_set(why, -EAGAIN, "tokenizer %s is being read", name);
}

bool at_hand_lacks(const struct at_hand *at_hand) {
        return at_hand->missing[0] && at_hand->result == 0;
}

void at_hand_put(struct at_hand *at_hand, int result, struct tokenizer *tokenizer, const struct why *why) {
        at_hand->result = result;
        if (result < 0) {
                at_hand->why = *why;
                return;
        }
        strcpy(at_hand->items[at_hand->n].name, at_hand->missing);
        at_hand->items[at_hand->n++].tokenizer = tokenizer;
        at_hand->missing[0] = '\0';
}
