/* Any bytes as a page of an object store's listing. */
#include <stdlib.h>
#include <string.h>

#include "daemon/fetch/origin/s3_listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static int on_object(void *userdata, const struct s3_object *object) {
        if (!object->key[0] || strlen(object->key) > S3_KEY_MAX || !object->etag)
                abort();
        return ++*(int *)userdata == 1000 ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        struct s3_page page;
        struct why why = { 0 };
        int n_objects = 0;

        if (s3_listing_parse((const char *)data, n_bytes, on_object, &n_objects, &page, &why) == 0) {
                if (strnlen(page.token, sizeof(page.token)) == sizeof(page.token) ||
                    page.n_objects != (uint64_t)n_objects)
                        abort();
        } else if (!why.text[0] && n_objects < 1000) {
                abort();
        }
        return 0;
}
