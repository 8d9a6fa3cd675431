/* Words between the first node and the others, twice a second, and waiting, which is when most of them are said. */
#include "daemon/staging/nodes/cluster_mpi.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define BEAT_NS         500000000ull  /* between two words of a node */
#define IDLE_NS         50000000ull   /* between two calls of options.idle() */
#define POLL_US         200u          /* measured: 15 % of a CPU while bytes move */
#define PATIENCE_NS     1000000000ull /* a wait that took so long is no matter of microseconds: */
#define PATIENT_POLL_US 2000u
#define BEATS_A_LOOK    64u /* news taken a call: bounds it */
#define TAG_BEAT        1
#define TAG_ANSWER      2

int mpi_begin_words(struct mpi *mpi, struct why *why) {
        int r;

        if (cluster_watch_new(mpi->base.node, mpi->base.n_nodes, (const char(*)[PROGRESS_NAME_SIZE])mpi->base.names,
                              mpi->base.options.stall_s, clock_now_ns(), &mpi->watch) < 0)
                return why_set(why, -ENOMEM, "no memory to watch %u nodes", mpi->base.n_nodes);
        if (mpi->base.node == 0)
                r = MPI_Irecv(&mpi->heard, sizeof(mpi->heard), MPI_BYTE, MPI_ANY_SOURCE, TAG_BEAT, mpi->beats,
                              &mpi->receiving);
        else
                r = MPI_Irecv(&mpi->answer, 1, MPI_BYTE, 0, TAG_ANSWER, mpi->beats, &mpi->receiving);
        return r == MPI_SUCCESS ? 0 : mpi_failed(r, "talking", why);
}

static int listen_to_all(struct mpi *mpi, uint64_t now_ns) {
        int r = MPI_SUCCESS;

        for (uint32_t i = 0; i < BEATS_A_LOOK && r == MPI_SUCCESS; i++) {
                static char answer;
                MPI_Request request;
                MPI_Status status;
                int is_through = 0;

                r = MPI_Test(&mpi->receiving, &is_through, &status);
                if (r != MPI_SUCCESS || !is_through)
                        return r;
                watch_hear(mpi->watch, (uint32_t)status.MPI_SOURCE, &mpi->heard.news, mpi->heard.n_steps,
                           mpi->heard.is_waiting, now_ns);
                /* At most one a node is under way, since a node speaks again when it was answered. */
                r = MPI_Isend(&answer, 1, MPI_BYTE, status.MPI_SOURCE, TAG_ANSWER, mpi->beats, &request);
                if (r == MPI_SUCCESS)
                        r = MPI_Request_free(&request);
                if (r == MPI_SUCCESS)
                        r = MPI_Irecv(&mpi->heard, sizeof(mpi->heard), MPI_BYTE, MPI_ANY_SOURCE, TAG_BEAT, mpi->beats,
                                      &mpi->receiving);
        }
        return r;
}

static int speak_to_first(struct mpi *mpi, uint64_t now_ns) {
        int is_through = 0, r;

        r = MPI_Test(&mpi->receiving, &is_through, MPI_STATUS_IGNORE);
        if (r == MPI_SUCCESS && is_through) {
                mpi->is_answered = true;
                watch_hear_answer(mpi->watch, now_ns);
                r = MPI_Irecv(&mpi->answer, 1, MPI_BYTE, 0, TAG_ANSWER, mpi->beats, &mpi->receiving);
        }
        if (r == MPI_SUCCESS)
                r = MPI_Test(&mpi->sending, &is_through, MPI_STATUS_IGNORE);
        if (r != MPI_SUCCESS || !is_through || !mpi->is_answered || now_ns - mpi->beaten_ns < BEAT_NS)
                return r;
        mpi->sent = mpi->told;
        mpi->sent.n_steps = mpi->n_steps;
        mpi->sent.is_waiting = mpi->n_waiting > 0;
        mpi->beaten_ns = now_ns;
        mpi->is_answered = false;
        return MPI_Isend(&mpi->sent, sizeof(mpi->sent), MPI_BYTE, 0, TAG_BEAT, mpi->beats, &mpi->sending);
}

/* Says and hears what is due, and judges. Never blocks. */
static int cluster_mpi_words_look(struct mpi *mpi, struct why *why) {
        uint64_t now_ns = clock_now_ns();
        int r;

        r = mpi_advance(mpi, why);
        if (r < 0)
                return r;
        if (mpi->base.node == 0) {
                watch_hear(mpi->watch, 0, &mpi->told.news, mpi->n_steps, mpi->n_waiting > 0, now_ns);
                r = listen_to_all(mpi, now_ns);
        } else {
                r = speak_to_first(mpi, now_ns);
        }
        if (r != MPI_SUCCESS)
                return mpi_failed(r, "talking", why);
        return watch_judge(mpi->watch, now_ns, why);
}

int mpi_tell(struct cluster *cluster, const struct node_progress *news, struct why *why) {
        struct mpi *mpi = mpi_of(cluster);

        mpi->told.news = *news;
        memcpy(mpi->told.news.node, cluster->names[cluster->node], PROGRESS_NAME_SIZE);
        if (cluster->node != 0) /* for cluster_news() of itself */
                watch_hear(mpi->watch, cluster->node, &mpi->told.news, mpi->n_steps, false, clock_now_ns());
        return cluster_mpi_words_look(mpi, why);
}

const struct node_progress *mpi_news(const struct cluster *cluster, uint32_t node) {
        return watch_news(mpi_of(cluster)->watch, node);
}

int mpi_pass_time(struct mpi *mpi, uint64_t begin_ns, struct why *why) {
        uint64_t now_ns;
        int r;

        r = cluster_mpi_words_look(mpi, why);
        if (r < 0)
                return r;
        now_ns = clock_now_ns();
        if (mpi->base.options.idle && now_ns - mpi->idled_ns >= IDLE_NS) {
                mpi->idled_ns = now_ns;
                mpi->base.options.idle(mpi->base.options.userdata);
        }
        usleep(now_ns - begin_ns < PATIENCE_NS ? POLL_US : PATIENT_POLL_US);
        return 0;
}

int mpi_wait_for(struct mpi *mpi, MPI_Request *request, const char *what, struct why *why) {
        uint64_t begin_ns = clock_now_ns();
        int is_through = 0, r = 0;

        mpi->n_waiting++;
        while (r == 0) {
                r = MPI_Test(request, &is_through, MPI_STATUS_IGNORE);
                if (r != MPI_SUCCESS)
                        r = mpi_failed(r, what, why);
                else if (is_through)
                        break;
                else
                        r = mpi_pass_time(mpi, begin_ns, why);
        }
        mpi->n_waiting--;
        mpi->n_steps += r == 0;
        return r;
}
