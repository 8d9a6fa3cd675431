/* Any bytes as the small files beside a staged dataset: the first byte says which. What is accepted is written and read
 * again as the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fetch/credentials.h"
#include "daemon/store/record/record_progress.h"
#include "daemon/store/record/stamp.h"
#include "daemon/store/tree/journal.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/amounts.h"
#include "tests/fuzz/folder.h"

#include <sys/stat.h>

#define VERSION  "v-001122334455"
#define DIGEST   "0011223344556677889900112233445566778899001122334455667788990011"
#define N_CHUNKS 5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static struct place place;

static void find(const char *what) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
}

static void prepare(void) {
        char path[PATH_MAX];
        struct why why;

        if (place.path[0])
                return;
        folder_make(".photos.staged");
        folder_make(".photos.staged/" VERSION);
        folder_write(".photos.staged/" VERSION ".index", "", 0);
        if (place_init(&place, folder_path("photos", path), &why) < 0)
                abort();
}

static void read_stamp(const uint8_t *data, size_t n_bytes) {
        struct stamp stamp, again;
        struct why why = { 0 };

        memset(&stamp, 0, sizeof(stamp));
        folder_write(".photos.staged/stamp", data, n_bytes);
        if (stamp_read(&place, &stamp, &why) != 0) {
                if (!why.text[0])
                        find("a stamp was refused without a word");
                return;
        }
        if (stamp_write(&place, &stamp, &why) < 0 || stamp_read(&place, &again, &why) != 0 ||
            memcmp(&stamp, &again, sizeof(stamp)) != 0)
                find("a stamp is not read as it was written");
}

static void read_progress(const uint8_t *data, size_t n_bytes) {
        struct progress progress, again;
        char sentence[DLP_TEXT_MAX];
        struct why why = { 0 };
        uint64_t mark;

        folder_write(".photos.staged/progress", data, n_bytes);
        if (progress_read(&place, &progress, &mark, &why) != 0)
                return;
        if (progress.n_bytes_done > progress.n_bytes_total || progress.n_listed > PROGRESS_NODES_MAX)
                find("more is done than there is");
        if (percent_of(progress.n_bytes_done, progress.n_bytes_total) > 100)
                find("more than all of it");
        progress_sentence(&progress, sentence);
        if (progress_write(&place, &progress, &why) < 0 || progress_read(&place, &again, NULL, &why) != 0 ||
            strcmp(progress.text, again.text) != 0 || progress.n_listed != again.n_listed ||
            progress.n_bytes_total != again.n_bytes_total || progress.seconds_left != again.seconds_left)
                find("progress is not read as it was written");
        progress_fini(&progress);
        progress_fini(&again);
}

/* Of the plan, so that what follows the header is looked at; bit 7 of the first byte leaves it out. */
static void read_journal(uint8_t how, const uint8_t *data, size_t n_bytes) {
        struct digest128 digests[N_CHUNKS + 1] = { 0 };
        struct journal journal = JOURNAL_NONE;
        char path[PATH_MAX];
        struct why why = { 0 };
        int64_t n;

        folder_path("journal", path);
        if (how & 0x80) {
                folder_write("journal", data, n_bytes);
        } else {
                FILE *file;

                if (journal_begin(&journal, path, DIGEST, N_CHUNKS, digests, &why) < 0)
                        abort();
                journal_note(&journal, 1, (struct digest128){ 1, 2 });
                journal_close(&journal);
                file = fopen(path, "ab");
                if (!file || fwrite(data, 1, n_bytes, file) != n_bytes)
                        _exit(2);
                fclose(file);
        }
        n = journal_read(path, DIGEST, N_CHUNKS, digests, &why);
        if (n < 0 && !why.text[0])
                find("a journal was refused without a word");
        if (n > 0 && journal_continue(&journal, path, DIGEST, N_CHUNKS, &why) == 0) {
                journal_note(&journal, 0, (struct digest128){ 3, 4 });
                journal_close(&journal);
        }
        if (digests[N_CHUNKS].high != 0 || digests[N_CHUNKS].low != 0)
                find("a chunk that there is not");
}

static void read_credentials(const uint8_t *data, size_t n_bytes) {
        _cleanup_(credentials_freep) struct credentials *credentials = NULL;
        char path[PATH_MAX];
        struct why why = { 0 };

        folder_write("credentials", data, n_bytes);
        chmod(folder_path("credentials", path), 0600);
        if (credentials_read(path, &credentials, &why) < 0) {
                if (!why.text[0])
                        find("credentials were refused without a word");
                return;
        }
        if (credentials_s3(credentials) && !credentials_s3(credentials)->access_key[0])
                find("a key without a name");
        credentials_web(credentials, "https://data.example.org/a");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        prepare();
        if (n_bytes < 1)
                return 0;
        switch (data[0] % 4) {
        case 0:
                read_stamp(data + 1, n_bytes - 1);
                break;
        case 1:
                read_progress(data + 1, n_bytes - 1);
                break;
        case 2:
                read_journal(data[0], data + 1, n_bytes - 1);
                break;
        default:
                read_credentials(data + 1, n_bytes - 1);
        }
        return 0;
}
