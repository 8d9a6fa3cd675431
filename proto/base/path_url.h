/* proto/base/path_url.h: paths of datasets that are URLs, which name what lies elsewhere. */
#pragma once

#include <stdbool.h>
#include <string.h>

#define PATH_URL_SCHEMES "s3://, gs://, hf://, https:// or http://"

static inline bool path_is_url(const char *path) {
        static const char *const SCHEMES[] = { "s3://", "gs://", "hf://", "https://", "http://" };

        for (size_t i = 0; i < sizeof(SCHEMES) / sizeof(SCHEMES[0]); i++)
                if (strncmp(path, SCHEMES[i], strlen(SCHEMES[i])) == 0)
                        return true;
        return false;
}
