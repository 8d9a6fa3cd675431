#include "daemon/data/index/indexing_json.h"

#include <errno.h>
#include <stdlib.h>

#define PAID_AT_ONCE (64u << 10)
#define PIECE_MORE   16u /* bytes that malloc() adds to a piece, about */

static _Thread_local struct indexing_json *reading;

/* Nothing of a tree is given back before the tree is, so that no piece needs to know who has paid for it. */
static int indexing_json_pay(struct indexing_json *json, size_t n) {
        uint64_t n_more = n > PAID_AT_ONCE ? n : PAID_AT_ONCE;

        json->n_used += n + PIECE_MORE;
        if (json->n_used <= json->n_paid)
                return 0;
        n_more += PIECE_MORE;
        if (indexing_is_over())
                return -ECANCELED;
        if (indexing_pay_for(json->payer, n_more, json->name) < 0)
                return -ENOMEM;
        json->n_paid += n_more;
        return 0;
}

static void *indexing_json_take(size_t n) {
        struct indexing_json *json = reading;
        void *bytes = NULL;

        if (!json)
                return malloc(n);
        if (json->error == 0)
                json->error = indexing_json_pay(json, n);
        if (json->error == 0) {
                bytes = malloc(n);
                json->error = bytes ? 0 : -ENOMEM;
        }
        return bytes;
}

/* All of cJSON's memory in this program; before there is a second thread. */
__attribute__((constructor)) static void indexing_json_begin(void) {
        cJSON_InitHooks(&(cJSON_Hooks){ .malloc_fn = indexing_json_take, .free_fn = free });
}

int indexing_json_read(struct indexing_json *json, const char *name, const char *text, size_t n_bytes) {
        *json = (struct indexing_json){ .payer = indexing_joined(), .name = name };
        reading = json;
        json->root = cJSON_ParseWithLength(text, n_bytes);
        reading = NULL;
        if (json->error == 0)
                return 0;
        indexing_json_fini(json);
        return json->error;
}

void indexing_json_fini(struct indexing_json *json) {
        cJSON_Delete(json->root);
        indexing_pay_back(json->payer, json->n_paid);
        json->root = NULL;
        json->n_paid = 0;
}
