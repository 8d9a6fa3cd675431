#include "client/dlctl/web/web_watch.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/command.h"
#include "client/dlctl/inquiry/inquiry.h"
#include "client/dlctl/inquiry/inquiry_reach.h"
#include "client/dlctl/listing/dlctl_listing.h"
#include "proto/base/clock.h"
#include "proto/version.h"

#define SECOND_NS 1000000000ull
#define LOOKED_NS (60 * SECOND_NS)  /* after the last look, lists are asked for that long */
#define REST_NS   (300 * SECOND_NS) /* and a daemon that would end if nobody were connected */
#define ERRORS_NS (15 * SECOND_NS)  /* the ledger is read again, though the number of entries is the same */

struct watch {
        struct event_base *base;
        struct event *second, *readable;
        struct view *view;
        struct inquiry inquiry;
        uint64_t looked_ns, errors_ns;
        uint64_t n_errors; /* when the ledger was read last */
        bool asks_datasets, asks_errors, ends_idle;
};

/* ---- the connection ------------------------------------------------------------------------------------------ */

/* The connection has ended, because of this. */
static void went(struct watch *watch, const char *why) {
        if (watch->readable)
                event_free(watch->readable);
        watch->readable = NULL;
        view_set_away(watch->view, why);
}

static void disconnect(struct watch *watch, const char *why) {
        inquiry_close(&watch->inquiry);
        went(watch, why);
}

static void web_watch_on_readable(evutil_socket_t fd, short what, void *arg);

static void try_to_connect(struct watch *watch) {
        struct inquiry *inquiry = &watch->inquiry;
        enum reach reach = REACH_GIVEN;
        int r = inquiry_connect(inquiry, &reach);

        if (r < 0)
                went(watch, inquiry->away.text);
        if (r <= 0)
                return;
        watch->readable = event_new(watch->base, inquiry->connection.socket, EV_READ | EV_PERSIST,
                                    web_watch_on_readable, watch);
        if (!watch->readable || event_add(watch->readable, NULL) < 0)
                exit(fail(EXIT_REFUSED, "no memory"));
        view_set_daemon(watch->view, reach_name(reach), inquiry->connection.path);
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static bool has_idle_timeout(const Dlp__StatusReply *status) {
        for (size_t i = 0; i < status->n_settings; i++)
                if (strcmp(status->settings[i]->name, "idle_timeout") == 0)
                        return strcmp(status->settings[i]->value, "0") != 0;
        return false;
}

static void web_watch_on_readable(evutil_socket_t fd, short what, void *arg) {
        struct watch *watch = arg;
        uint64_t now_ns = clock_now_ns();
        struct glance *glance, *lists;
        int r = inquiry_take(&watch->inquiry, now_ns, &glance, &lists);

        (void)fd;
        (void)what;
        if (r < 0)
                went(watch, watch->inquiry.away.text);
        if (r <= 0)
                return;
        watch->ends_idle = has_idle_timeout(glance->status);
        view_set_state(watch->view, glance);
        if (watch->asks_datasets)
                view_set_datasets(watch->view, lists);
        if (watch->asks_errors) {
                view_set_errors(watch->view, lists);
                watch->errors_ns = now_ns;
                watch->n_errors = view_errors(watch->view);
        }
        glance_free(lists);
}

/* ---- questions ----------------------------------------------------------------------------------------------- */

static void begin_round(struct watch *watch, uint64_t now_ns) {
        bool looked = now_ns - watch->looked_ns < LOOKED_NS;

        watch->asks_datasets = looked && inquiry_wants_datasets(&watch->inquiry, now_ns);
        watch->asks_errors = looked &&
                             (view_errors(watch->view) != watch->n_errors || now_ns - watch->errors_ns >= ERRORS_NS);
        const bool wanted[N_QUESTIONS] = {
                [ASK_STATUS] = true,
                [ASK_JOBS] = true,
                [ASK_DATASETS] = watch->asks_datasets,
                [ASK_ERRORS] = watch->asks_errors,
        };
        if (inquiry_begin(&watch->inquiry, wanted, now_ns) < 0)
                went(watch, watch->inquiry.away.text);
}

static bool may_rest(const struct watch *watch, uint64_t now_ns) {
        return watch->ends_idle && now_ns - watch->looked_ns >= REST_NS && view_is_idle(watch->view);
}

static void on_second(evutil_socket_t fd, short what, void *arg) {
        struct watch *watch = arg;
        struct inquiry *inquiry = &watch->inquiry;
        uint64_t now_ns = clock_now_ns();

        (void)fd;
        (void)what;
        if (inquiry->is_asking) {
                if (inquiry_is_late(inquiry, now_ns))
                        view_set_away(watch->view, inquiry->away.text);
                return;
        }
        if (may_rest(watch, now_ns)) {
                if (inquiry->is_connected)
                        disconnect(watch, "nobody has looked for a while, so the daemon has been left alone");
                return;
        }
        if (!inquiry->is_connected)
                try_to_connect(watch);
        if (inquiry->is_connected)
                begin_round(watch, now_ns);
}

struct watch *watch_new(struct event_base *base, const struct context *context, struct view *view) {
        struct timeval second = { .tv_sec = 1 };
        struct watch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                exit(fail(EXIT_REFUSED, "no memory"));
        watch->base = base;
        watch->view = view;
        inquiry_init(&watch->inquiry, context, "dlctl web " DLP_FULL_VERSION);
        watch->looked_ns = clock_now_ns();
        watch->second = event_new(base, -1, EV_PERSIST, on_second, watch);
        if (!watch->second || event_add(watch->second, &second) < 0)
                exit(fail(EXIT_REFUSED, "no memory"));
        on_second(-1, 0, watch);
        return watch;
}

void watch_free(struct watch *watch) {
        if (!watch)
                return;
        disconnect(watch, NULL);
        event_free(watch->second);
        free(watch);
}

void watch_looked(struct watch *watch) {
        watch->looked_ns = clock_now_ns();
}
