/* Which epoch comes. The daemon makes epochs in sequence, so moving on costs nothing; anything else is a seek: the
 * daemon numbers its batches' streams, and what it had made for the old place is passed over by its number. */

#include <errno.h>

#include "client/lib/loader.h"

static int seek(struct dlc_loader *loader, uint64_t epoch) {
        Dlp__Seek body = DLP__SEEK__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        body.epoch = epoch;
        request.body_case = DLP__REQUEST__BODY_SEEK;
        request.seek = &body;
        r = dli_connection_call(&loader->connection, &request, DLI_ANSWER_TIMEOUT_MS, &loader->reason, &reply, NULL, 0);
        if (r == DLI_ASK_AGAIN)
                return -EREMOTEIO; /* nobody waits in the middle of a run; the text says for what */
        if (r == -ETIMEDOUT || r == -EPROTO || r == -ECONNRESET)
                return dli_loader_fail(loader, r); /* where the daemon goes on now is not known */
        if (r < 0)
                return r;
        if (reply->body_case == DLP__REPLY__BODY_SOUGHT)
                loader->stream = reply->sought->stream;
        else
                r = dli_reason_set(&loader->reason, -EPROTO, "the daemon at %s answered another question",
                                   loader->connection.path);
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

/* Goes to the beginning of `epoch`; `is_next` if the daemon gets there by itself. */
static int begin(struct dlc_loader *loader, uint64_t epoch, bool is_next) {
        int r;

        /* A rank without samples has nothing to be sought. */
        if (loader->n_batches > 0 && (!is_next || epoch >= loader->prepared_until)) {
                r = seek(loader, epoch);
                if (r < 0)
                        return r;
        }
        loader->epoch = epoch;
        loader->step = 0;
        loader->ended = false;
        return 0;
}

int dli_epoch_advance(struct dlc_loader *loader) {
        if (loader->epoch >= DLP_EPOCH_MAX)
                return dli_reason_set(&loader->reason, -EINVAL, "epoch: %llu was the last one", DLP_EPOCH_MAX);
        return begin(loader, loader->epoch + 1, true);
}

int dlc_set_epoch(struct dlc_loader *loader, uint64_t epoch) {
        struct dli_reason reason;
        int r;

        if (!loader)
                return dli_report(&reason, dli_reason_set(&reason, -EINVAL, "dlc_set_epoch: loader must not be NULL"));
        if (dli_loader_check(loader) < 0)
                return dli_report(&loader->reason, dli_loader_in_child(&loader->reason));
        if (loader->failed < 0) {
                loader->reason = loader->failure;
                return dli_report(&loader->reason, loader->failed);
        }
        if (epoch > DLP_EPOCH_MAX)
                return dli_report(&loader->reason,
                                  dli_reason_set(&loader->reason, -EINVAL, "epoch: %llu; 0 to %llu are allowed",
                                                 (unsigned long long)epoch, DLP_EPOCH_MAX));

        if (epoch == loader->epoch && loader->step == 0 && !loader->ended)
                return 0;
        r = begin(loader, epoch, epoch == loader->epoch + 1 && loader->step == loader->n_batches);
        return r < 0 ? dli_report(&loader->reason, r) : 0;
}
