#include "daemon/base/work/crew.h"

#include "daemon/base/threads/thread.h"
#include "proto/base/clock.h"

struct crew {
        void (*work)(void *userdata);
        void *userdata;
        pthread_mutex_t lock; /* covers n_running */
        pthread_cond_t ended;
        uint32_t n_running;
};

static void *crew_main(void *argument) {
        struct crew *crew = argument;

        crew->work(crew->userdata);
        pthread_mutex_lock(&crew->lock);
        crew->n_running--;
        pthread_cond_signal(&crew->ended);
        pthread_mutex_unlock(&crew->lock);
        return NULL;
}

static void crew_watch(struct crew *crew, uint64_t tick_ns, void (*tick)(void *userdata)) {
        pthread_mutex_lock(&crew->lock);
        while (crew->n_running > 0) {
                thread_wait_until(&crew->ended, &crew->lock, clock_now_ns() + tick_ns);
                pthread_mutex_unlock(&crew->lock);
                tick(crew->userdata);
                pthread_mutex_lock(&crew->lock);
        }
        pthread_mutex_unlock(&crew->lock);
}

int crew_run(const char *name, uint32_t n_threads, void (*work)(void *userdata), uint64_t tick_ns,
             void (*tick)(void *userdata), void *userdata) {
        struct crew crew = { .work = work, .userdata = userdata, .n_running = n_threads };
        pthread_t threads[CREW_MAX];
        uint32_t n_started = 0;
        int r = 0;

        pthread_mutex_init(&crew.lock, NULL);
        pthread_cond_init(&crew.ended, NULL);
        while (n_started < n_threads && r == 0) {
                r = thread_start(&threads[n_started], name, crew_main, &crew);
                n_started += r == 0;
        }
        pthread_mutex_lock(&crew.lock);
        crew.n_running -= n_threads - n_started;
        pthread_mutex_unlock(&crew.lock);
        crew_watch(&crew, tick_ns, tick);
        for (uint32_t i = 0; i < n_started; i++)
                thread_join(threads[i]);
        if (n_started > 0)
                tick(userdata);
        pthread_cond_destroy(&crew.ended);
        pthread_mutex_destroy(&crew.lock);
        return n_started > 0 ? 0 : r;
}
