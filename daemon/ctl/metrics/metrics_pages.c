#include "daemon/ctl/metrics/metrics_pages.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/ctl/metrics/metrics.h"

static void metrics_pages_give_up(struct told *told) {
        free(told->text);
        *told = (struct told){ .text = NULL };
}

/* One that is free, or else the oldest. */
static struct told *room_in(struct server *server) {
        struct told *room = &server->told[0];

        for (size_t i = 1; i < TOLD_MAX; i++)
                if (server->told[i].number < room->number)
                        room = &server->told[i];
        metrics_pages_give_up(room);
        return room;
}

int metrics_pages_make(struct session *session, uint64_t *ret_number) {
        struct server *server = session->server;
        struct metrics metrics;
        struct told *told;
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
        told = room_in(server);
        *told = (struct told){ .session = session, .number = ++server->n_told, .text = text, .n = n };
        *ret_number = told->number;
        return 0;
}

int metrics_pages_part(struct session *session, uint64_t number, uint64_t first, size_t n_max, const char **ret_part,
                       size_t *ret_n, uint64_t *ret_next) {
        for (size_t i = 0; i < TOLD_MAX; i++) {
                struct told *told = &session->server->told[i];

                if (!told->text || told->session != session || told->number != number)
                        continue;
                if (first >= told->n)
                        return -EINVAL;
                *ret_part = told->text + first;
                *ret_n = told->n - first < n_max ? told->n - first : n_max;
                *ret_next = first + *ret_n < told->n ? first + *ret_n : 0;
                return 0;
        }
        return -EAGAIN;
}

void metrics_pages_drop(struct server *server, const struct session *session) {
        for (size_t i = 0; i < TOLD_MAX; i++)
                if (server->told[i].session == session)
                        metrics_pages_give_up(&server->told[i]);
}
