#include "daemon/data/files/parted.h"

/* Pieces are begun in order, under the lock. Piece k has the place k % n_places from then on until it is taken; so a
 * piece is begun only if there is a place for it. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/thread.h"
#include "daemon/data/index/indexing.h"

#define PLACES_MAX        (2u * PARTED_THREADS)
#define PIECES_PER_THREAD 4u /* so that the last ones are not waited for long */

struct parted_limits PARTED_LIMITS;

struct place {
        bool is_done;
        void *found;
};

struct looking {
        const struct parted *parted;
        struct indexing *indexing; /* of the thread that asked */
        atomic_bool is_over;

        pthread_mutex_t lock;     /* covers all down to the next blank line */
        pthread_cond_t has_work;  /* a piece was taken: there is a place */
        pthread_cond_t has_ended; /* some look, for the caller */
        struct place places[PLACES_MAX];
        uint64_t n_begun, n_taken;

        uint32_t n_places;
        pthread_t threads[PARTED_THREADS];
        uint32_t n_threads; /* besides the caller's */
};

static bool may_begin(const struct looking *looking) {
        return looking->n_begun < looking->parted->n && looking->n_begun - looking->n_taken < looking->n_places;
}

/* With the lock held, which is given back meanwhile. */
static void look_at_next(struct looking *looking) {
        const struct parted *parted = looking->parted;
        uint64_t piece = looking->n_begun++;
        struct place *place = &looking->places[piece % looking->n_places];
        void *found;

        pthread_mutex_unlock(&looking->lock);
        found = parted->look(parted->userdata, piece, &looking->is_over);
        pthread_mutex_lock(&looking->lock);
        *place = (struct place){ .is_done = true, .found = found };
        pthread_cond_signal(&looking->has_ended);
}

static void *parted_look_on(void *userdata) {
        struct looking *looking = userdata;

        indexing_join(looking->indexing);
        pthread_mutex_lock(&looking->lock);
        while (!atomic_load(&looking->is_over)) {
                if (may_begin(looking))
                        look_at_next(looking);
                else if (looking->n_begun == looking->parted->n)
                        break;
                else
                        pthread_cond_wait(&looking->has_work, &looking->lock);
        }
        pthread_mutex_unlock(&looking->lock);
        indexing_join(NULL);
        return NULL;
}

uint32_t parted_threads(void) {
        uint32_t n = PARTED_LIMITS.n_threads;
        struct cpus cpus;

        if (n == 0) {
                cpus_find(&cpus);
                n = cpus_n_threads(&cpus);
        }
        return n < 1 ? 1 : n < PARTED_THREADS ? n : PARTED_THREADS;
}

uint64_t parted_pieces(uint64_t n_files) {
        uint64_t n_threads = parted_threads(), n_wanted = n_threads > 1 ? PIECES_PER_THREAD * n_threads : 1;

        return n_files == 0 ? 0 : (n_wanted + n_files - 1) / n_files * n_files;
}

/* The caller's next piece, which is looked at if another thread has begun it. With the lock held, which is given back
 * meanwhile. */
static int parted_take_next(struct looking *looking) {
        const struct parted *parted = looking->parted;
        bool is_patient = PARTED_LIMITS.is_patient && looking->n_threads > 0;
        uint64_t piece = looking->n_taken;
        struct place *place = &looking->places[piece % looking->n_places];
        void *found;
        int r;

        if (looking->n_begun == piece && !is_patient) {
                looking->n_begun++;
                *place = (struct place){ .is_done = true };
        }
        while (!place->is_done) {
                if (may_begin(looking) && !is_patient)
                        look_at_next(looking);
                else
                        pthread_cond_wait(&looking->has_ended, &looking->lock);
        }
        found = place->found;
        *place = (struct place){ 0 };
        pthread_mutex_unlock(&looking->lock);
        r = parted->take(parted->userdata, piece, found);
        if (found)
                parted->free(found);
        pthread_mutex_lock(&looking->lock);
        looking->n_taken++;
        pthread_cond_signal(&looking->has_work);
        return r;
}

static void parted_start_threads(struct looking *looking) {
        uint32_t n = looking->parted->look ? parted_threads() : 1;

        looking->n_places = 2 * n;
        if (n > looking->parted->n)
                n = (uint32_t)looking->parted->n;
        for (uint32_t i = 1; i < n; i++) {
                if (thread_start(&looking->threads[looking->n_threads], "index", parted_look_on, looking) < 0)
                        return; /* there is a limit on threads: fewer only take longer */
                looking->n_threads++;
        }
}

static void parted_end_threads(struct looking *looking) {
        pthread_mutex_lock(&looking->lock);
        atomic_store(&looking->is_over, true);
        pthread_cond_broadcast(&looking->has_work);
        pthread_mutex_unlock(&looking->lock);
        for (uint32_t i = 0; i < looking->n_threads; i++)
                thread_join(looking->threads[i]);
        for (uint32_t i = 0; i < looking->n_places; i++)
                if (looking->places[i].found)
                        looking->parted->free(looking->places[i].found);
}

int parted_run(const struct parted *parted) {
        struct looking *looking = calloc(1, sizeof(*looking));
        int r = 0;

        if (!looking)
                return -ENOMEM;
        looking->parted = parted;
        looking->indexing = indexing_joined();
        pthread_mutex_init(&looking->lock, NULL);
        pthread_cond_init(&looking->has_work, NULL);
        pthread_cond_init(&looking->has_ended, NULL);
        parted_start_threads(looking);
        pthread_mutex_lock(&looking->lock);
        while (r == 0 && looking->n_taken < parted->n)
                r = parted_take_next(looking);
        pthread_mutex_unlock(&looking->lock);
        parted_end_threads(looking);
        pthread_cond_destroy(&looking->has_ended);
        pthread_cond_destroy(&looking->has_work);
        pthread_mutex_destroy(&looking->lock);
        free(looking);
        return r;
}
