#include "daemon/pipeline/attendance.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"

#define N_KEPT  128u /* jobs that have ended: 83 KiB */
#define KEPT_NS (900 * 1000000000ull)

struct kept {
        char job[DLP_NAME_MAX];
        uint64_t ended_ns; /* 0: free */
        struct attendance attendance;
};

static struct kept kept[N_KEPT]; /* main thread */

void attendance_note(struct attendance *attendance, uint32_t rank) {
        for (uint32_t i = 0; i < attendance->n_ranks; i++)
                if (attendance->ranks[i] == rank)
                        return;
        if (attendance->n_ranks < DLP_LOCAL_RANKS_MAX)
                attendance->ranks[attendance->n_ranks++] = rank;
}

static struct kept *find(const char *job) {
        for (uint32_t i = 0; i < N_KEPT; i++)
                if (kept[i].ended_ns > 0 && strcmp(kept[i].job, job) == 0)
                        return &kept[i];
        return NULL;
}

static struct kept *oldest(void) {
        struct kept *found = &kept[0];

        for (uint32_t i = 1; i < N_KEPT; i++)
                if (kept[i].ended_ns < found->ended_ns)
                        found = &kept[i];
        return found;
}

void attendance_keep(const char *job, const struct attendance *attendance) {
        struct kept *place = find(job);

        if (!place)
                place = oldest();
        snprintf(place->job, sizeof(place->job), "%s", job);
        place->ended_ns = clock_now_ns();
        place->attendance = *attendance;
}

void attendance_recall(const char *job, struct attendance *ret_attendance) {
        const struct kept *place = find(job);

        ret_attendance->n_ranks = 0;
        if (place && clock_now_ns() - place->ended_ns < KEPT_NS)
                *ret_attendance = place->attendance;
}
