#include "daemon/ctl/metrics/metrics_pages.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/ctl/metrics/metrics.h"

static void metrics_pages_give_up(struct paged_text *paged) {
        free(paged->text);
        *paged = (struct paged_text){ .text = NULL };
}

/* One that is free, or else the oldest. */
static struct paged_text *room_in(struct server *server) {
        struct paged_text *room = &server->paged[0];

        for (size_t i = 1; i < PAGED_TEXTS_MAX; i++)
                if (server->paged[i].number < room->number)
                        room = &server->paged[i];
        metrics_pages_give_up(room);
        return room;
}

int metrics_pages_make(struct session *session, uint64_t *ret_number) {
        struct server *server = session->server;
        struct metrics metrics;
        struct paged_text *paged;
        char *text = NULL;
        size_t n = 0;
        int r;

        metrics_pages_drop(server, session);
        r = metrics_collect(server, session, &metrics);
        if (r == 0)
                r = metrics_write(&metrics, &text, &n);
        metrics_free(&metrics);
        if (r < 0)
                return r;
        paged = room_in(server);
        *paged = (struct paged_text){ .session = session, .number = ++server->n_paged, .text = text, .n = n };
        *ret_number = paged->number;
        return 0;
}

int metrics_pages_part(struct session *session, uint64_t number, uint64_t first, size_t n_max, const char **ret_part,
                       size_t *ret_n, uint64_t *ret_next) {
        for (size_t i = 0; i < PAGED_TEXTS_MAX; i++) {
                struct paged_text *paged = &session->server->paged[i];

                if (!paged->text || paged->session != session || paged->number != number)
                        continue;
                if (first >= paged->n)
                        return -EINVAL;
                *ret_part = paged->text + first;
                *ret_n = paged->n - first < n_max ? paged->n - first : n_max;
                *ret_next = first + *ret_n < paged->n ? first + *ret_n : 0;
                return 0;
        }
        return -EAGAIN;
}

void metrics_pages_drop(struct server *server, const struct session *session) {
        for (size_t i = 0; i < PAGED_TEXTS_MAX; i++)
                if (server->paged[i].session == session)
                        metrics_pages_give_up(&server->paged[i]);
}
