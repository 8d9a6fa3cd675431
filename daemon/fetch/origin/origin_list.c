/* A list of URLs. It has no sizes, so the server is asked for each, many at a time: a request a file, which a
 * manifest saves. One thread asks all of them once; what is left after the first that fails is for threads that ask one
 * after the other, again, in other ways, and say what is wrong. */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/patterns/braces.h"
#include "daemon/base/work/crew.h"
#include "daemon/fetch/origin/origin_private.h"
#include "daemon/fetch/origin/origin_reach.h"
#include "daemon/fetch/origin/url_list.h"
#include "proto/base/cleanup.h"

#define THREADS_DEFAULT 16u
#define THREADS_MOST    64u          /* they wait each for itself */
#define TICK_NS         100000000ull /* how soon a cancelled survey is noticed */

struct fact {
        bool is_known;
        uint64_t n_bytes;
        char *etag;     /* NULL: none */
        char *modified; /* where there is no ETag; NULL: none */
};

struct lookers {
        struct origin_run *run;
        const struct url_list *list;
        struct fact *facts; /* one an item; written by the thread that took it, read once all have ended */
        _Atomic uint64_t n_taken;
        _Atomic uint64_t n_done;
        _Atomic bool stop;

        pthread_mutex_t lock; /* a leaf; covers the rest */
        uint64_t idx_failed;  /* the first in the list's order of those that failed */
        int result;
        struct why why;
};

/* ---- the threads --------------------------------------------------------------------------------------------- */

static void note_failure(struct lookers *lookers, uint64_t idx, int result, const struct why *why) {
        pthread_mutex_lock(&lookers->lock);
        /* The run was cancelled if the first says so; later ones were only stopped by another's failure. */
        if (lookers->result == 0 ||
            (result != -ECANCELED && lookers->result != -ECANCELED && idx < lookers->idx_failed)) {
                lookers->result = result;
                lookers->idx_failed = idx;
                lookers->why = *why;
        }
        pthread_mutex_unlock(&lookers->lock);
        lookers->stop = true;
}

static int list_note(struct fact *fact, const struct http_facts *facts) {
        char *known = NULL;

        if (facts->etag[0] || facts->modified[0]) {
                known = strdup(facts->etag[0] ? facts->etag : facts->modified);
                if (!known)
                        return -ENOMEM;
        }
        *(facts->etag[0] ? &fact->etag : &fact->modified) = known;
        fact->n_bytes = facts->n_bytes;
        fact->is_known = true;
        return 0;
}

static int list_look(struct lookers *lookers, uint64_t idx, struct why *why) {
        const char *url = lookers->list->items[idx].url;
        struct http_facts facts;
        struct url address;
        int r = url_parse(url, &address, why);

        if (r == 0)
                r = origin_look(lookers->run->http, url, &address, &lookers->stop, &facts, why);
        return r < 0 ? r : list_note(&lookers->facts[idx], &facts);
}

static void list_look_on(void *userdata) {
        struct lookers *lookers = userdata;

        while (!lookers->stop) {
                uint64_t idx = lookers->n_taken++;
                struct why why = { 0 };
                int r;

                if (idx >= lookers->list->n_items)
                        break;
                if (lookers->facts[idx].is_known)
                        continue;
                r = list_look(lookers, idx, &why);
                if (r < 0)
                        note_failure(lookers, idx, r, &why);
                lookers->n_done++;
        }
}

/* Reports the progress, and stops the threads when the run is cancelled. */
static void list_on_tick(void *userdata) {
        struct lookers *lookers = userdata;

        struct why why;
        int r = lookers->stop ? 0 : origin_progress(lookers->run, lookers->n_done, &why);

        if (r < 0)
                note_failure(lookers, 0, r, &why);
}

/* ---- by one thread, as long as all goes well --------------------------------------------------------------------- */

static const char *list_url(void *userdata, uint64_t idx) {
        const struct lookers *lookers = userdata;
        const char *url = lookers->list->items[idx].url;

        return strncmp(url, "file:", 5) == 0 ? NULL : url;
}

/* What origin_look() would refuse, it shall: it knows why. */
static bool list_take(void *userdata, uint64_t idx, const struct http_facts *facts) {
        struct lookers *lookers = userdata;

        if (facts->is_html || facts->n_bytes == UINT64_MAX || list_note(&lookers->facts[idx], facts) < 0)
                return false;
        lookers->n_done++;
        return true;
}

static bool list_is_to_stop(void *userdata) {
        struct lookers *lookers = userdata;

        list_on_tick(lookers);
        return lookers->stop;
}

static int list_look_at_all(struct lookers *lookers, struct why *why) {
        struct origin_run *run = lookers->run;
        uint64_t n = run->options->n_connections ? run->options->n_connections : THREADS_DEFAULT;
        struct http_looks looks = { .n = lookers->list->n_items,
                                    .url = list_url,
                                    .take = list_take,
                                    .is_to_stop = list_is_to_stop,
                                    .userdata = lookers };
        int r;

        if (n > lookers->list->n_items)
                n = lookers->list->n_items;
        looks.n_connections = (uint32_t)n;
        if (n > 0)
                http_look_at_many(run->http, &looks);
        if (lookers->n_done == lookers->list->n_items || lookers->stop)
                return lookers->result < 0 ? why_set(why, lookers->result, "%s", lookers->why.text) : 0;
        n = n < THREADS_MOST ? n : THREADS_MOST;
        r = crew_run("survey", (uint32_t)n, list_look_on, TICK_NS, list_on_tick, lookers);
        if (r < 0)
                return why_errno(why, r, "%s: no thread to ask with", run->shown);
        return lookers->result < 0 ? why_set(why, lookers->result, "%s", lookers->why.text) : 0;
}

/* ---- the plan ------------------------------------------------------------------------------------------------ */

static int add_all(const struct lookers *lookers, struct why *why) {
        int r = 0;

        for (uint64_t i = 0; i < lookers->list->n_items && r == 0; i++) {
                const struct url_list_item *item = &lookers->list->items[i];
                struct plan_file file = { .path = item->path,
                                          .n_bytes = lookers->facts[i].n_bytes,
                                          .etag = lookers->facts[i].etag,
                                          .modified = lookers->facts[i].modified };

                r = origin_add(lookers->run, &file, item->url, why);
        }
        return r;
}

static int list_survey(struct origin_run *run, const struct url_list *list, struct why *why) {
        struct lookers lookers = { .run = run, .list = list, .facts = calloc(list->n_items, sizeof(struct fact)) };
        int r;

        if (!lookers.facts)
                return -ENOMEM;
        pthread_mutex_init(&lookers.lock, NULL);

        r = list_look_at_all(&lookers, why);
        if (r == 0)
                r = add_all(&lookers, why);

        pthread_mutex_destroy(&lookers.lock);
        for (uint64_t i = 0; i < list->n_items; i++) {
                free(lookers.facts[i].etag);
                free(lookers.facts[i].modified);
        }
        free(lookers.facts);
        return r;
}

static int check_reach(struct origin_run *run, const struct url_list *list, struct why *why) {
        struct origin_reach reach;
        struct why inner;
        int r = 0;

        origin_reach_init(&reach, &run->address);
        for (uint64_t i = 0; i < list->n_items && r == 0; i++)
                r = origin_reach_check(&reach, list->items[i].url, &inner);
        return r < 0 ? why_set(why, r, "%s: %s", run->shown, inner.text) : 0;
}

/* ---- braces -------------------------------------------------------------------------------------------------- */

struct names {
        char *text; /* a line each */
        size_t n_bytes, n_room;
        const char *rest; /* of the URL, after its path */
};

static int add_name(void *userdata, const char *text, size_t n_bytes) {
        struct names *names = userdata;
        size_t n_needed = names->n_bytes + n_bytes + strlen(names->rest) + 1;

        if (n_needed > names->n_room) {
                size_t n_room = 2 * n_needed;
                char *grown = realloc(names->text, n_room);

                if (!grown)
                        return -ENOMEM;
                names->text = grown;
                names->n_room = n_room;
        }
        names->n_bytes += (size_t)sprintf(names->text + names->n_bytes, "%s%s\n", text, names->rest);
        return 0;
}

/* Braces in a query stand for nothing. */
int origin_names(struct origin_run *run, struct why *why) {
        const struct url *address = &run->address;
        _cleanup_(freep) char *pattern = strndup(address->text, (size_t)(address->rest - address->text));
        struct names names = { .rest = address->rest };
        struct braces_sink sink = { .give = add_name, .userdata = &names };
        struct url_list list;
        int r;

        if (!pattern)
                return -ENOMEM;
        r = braces_expand(pattern, &sink, why);
        if (r == 0)
                r = url_list_parse(names.text, names.n_bytes, run->shown, &list, why);
        free(names.text);
        if (r < 0)
                return r;
        r = list_survey(run, &list, why);
        url_list_fini(&list);
        return r;
}

int origin_list(struct origin_run *run, struct why *why) {
        struct http_answer answer = { 0 };
        struct url_list list;
        int r;

        r = origin_text(run, NULL, &answer, why);
        if (r < 0)
                return r;
        r = url_list_parse(answer.body, answer.n_bytes, run->shown, &list, why);
        http_answer_fini(&answer);
        if (r < 0)
                return r;
        r = check_reach(run, &list, why);
        if (r == 0)
                r = list_survey(run, &list, why);
        url_list_fini(&list);
        return r;
}
