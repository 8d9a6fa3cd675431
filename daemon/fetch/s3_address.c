#include "daemon/fetch/s3_address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/record/url.h"

#define BUCKET_BYTES_MAX 255u /* of old ones; 63 since 2018 */
#define KEY_BYTES_MAX    1024u

static bool is_letter_or_digit(char byte) {
        return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
}

int s3_store_check(const struct s3_store *store, struct why *why) {
        char shown[URL_SHOWN_SIZE];

        if (strcmp(store->addressing, "auto") != 0 && strcmp(store->addressing, "path") != 0 &&
            strcmp(store->addressing, "virtual") != 0)
                return why_set(why, -EINVAL, "addressing \"%s\": write auto, path or virtual", store->addressing);
        for (const char *at = store->region; *at; at++)
                if (!is_letter_or_digit(*at) && *at != '-' && *at != '_')
                        return why_set(why, -EINVAL, "region \"%s\": letters, digits and '-', as in us-east-1",
                                       store->region);
        if (!*store->region)
                return why_set(why, -EINVAL, "region \"\": leave it out for us-east-1");
        if (!store->endpoint)
                return 0;

        if (!url_is_endpoint(store->endpoint))
                return why_set(why, -EINVAL, "endpoint \"%s\": write http://host:port or https://host",
                               url_show(store->endpoint, shown));
        return 0;
}

static int check_bucket(const char *scheme, const char *bucket, size_t n_bytes, struct why *why) {
        bool ok = n_bytes > 0 && n_bytes <= BUCKET_BYTES_MAX && is_letter_or_digit(bucket[0]);

        for (size_t i = 0; i < n_bytes && ok; i++)
                ok = is_letter_or_digit(bucket[i]) || strchr("-._", bucket[i]);
        if (!ok)
                return why_set(why, -EINVAL, "%s://%s: \"%.*s\" is not a valid name of a bucket", scheme, bucket,
                               (int)(n_bytes < 64 ? n_bytes : 64), bucket);
        return 0;
}

/* A bucket with dots is not covered by the certificate of *.s3.amazonaws.com. */
static bool is_virtual(const struct s3_store *store, const char *bucket, size_t n_bucket) {
        if (strcmp(store->addressing, "auto") != 0)
                return strcmp(store->addressing, "virtual") == 0;
        return !store->endpoint && !memchr(bucket, '.', n_bucket);
}

int s3_address(const struct s3_store *store, const char *url, char **ret_url, struct why *why) {
        const char *bucket, *key, *host;
        size_t n_bucket, n_host, n_scheme, n_size;
        char aws[160], *address, *at;
        struct url parsed;
        int r = url_parse(url, &parsed, why);

        if (r < 0)
                return r;
        if (parsed.scheme != URL_S3 && parsed.scheme != URL_GS)
                return why_set(why, -EINVAL, "\"%s\" is not an s3:// or gs:// URL", url);
        bucket = parsed.host;
        n_bucket = parsed.n_host;
        r = check_bucket(url_scheme_name(parsed.scheme), bucket, n_bucket, why);
        if (r < 0)
                return r;
        key = bucket[n_bucket] == '/' ? bucket + n_bucket + 1 : bucket + n_bucket;
        if (strlen(key) > KEY_BYTES_MAX)
                return why_set(why, -EINVAL, "%s: a key has %u bytes at most", url, KEY_BYTES_MAX);

        host = store->endpoint;
        if (!host) {
                if (snprintf(aws, sizeof(aws), "https://s3.%s.amazonaws.com%s", store->region,
                             strncmp(store->region, "cn-", 3) == 0 ? ".cn" : "") >= (int)sizeof(aws))
                        return why_set(why, -EINVAL, "region \"%.64s...\" is too long", store->region);
                host = aws;
        }
        n_host = strlen(host);
        while (n_host > 0 && host[n_host - 1] == '/')
                n_host--;
        n_scheme = (size_t)(strstr(host, "://") + 3 - host);

        n_size = n_host + n_bucket + 3 * strlen(key) + 4;
        address = at = malloc(n_size);
        if (!address)
                return -ENOMEM;
        if (is_virtual(store, bucket, n_bucket))
                at += snprintf(at, n_size, "%.*s%.*s.%.*s/", (int)n_scheme, host, (int)n_bucket, bucket,
                               (int)(n_host - n_scheme), host + n_scheme);
        else
                at += snprintf(at, n_size, "%.*s/%.*s%s", (int)n_host, host, (int)n_bucket, bucket, *key ? "/" : "");
        url_encode_path(key, at);

        *ret_url = address;
        return 0;
}
