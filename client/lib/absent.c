/* Ranks that never came, and whatever else the caller should be told once.
 *
 * A loader that is opened on rank 0 alone, for validation for example, takes rank and world from the environment like
 * any other loader, and then silently gives only an eighth of the samples (with 8 ranks). So at the end of the first
 * epoch the daemon is asked which ranks have come to this node. If the launcher does not say how many ranks this node
 * has, no warning is given: a run on several nodes must not get a false one. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/loader.h"

#define ANSWER_MS 5000          /* do not wait longer for a slow daemon: the answer is only a hint */
#define GRACE_NS  5000000000ull /* after the opening: other ranks may start later, as programs take time to start */
#define LOOK_MS   100

struct came {
        uint32_t n;
        bool here[DLP_LOCAL_RANKS_MAX]; /* of the ranks from n_first on */
};

/* Returns 0 with the ranks that have come, or a negative errno. */
static int absent_ask(struct dlc_loader *loader, uint32_t n_first, struct came *ret_came) {
        Dlp__RanksRequest body = DLP__RANKS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct came came = { 0 };
        struct why reason; /* not used: the next call that takes a batch reports the same error */
        Dlp__Reply *reply;
        int r;

        request.body_case = DLP__REQUEST__BODY_RANKS;
        request.ranks = &body;
        r = dli_connection_call(&loader->connection, &request, ANSWER_MS, &reason, &reply, NULL, 0);
        if (r != 0)
                return r < 0 ? r : -EREMOTEIO;
        if (reply->body_case == DLP__REPLY__BODY_RANKS) {
                came.n = (uint32_t)reply->ranks->n_ranks;
                for (uint32_t i = 0; i < came.n; i++)
                        if (reply->ranks->ranks[i] - n_first < DLP_LOCAL_RANKS_MAX)
                                came.here[reply->ranks->ranks[i] - n_first] = true;
                *ret_came = came;
        } else {
                r = -EPROTO;
        }
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

/* Writes the ranks that did not come as "1-3, 5"; as many as fit. */
static void list_absent(const struct came *came, uint32_t n_first, uint32_t n_local, char *text, size_t capacity) {
        size_t n = 0;

        text[0] = '\0';
        for (uint32_t i = 0; i < n_local && n + 32 < capacity; i++) {
                uint32_t begin = i;

                if (came->here[i])
                        continue;
                while (i + 1 < n_local && !came->here[i + 1])
                        i++;
                n += (size_t)snprintf(text + n, capacity - n, "%s%u", n ? ", " : "", n_first + begin);
                if (i > begin)
                        n += (size_t)snprintf(text + n, capacity - n, "-%u", n_first + i);
        }
}

static void absent_tell(struct dlc_loader *loader, const struct came *came) {
        const struct dli_launch *launch = &loader->launch;
        const struct dlc_info *info = &loader->info;
        uint32_t n_local = (uint32_t)launch->n_local;
        char absent[160];

        if (launch->first_local >= 0)
                list_absent(came, (uint32_t)launch->first_local, n_local, absent, sizeof(absent));
        else
                snprintf(absent, sizeof(absent), "%u of the %u on this node", n_local - came->n, n_local);
        why_set(&loader->warning, 0,
                "%s: rank %u of %u has had an epoch, and these ranks of its job have not attached so far: %s. It "
                "gets %llu of %llu samples, and nobody gets those of the missing ranks. If one process is to get all, open the "
                "loader with rank=0 and world_size=1",
                loader->options.dataset, info->rank, info->world_size, absent, (unsigned long long)info->epoch_samples,
                (unsigned long long)info->dataset_samples);
}

/* Is there a rank that should be on this node, as the launcher says, and that never came? */
static void absent_look_for_absent(struct dlc_loader *loader) {
        const struct dli_launch *launch = &loader->launch;
        struct came came;

        while (loader->state == DLI_ATTACHED) {
                int r = absent_ask(loader, launch->first_local < 0 ? 0 : (uint32_t)launch->first_local, &came);

                if (r == -ECONNRESET || r == -EINTR || r == -ETIMEDOUT)
                        return; /* try again later */
                if (r < 0 || came.n >= (uint32_t)launch->n_local) {
                        loader->launch.n_local = 0; /* all have come, or the daemon does not know */
                        return;
                }
                if (clock_now_ns() - loader->counts.opened_ns >= GRACE_NS) {
                        absent_tell(loader, &came);
                        loader->launch.n_local = 0;
                        return;
                }
                if (poll(NULL, 0, LOOK_MS) < 0)
                        return;
        }
}

const char *dlc_warning(struct dlc_loader *loader) {
        if (!loader || dli_loader_check(loader) < 0)
                return NULL;
        if (!loader->warning.text[0] && loader->has_ended && loader->launch.n_local > 1 && loader->failed == 0)
                absent_look_for_absent(loader);
        if (!loader->warning.text[0])
                return NULL;
        loader->told = loader->warning;
        loader->warning.text[0] = '\0';
        return loader->told.text;
}
