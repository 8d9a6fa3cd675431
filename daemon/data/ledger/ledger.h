/* data/ledger/ledger.h: what is known about a dataset's damaged samples, from run to run.
 *
 * INDEX_DIR/NAME.errors (data/ledger/ledger_line.h) lists them. It belongs to one content of the dataset: if the digest
 * differs, the file is moved to NAME.errors.old and a new one begins. A thread that meets a damaged sample only records
 * it in memory. One thread reads and writes the files of all ledgers: new samples are in the file within a second; how
 * often samples were met again is written when the dataset is closed. The file is opened for each write, so it may be
 * removed at any time. If it cannot be written, that is logged once, and the ledger is kept in memory.
 *
 * Threads: any, unless said otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/dataset.h"
#include "daemon/data/ledger/ledger_line.h"

struct ledger;
struct ledgers;

/* Starts the thread. Returns 0 or a negative errno. */
int ledgers_new(const char *index_dir, struct ledgers **ret_ledgers);

/* Writes what is left and ends the thread. All ledgers must have been released. Takes NULL. */
void ledgers_free(struct ledgers *ledgers);

/* The ledger of a dataset in its present content, reference-counted: callers that open the same content under the same
 * name share it. Holds the dataset. Blocks until the file has been read. Returns 0 or -ENOMEM. */
int ledger_open(struct ledgers *ledgers, struct dataset *dataset, struct ledger **ret_ledger);

/* Never blocks; the thread writes what is left. Takes NULL. */
void ledger_unref(struct ledger *ledger);

/* Records a damaged sample. `field`: which of its fields is damaged; "": not known. Blocks only for a mutex and
 * memory. */
void ledger_meet(struct ledger *ledger, uint64_t sample, const char *field, const char *error);

/* Damaged samples, each counted once. */
uint64_t ledger_n_samples(struct ledger *ledger);

/* Entry `idx`, in the order in which samples were first met. Returns false after the last one. */
bool ledger_at(struct ledger *ledger, uint64_t idx, struct ledger_entry *ret_entry);
