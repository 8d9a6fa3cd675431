#include "daemon/store/tree/syncer.h"

#include <errno.h>
#include <unistd.h>

#include "daemon/base/threads/thread.h"
#include "daemon/store/tree/tree.h"
#include "proto/base/clock.h"

#define SECOND_NS 1000000000ull
#define PAUSE_NS  SECOND_NS       /* between the beginnings of two syncs, at least */
#define LATEST_NS (5 * SECOND_NS) /* a few bytes wait so long for others */
#define IDLE_NS   (SECOND_NS / 2)

/* When the next sync is due: 0 at once, UINT64_MAX not before something is written. */
static uint64_t syncer_due_ns(const struct syncer *syncer) {
        if (syncer->n_due > syncer->n_done)
                return 0;
        if (syncer->n_bytes == 0)
                return UINT64_MAX;
        return syncer->last_ns + (syncer->n_bytes >= TREE_SYNC_BYTES ? PAUSE_NS : LATEST_NS);
}

static void sync_now(struct syncer *syncer) {
        uint64_t n_due = syncer->n_due;
        int r;

        syncer->n_bytes = 0;
        syncer->last_ns = clock_now_ns();
        pthread_mutex_unlock(&syncer->lock);
        r = syncfs(syncer->fd) < 0 ? -errno : 0;
        pthread_mutex_lock(&syncer->lock);
        if (syncer->result == 0)
                syncer->result = r;
        syncer->n_done = n_due;
        pthread_cond_broadcast(&syncer->changed);
}

static void *syncer_main(void *argument) {
        struct syncer *syncer = argument;

        pthread_mutex_lock(&syncer->lock);
        while (!syncer->is_stopped) {
                uint64_t due = syncer_due_ns(syncer);

                if (due <= clock_now_ns())
                        sync_now(syncer);
                else if (due == UINT64_MAX)
                        pthread_cond_wait(&syncer->changed, &syncer->lock);
                else
                        thread_wait_until(&syncer->changed, &syncer->lock, due);
        }
        pthread_mutex_unlock(&syncer->lock);
        return NULL;
}

int syncer_start(struct syncer *syncer, int fd) {
        int r;

        *syncer = (struct syncer){ .fd = fd, .last_ns = clock_now_ns() };
        pthread_mutex_init(&syncer->lock, NULL);
        pthread_cond_init(&syncer->changed, NULL);
        r = thread_start(&syncer->thread, "stage-sync", syncer_main, syncer);
        syncer->is_started = r == 0;
        return r;
}

void syncer_stop(struct syncer *syncer) {
        if (!syncer->is_started)
                return;
        pthread_mutex_lock(&syncer->lock);
        syncer->is_stopped = true;
        pthread_cond_broadcast(&syncer->changed);
        pthread_mutex_unlock(&syncer->lock);
        thread_join(syncer->thread);
        syncer->is_started = false;
}

void syncer_add(struct syncer *syncer, uint64_t n_bytes) {
        pthread_mutex_lock(&syncer->lock);
        if (syncer->n_bytes < TREE_SYNC_BYTES) {
                /* Only what changes when the next sync is due wakes the thread. */
                if (syncer->n_bytes == 0 || syncer->n_bytes + n_bytes >= TREE_SYNC_BYTES)
                        pthread_cond_broadcast(&syncer->changed);
        }
        syncer->n_bytes += n_bytes + 1; /* empty files, too */
        pthread_mutex_unlock(&syncer->lock);
}

int syncer_wait(struct syncer *syncer, void (*idle)(void *userdata), void *userdata) {
        uint64_t mine;
        int r;

        pthread_mutex_lock(&syncer->lock);
        mine = ++syncer->n_due;
        pthread_cond_broadcast(&syncer->changed);
        while (syncer->n_done < mine) {
                thread_wait_until(&syncer->changed, &syncer->lock, clock_now_ns() + IDLE_NS);
                pthread_mutex_unlock(&syncer->lock);
                idle(userdata);
                pthread_mutex_lock(&syncer->lock);
        }
        r = syncer->result;
        pthread_mutex_unlock(&syncer->lock);
        return r;
}
