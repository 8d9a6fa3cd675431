#include "daemon/base/work/background.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "daemon/base/threads/mailbox.h"
#include "daemon/base/threads/thread.h"
#include "proto/base/clock.h"

#define STOP_MS    10000 /* the same as pipeline_stop() waits */
#define PIECES_MAX 4096u /* pieces at a time; at most one for each session or dataset, in practice far fewer */

struct background {
        struct mailbox ended;
        uint32_t n_running; /* main thread: begun and not reaped */
};

struct piece {
        struct background *background;
        pthread_t thread;
        void (*work)(void *userdata);
        void (*done)(void *userdata);
        void *userdata;
};

int background_new(struct background **ret_background) {
        struct background *background = calloc(1, sizeof(*background));
        int r;

        if (!background)
                return -ENOMEM;
        r = mailbox_init(&background->ended, PIECES_MAX);
        if (r < 0) {
                free(background);
                return r;
        }
        *ret_background = background;
        return 0;
}

void background_free(struct background *background) {
        if (!background)
                return;
        mailbox_fini(&background->ended);
        free(background);
}

static void *piece_main(void *userdata) {
        struct piece *piece = userdata;

        piece->work(piece->userdata);
        mailbox_push(&piece->background->ended, piece); /* cannot be full: background_run() counts the pieces */
        return NULL;
}

int background_run(struct background *background, void (*work)(void *userdata), void (*done)(void *userdata),
                   void *userdata) {
        struct piece *piece;
        int r;

        if (background->n_running >= PIECES_MAX)
                return -EAGAIN;
        piece = malloc(sizeof(*piece));
        if (!piece)
                return -ENOMEM;
        *piece = (struct piece){ .background = background, .work = work, .done = done, .userdata = userdata };
        r = thread_start(&piece->thread, "background", piece_main, piece);
        if (r < 0) {
                free(piece);
                return r;
        }
        background->n_running++;
        return 0;
}

int background_fd(const struct background *background) {
        return mailbox_fd(&background->ended);
}

void background_reap(struct background *background) {
        struct piece *piece;

        while ((piece = mailbox_pop(&background->ended))) {
                thread_join(piece->thread);
                background->n_running--;
                piece->done(piece->userdata);
                free(piece);
        }
}

int background_stop_within(struct background *background, int timeout_ms) {
        uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_ms * 1000000u;

        for (;;) {
                struct pollfd poll_fd = { .fd = background_fd(background), .events = POLLIN };
                uint64_t now_ns = clock_now_ns();

                background_reap(background);
                if (background->n_running == 0)
                        return 0;
                if (now_ns >= deadline_ns)
                        return -ETIMEDOUT;
                poll(&poll_fd, 1, (int)((deadline_ns - now_ns) / 1000000u) + 1);
        }
}

int background_stop(struct background *background) {
        return background_stop_within(background, STOP_MS);
}
