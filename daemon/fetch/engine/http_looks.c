/* http_look_at_many(): HEADs of many documents side by side, by one thread. */
#include <stddef.h>
#include <stdlib.h>

#include "daemon/fetch/engine/sockets.h"
#include "daemon/fetch/http_private.h"
#include "daemon/fetch/http_request.h"
#include "proto/base/clock.h"

#define TURN_NS 100000000ull /* how soon *stop is noticed */

struct looking {
        CURL *easy;
        struct http_request request; /* of zeros: none is under way */
        uint64_t idx;
};

struct lookings {
        struct http *http;
        const struct http_looks *looks;
        struct sockets sockets;
        struct looking *all;
        uint64_t idx_next;
        uint32_t n_running;
        bool is_over; /* nothing more is begun: one did not work as it should */
};

static bool looking_begin(struct lookings *lookings, struct looking *looking, const char *url) {
        struct http_ask ask = { .url = url, .only_head = true };
        struct why why;

        if (!looking->easy)
                looking->easy = curl_easy_init();
        if (looking->easy && http_request_init(&looking->request, lookings->http, looking->easy, &ask, &why) == 0 &&
            curl_multi_add_handle(lookings->sockets.multi, looking->easy) == CURLM_OK)
                return true;
        http_request_fini(&looking->request);
        return false;
}

/* The next one that is asked for, on this handle. */
static void looking_go_on(struct lookings *lookings, struct looking *looking) {
        const char *url = NULL;

        while (!url && lookings->idx_next < lookings->looks->n)
                url = lookings->looks->url(lookings->looks->userdata, looking->idx = lookings->idx_next++);
        if (!url)
                return;
        if (looking_begin(lookings, looking, url))
                lookings->n_running++;
        else
                lookings->is_over = true;
}

static void looking_end(struct lookings *lookings, struct looking *looking, CURLcode result) {
        struct http_failure failure;
        struct http_facts facts;
        bool is_good = http_request_judge(&looking->request, result, &failure) == 0;

        if (is_good)
                facts = http_facts_of(&looking->request.head);
        curl_multi_remove_handle(lookings->sockets.multi, looking->easy);
        http_request_fini(&looking->request);
        lookings->n_running--;
        if (!is_good || !lookings->looks->take(lookings->looks->userdata, looking->idx, &facts))
                lookings->is_over = true;
}

static void looking_turn(struct lookings *lookings) {
        CURLMsg *message;
        int n_left;

        sockets_turn(&lookings->sockets, clock_now_ns() + TURN_NS);
        while ((message = curl_multi_info_read(lookings->sockets.multi, &n_left))) {
                CURLcode result = message->data.result;
                struct looking *looking;
                char *request = NULL;

                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
                looking = (struct looking *)(request - offsetof(struct looking, request));
                looking_end(lookings, looking, result);
                if (!lookings->is_over)
                        looking_go_on(lookings, looking);
        }
}

void http_look_at_many(struct http *http, const struct http_looks *looks) {
        struct lookings lookings = { .http = http, .looks = looks };
        uint32_t n_begun = 1;

        lookings.all = calloc(looks->n_connections, sizeof(*lookings.all));
        if (!lookings.all || sockets_init(&lookings.sockets) < 0) {
                free(lookings.all);
                return;
        }
        curl_multi_setopt(lookings.sockets.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)looks->n_connections);
        curl_multi_setopt(lookings.sockets.multi, CURLMOPT_MAXCONNECTS, (long)looks->n_connections);
        looking_go_on(&lookings, &lookings.all[0]);
        while (lookings.n_running > 0 && !lookings.is_over && !looks->is_to_stop(looks->userdata)) {
                if (n_begun < looks->n_connections && http_has_name(lookings.all[0].easy)) /* asked for once */
                        while (n_begun < looks->n_connections && !lookings.is_over)
                                looking_go_on(&lookings, &lookings.all[n_begun++]);
                looking_turn(&lookings);
        }

        for (uint32_t i = 0; i < looks->n_connections; i++) {
                if (lookings.all[i].request.easy) {
                        curl_multi_remove_handle(lookings.sockets.multi, lookings.all[i].easy);
                        http_request_fini(&lookings.all[i].request);
                }
                if (lookings.all[i].easy)
                        curl_easy_cleanup(lookings.all[i].easy);
        }
        sockets_fini(&lookings.sockets);
        free(lookings.all);
}
