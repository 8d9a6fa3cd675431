#include "daemon/pipeline/jobs/attendance.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"

#define N_KEPT    256u /* jobs that have ended: 166 KiB */
#define N_OF_USER 128u /* of one user at most: one user's jobs do not push out those of another */
#define KEPT_NS   (900 * 1000000000ull)

struct kept_attendance {
        uid_t uid;
        char job[DLP_NAME_MAX];
        uint64_t ended_ns; /* 0: free */
        struct attendance attendance;
};

static struct kept_attendance kept[N_KEPT]; /* main thread */

void attendance_note(struct attendance *attendance, uint32_t rank) {
        for (uint32_t i = 0; i < attendance->n_ranks; i++)
                if (attendance->ranks[i] == rank)
                        return;
        if (attendance->n_ranks < DLP_LOCAL_RANKS_MAX)
                attendance->ranks[attendance->n_ranks++] = rank;
}

static struct kept_attendance *attendance_find(uid_t uid, const char *job) {
        for (uint32_t i = 0; i < N_KEPT; i++)
                if (kept[i].ended_ns > 0 && kept[i].uid == uid && strcmp(kept[i].job, job) == 0)
                        return &kept[i];
        return NULL;
}

/* Returns a free place, or else the oldest entry. A user who already has many entries loses their own oldest one. */
static struct kept_attendance *oldest(uid_t uid) {
        struct kept_attendance *found = &kept[0], *own = NULL;
        uint32_t n_own = 0;

        for (uint32_t i = 0; i < N_KEPT; i++) {
                if (kept[i].ended_ns < found->ended_ns)
                        found = &kept[i];
                if (kept[i].ended_ns == 0 || kept[i].uid != uid)
                        continue;
                n_own++;
                if (!own || kept[i].ended_ns < own->ended_ns)
                        own = &kept[i];
        }
        return n_own >= N_OF_USER ? own : found;
}

void attendance_keep(uid_t uid, const char *job, const struct attendance *attendance) {
        struct kept_attendance *place = attendance_find(uid, job);

        if (!place)
                place = oldest(uid);
        place->uid = uid;
        snprintf(place->job, sizeof(place->job), "%s", job);
        place->ended_ns = clock_now_ns();
        place->attendance = *attendance;
}

void attendance_recall(uid_t uid, const char *job, struct attendance *ret_attendance) {
        const struct kept_attendance *place = attendance_find(uid, job);

        ret_attendance->n_ranks = 0;
        if (place && clock_now_ns() - place->ended_ns < KEPT_NS)
                *ret_attendance = place->attendance;
}
