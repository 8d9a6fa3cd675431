#include "daemon/fetch/redirects.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "proto/base/clock.h"

#define REDIRECTS_MAX 1024u           /* a place for each hash; who comes later takes it */
#define KEPT_NS       300000000000ull /* storages sign for an hour */

struct redirect {
        char *url, *target; /* NULL: none */
        uint64_t until_ns;
};

struct redirects {
        pthread_mutex_t lock; /* a leaf; covers the rest */
        struct redirect places[REDIRECTS_MAX];
};

static struct redirect *redirects_place(struct redirects *redirects, const char *url) {
        return &redirects->places[XXH3_64bits(url, strlen(url)) % REDIRECTS_MAX];
}

static void redirect_clear(struct redirect *redirect) {
        free(redirect->url);
        free(redirect->target);
        *redirect = (struct redirect){ 0 };
}

struct redirects *redirects_new(void) {
        struct redirects *redirects = calloc(1, sizeof(*redirects));

        if (redirects)
                pthread_mutex_init(&redirects->lock, NULL);
        return redirects;
}

void redirects_free(struct redirects *redirects) {
        if (!redirects)
                return;
        for (uint32_t i = 0; i < REDIRECTS_MAX; i++)
                redirect_clear(&redirects->places[i]);
        pthread_mutex_destroy(&redirects->lock);
        free(redirects);
}

char *redirects_get(struct redirects *redirects, const char *url) {
        struct redirect *redirect = redirects_place(redirects, url);
        char *target = NULL;

        pthread_mutex_lock(&redirects->lock);
        if (redirect->url && strcmp(redirect->url, url) == 0 && clock_now_ns() < redirect->until_ns)
                target = strdup(redirect->target);
        pthread_mutex_unlock(&redirects->lock);
        return target;
}

void redirects_set(struct redirects *redirects, const char *url, const char *target) {
        struct redirect *redirect = redirects_place(redirects, url);

        pthread_mutex_lock(&redirects->lock);
        redirect_clear(redirect);
        redirect->url = strdup(url);
        redirect->target = strdup(target);
        redirect->until_ns = clock_now_ns() + KEPT_NS;
        if (!redirect->url || !redirect->target)
                redirect_clear(redirect);
        pthread_mutex_unlock(&redirects->lock);
}

void redirects_forget(struct redirects *redirects, const char *url) {
        struct redirect *redirect = redirects_place(redirects, url);

        pthread_mutex_lock(&redirects->lock);
        if (redirect->url && strcmp(redirect->url, url) == 0)
                redirect_clear(redirect);
        pthread_mutex_unlock(&redirects->lock);
}
