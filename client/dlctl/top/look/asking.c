#include "client/dlctl/top/look/asking.h"

#include <string.h>

#include "client/dlctl/inquiry/inquiry.h"
#include "client/dlctl/inquiry/inquiry_reach.h"
#include "client/dlctl/top/room.h"
#include "proto/version.h"

#define FEW_DATASETS 64u            /* are asked for each time, */
#define MANY_NS      10000000000ull /* more of them that often */

struct asking {
        const struct context *context;
        struct inquiry inquiry;
        uint64_t datasets_ns;
        size_t n_datasets;
        struct glance *glance, *datasets; /* as far as they are */
        unsigned generation;
};

struct asking *asking_new(const struct context *context) {
        struct asking *asking = room_for(1, sizeof(*asking));

        asking->context = context;
        inquiry_init(&asking->inquiry);
        return asking;
}

/* Of a round that has ended too early. */
static void asking_forget(struct asking *asking) {
        glance_free(asking->glance);
        glance_free(asking->datasets);
        asking->glance = asking->datasets = NULL;
}

void asking_free(struct asking *asking) {
        if (!asking)
                return;
        asking_forget(asking);
        inquiry_close(&asking->inquiry);
        free(asking);
}

int asking_fd(const struct asking *asking) {
        return asking->inquiry.is_connected ? asking->inquiry.connection.socket : -1;
}

const char *asking_away(const struct asking *asking) {
        return asking->inquiry.away.text[0] ? asking->inquiry.away.text : NULL;
}

unsigned asking_generation(const struct asking *asking) {
        return asking->generation;
}

static void connect_again(struct asking *asking) {
        struct inquiry *inquiry = &asking->inquiry;
        enum reach reach; /* not used: the picture does not say where it was found */
        struct why reason;
        int r = reach_try(asking->context, "dlctl top " DLP_FULL_VERSION, &inquiry->connection, &reason, &reach);

        inquiry_connected(inquiry, r, &reason);
        if (r < 0)
                return;
        asking->generation++;
        asking->datasets_ns = 0;
}

void asking_tick(struct asking *asking, uint64_t now_ns) {
        bool wanted[N_QUESTIONS] = { [ASK_STATUS] = true, [ASK_JOBS] = true };

        if (asking->inquiry.is_asking) {
                inquiry_is_late(&asking->inquiry, now_ns);
                return;
        }
        if (!asking->inquiry.is_connected)
                connect_again(asking);
        if (!asking->inquiry.is_connected)
                return;
        wanted[ASK_DATASETS] = asking->datasets_ns == 0 || asking->n_datasets <= FEW_DATASETS ||
                               now_ns - asking->datasets_ns >= MANY_NS;
        asking->glance = glance_new();
        asking->datasets = wanted[ASK_DATASETS] ? glance_new() : NULL;
        if (inquiry_begin(&asking->inquiry, wanted, now_ns) < 0)
                asking_forget(asking);
}

/* Adds the page. Returns the next one's number; 0: it was the last. */
static uint64_t asking_take_page(struct asking *asking, Dlp__Reply *reply) {
        switch (asking->inquiry.question) {
        case ASK_STATUS:
                glance_add(asking->glance, reply);
                return 0;
        case ASK_JOBS:
                glance_add(asking->glance, reply);
                return asking->glance->n_jobs < GLANCE_JOBS_MAX ? reply->jobs->next : 0;
        default:
                glance_add(asking->datasets, reply);
                return asking->datasets->n_datasets < GLANCE_DATASETS_MAX ? reply->datasets->next : 0;
        }
}

static void asking_hand_over(struct asking *asking, uint64_t now_ns, struct glance **ret_glance,
                             struct glance **ret_datasets) {
        if (asking->datasets) {
                asking->n_datasets = asking->datasets->n_datasets;
                asking->datasets_ns = now_ns;
        }
        *ret_glance = asking->glance;
        *ret_datasets = asking->datasets;
        asking->glance = asking->datasets = NULL;
        asking->inquiry.away.text[0] = '\0';
}

bool asking_take(struct asking *asking, uint64_t now_ns, struct glance **ret_glance, struct glance **ret_datasets) {
        Dlp__Reply *reply;
        int r = inquiry_take(&asking->inquiry, &reply);

        if (r == 0)
                return false;
        if (r > 0)
                r = inquiry_proceed(&asking->inquiry, asking_take_page(asking, reply), now_ns);
        if (r < 0)
                asking_forget(asking);
        if (r > 0)
                asking_hand_over(asking, now_ns, ret_glance, ret_datasets);
        return r > 0;
}
