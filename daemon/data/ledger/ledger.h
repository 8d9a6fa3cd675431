/* data/ledger/ledger.h: what is known of a dataset's damaged samples, from run to run.
 *
 * INDEX_DIR/NAME.errors (data/ledger/ledger_line.h) lists them. It belongs to one content of the dataset: another
 * digest puts it aside as NAME.errors.old and begins anew. Whoever meets a damaged sample says so in memory and goes
 * on; one thread does all reading and writing for all ledgers: what is new is in the file within a second, how often
 * samples were met again when the dataset is let go. The file is opened for each writing, so that it may be removed at
 * any time; if it cannot be written that is said once, and the ledger lives in memory.
 *
 * Threads: any, unless said otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/dataset.h"
#include "daemon/data/ledger/ledger_line.h"

struct ledger;
struct ledgers;

/* Starts the thread. 0 or a negative errno. */
int ledgers_new(const char *index_dir, struct ledgers **ret_ledgers);

/* Writes what is left and ends the thread. All ledgers must have been let go. Takes NULL. */
void ledgers_free(struct ledgers *ledgers);

/* The ledger of a dataset as it is now, counted: whoever opens the same content under the same name shares it. Holds
 * the dataset. Blocks until the file has been read. 0 or -ENOMEM. */
int ledger_open(struct ledgers *ledgers, struct dataset *dataset, struct ledger **ret_ledger);

/* Never blocks; the thread writes what is left. Takes NULL. */
void ledger_unref(struct ledger *ledger);

/* A damaged sample was met. `field`: which of its fields is damaged; "": not known. Never blocks for longer than memory
 * takes. */
void ledger_meet(struct ledger *ledger, uint64_t sample, const char *field, const char *error);

/* Damaged samples, each counted once. */
uint64_t ledger_n_samples(struct ledger *ledger);

/* Entry `idx`, in the order in which samples were first met. False after the last one. */
bool ledger_at(struct ledger *ledger, uint64_t idx, struct ledger_entry *ret_entry);
