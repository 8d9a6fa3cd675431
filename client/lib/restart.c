/* The daemon is gone, and comes back.
 *
 *   attached --connection ends--> lost --ring is empty--> away --attached at the cursor--> attached
 *
 * When a daemon ends, only its memory is lost. The client keeps the cursor and tells the next daemon where to continue,
 * so each batch comes exactly once, whether the old daemon had published, begun or only planned it. A request that has
 * no answer yet outlives the call of dlc_next() that sent it: making a large ring may take longer than the caller's
 * timeout. */

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/loader.h"
#include "proto/version.h"

#define PAUSE_MIN_NS 20000000ull
#define PAUSE_MAX_NS 200000000ull
#define ANSWER_NS    (DLI_ANSWER_TIMEOUT_MS * 1000000ull)

static uint64_t earlier(uint64_t one, uint64_t other) {
        return one < other ? one : other;
}

static double seconds_since(uint64_t then_ns) {
        return (double)(clock_now_ns() - then_ns) / 1e9;
}

static void restart_hang_up(struct dlc_loader *loader) {
        dli_watch_no_socket(loader);
        dli_connection_close(&loader->connection);
        loader->restart.asked_ns = 0;
}

/* ---- losing the daemon --------------------------------------------------------------------------------------- */

bool dli_restart_is_waited_for(const struct dlc_loader *loader) {
        return strcmp(loader->options.on_restart, "raise") != 0 && dli_connection_is_restart(&loader->connection);
}

int dli_restart_lost(struct dlc_loader *loader, int error) {
        struct dli_restart *restart = &loader->restart;
        uint64_t now = clock_now_ns();

        if (error != -ECONNRESET || !dli_restart_is_waited_for(loader))
                return dli_loader_fail(loader, error);
        *restart = (struct dli_restart){
                .lost_ns = now,
                .next_try_ns = now,
                .pause_ns = PAUSE_MIN_NS,
                .reason = loader->reason,
        };
        why_set(&loader->reason, 0, "%s", ""); /* not an error of the caller */
        loader->state = DLI_LOST;
        loader->info.is_waiting = 1;
        return 0;
}

/* Leaves the ring: batches that are still in it are not taken any more. */
static void dli_restart_leave(struct dlc_loader *loader) {
        if (loader->state == DLI_AWAY)
                return;
        loader->state = DLI_AWAY;
        restart_hang_up(loader);
        dli_watch_clock(loader, true);
        dli_ring_leave(dli_ring_of(loader));
}

/* A request that has no answer yet names the place where the loader was: its ring would begin there. */
void dli_restart_move(struct dlc_loader *loader) {
        dli_restart_leave(loader);
        if (loader->restart.asked_ns == 0)
                return;
        restart_hang_up(loader);
        loader->restart.next_try_ns = clock_now_ns();
}

/* ---- attaching again ----------------------------------------------------------------------------------------- */

static int restart_give_up(struct dlc_loader *loader) {
        struct dli_restart *restart = &loader->restart;

        why_set(&loader->reason, -ECONNRESET,
                "the daemon at %s went away and did not come back within restart_timeout_ms=%d (waited %.1f s): "
                "%s",
                loader->connection.path, loader->options.restart_timeout_ms, seconds_since(restart->waited_ns),
                restart->reason.text);
        return -ECONNRESET;
}

/* No further attempts: from now on the loader reports this error. */
static int restart_end(struct dlc_loader *loader, int error) {
        restart_hang_up(loader);
        dli_watch_clock(loader, false);
        loader->info.is_waiting = 0;
        return dli_loader_fail(loader, error);
}

/* Is it an error that passes by itself? No daemon there yet, our own old session still being torn down, a daemon that
 * is shutting down, or a lack of memory or descriptors; not a permanent refusal by the daemon. */
static bool passes(int error) {
        switch (error) {
        case DLI_ASK_AGAIN:
        case -ECONNREFUSED:
        case -ECONNRESET:
        case -ESHUTDOWN:
        case -EADDRINUSE:
        case -ETIMEDOUT:
        case -ENOMEM:
        case -EMFILE:
        case -ENFILE:
                return true;
        default:
                return false;
        }
}

/* An attempt failed. Returns -EAGAIN, or a final error. */
static int put_off(struct dlc_loader *loader, int error) {
        struct dli_restart *restart = &loader->restart;

        if (error == DLI_ASK_AGAIN)
                dli_progress_tell(loader, &loader->connection.progress, restart->reason.text);
        restart_hang_up(loader);
        if (error == -EINTR)
                return error;
        if (!passes(error)) {
                loader->reason = restart->reason;
                return restart_end(loader, error);
        }
        restart->next_try_ns = clock_now_ns() + restart->pause_ns;
        restart->pause_ns = earlier(2 * restart->pause_ns, PAUSE_MAX_NS);
        return -EAGAIN;
}

static int restart_call(struct dlc_loader *loader) {
        struct dli_restart *restart = &loader->restart;
        char path[DLP_SOCKET_PATH_MAX + 1];
        int r;

        strcpy(path, loader->connection.path); /* a copy, because the call below writes connection.path */
        if (loader->daemon.kind == DLI_DAEMON_PRIVATE)
                r = dli_daemon_try_private(&loader->daemon, &loader->connection, "libdlclient " DLP_FULL_VERSION,
                                           &restart->reason);
        else
                r = dli_connection_try(&loader->connection, path, "libdlclient " DLP_FULL_VERSION, &restart->reason);
        if (r == 0)
                r = dli_attach_ask(loader);
        if (r < 0)
                return put_off(loader, r);
        dli_watch_socket(loader); /* if it fails the clock still ticks */
        restart->asked_ns = clock_now_ns();
        return 0;
}

/* Waits for the answer to the attach request. 0 once attached, -EAGAIN, -EINTR, or a final error. */
static int restart_hear(struct dlc_loader *loader, uint64_t deadline_ns) {
        struct dli_descriptors descriptors = { { -1, -1, -1 } };
        struct dli_restart *restart = &loader->restart;
        uint64_t answer_by = restart->asked_ns + ANSWER_NS;
        Dlp__Reply *reply;
        int r;

        r = dli_connection_answer(&loader->connection, earlier(earlier(deadline_ns, restart->deadline_ns), answer_by),
                                  &restart->reason, &reply, descriptors.fd, DLI_N_DESCRIPTORS);
        if (r == -EINTR)
                return r;
        if (r == -ETIMEDOUT && clock_now_ns() < answer_by)
                return -EAGAIN; /* the request is still open */
        if (r != 0)
                return put_off(loader, r);
        restart->asked_ns = 0;
        r = dli_attach_take_over(loader, reply, &descriptors);
        dlp__reply__free_unpacked(reply, NULL);
        dli_descriptors_close(&descriptors);
        return r < 0 ? restart_end(loader, r) : 0;
}

/* Makes as much progress as it can without waiting past the deadline. */
static int try(struct dlc_loader *loader, uint64_t deadline_ns) {
        struct dli_restart *restart = &loader->restart;
        uint64_t now = clock_now_ns();
        int r = 0;

        if (restart->asked_ns == 0) {
                if (now < restart->next_try_ns && now < restart->deadline_ns)
                        return -EAGAIN;
                r = restart_call(loader);
        }
        if (r == 0)
                r = restart_hear(loader, deadline_ns);
        /* Checked after the attempt, so that at least one is made. */
        if (r == -EAGAIN && clock_now_ns() >= restart->deadline_ns) {
                restart_give_up(loader);
                return restart_end(loader, -ECONNRESET);
        }
        return r;
}

static int restart_pause_until(uint64_t until_ns) {
        uint64_t now = clock_now_ns(), left = until_ns > now ? until_ns - now : 0;
        struct timespec timeout = { .tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u) };

        return ppoll(NULL, 0, &timeout, NULL) < 0 ? -errno : 0;
}

static void welcome(struct dlc_loader *loader) {
        dli_watch_clock(loader, false);
        loader->info.is_waiting = 0;
        loader->info.n_restarts++;
}

static int wait_for_return(struct dlc_loader *loader, int timeout_ms, uint64_t deadline_ns) {
        struct dli_restart *restart = &loader->restart;
        int r;

        dli_watch_clock_read(loader);
        if (restart->waited_ns == 0) {
                restart->waited_ns = clock_now_ns();
                restart->deadline_ns = dli_deadline(loader->options.restart_timeout_ms);
        }
        for (;;) {
                r = try(loader, deadline_ns);
                if (r == 0)
                        welcome(loader);
                if (r == 0 || loader->failed < 0)
                        return r;
                if (r == -EAGAIN && timeout_ms == 0)
                        return r;
                if (r == -EAGAIN && clock_now_ns() >= deadline_ns)
                        return why_set(&loader->reason, -ETIMEDOUT,
                                       "no batch within %d ms: the daemon at %s is away, for %.1f s so far", timeout_ms,
                                       loader->connection.path, seconds_since(restart->lost_ns));
                if (r == -EAGAIN && restart->asked_ns == 0)
                        r = restart_pause_until(
                                earlier(earlier(restart->next_try_ns, deadline_ns), restart->deadline_ns));
                if (r == -EINTR)
                        return why_set(&loader->reason, r, "interrupted while waiting for the daemon's return");
        }
}

int dli_restart_wait(struct dlc_loader *loader, int timeout_ms, uint64_t deadline_ns) {
        uint64_t began_ns = clock_now_ns();
        int r;

        dli_restart_leave(loader);
        r = wait_for_return(loader, timeout_ms, deadline_ns);
        loader->counts.restart_ns += clock_now_ns() - began_ns;
        return r;
}

int dli_restart_ask(struct dlc_loader *loader, int (*ask)(struct dlc_loader *loader, void *userdata), void *userdata) {
        int r = 0;

        for (;;) {
                if (loader->state != DLI_ATTACHED)
                        r = dli_restart_wait(loader, -1, DLI_NEVER);
                if (r < 0)
                        return r;
                r = ask(loader, userdata);
                if (r == -ECONNRESET && dli_restart_is_waited_for(loader))
                        r = dli_restart_lost(loader, r); /* otherwise dlc_next() would first hand out what is ready */
                if (r < 0)
                        return r;
                if (loader->state == DLI_ATTACHED)
                        return 0;
        }
}
