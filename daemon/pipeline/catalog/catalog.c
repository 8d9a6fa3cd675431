#include "daemon/pipeline/catalog/catalog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/codec/plugged/format_scanner.h"
#include "daemon/data/index/index_sweep.h"
#include "daemon/pipeline/catalog/catalog_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/nearest.h"
#include "proto/base/path_url.h"

#define RETRY_AFTER_NS 1000000000ull /* an older failure is not reported: the dataset is opened again */

const char *catalog_state_name(enum catalog_state state) {
        static const char *const NAMES[] = {
                [CATALOG_CLOSED] = "not opened", [CATALOG_STAGING] = "not staged", [CATALOG_INDEXING] = "indexing",
                [CATALOG_READY] = "ready",       [CATALOG_FAILED] = "failed",
        };

        return NAMES[state];
}

/* ---- an open dataset ----------------------------------------------------------------------------------------- */

/* On failure the caller still owns the dataset and the ledger. */
static struct catalog_dataset *catalog_dataset_new(struct dataset *dataset, struct ledger *ledger, const char *name) {
        struct catalog_dataset *open = calloc(1, sizeof(*open));

        if (!open)
                return NULL;
        if (outage_new(dataset, &open->outage) < 0) {
                free(open);
                return NULL;
        }
        open->dataset = dataset;
        open->ledger = ledger;
        snprintf(open->name, sizeof(open->name), "%s", name);
        atomic_store_explicit(&open->refs, 1, memory_order_relaxed);
        pthread_mutex_init(&open->error_lock, NULL);
        return open;
}

struct catalog_dataset *catalog_dataset_ref(struct catalog_dataset *dataset) {
        atomic_fetch_add_explicit(&dataset->refs, 1, memory_order_relaxed);
        return dataset;
}

void catalog_dataset_unref(struct catalog_dataset *dataset) {
        if (!dataset || atomic_fetch_sub_explicit(&dataset->refs, 1, memory_order_acq_rel) > 1)
                return;
        arrival_stop(dataset->arrival);
        outage_free(dataset->outage);
        ledger_unref(dataset->ledger);
        dataset_unref(dataset->dataset);
        for (uint32_t k = 0; k < dataset->n_parts; k++)
                catalog_dataset_unref(dataset->parts[k]);
        free(dataset->parts);
        arrival_free(dataset->arrival);
        remote_unref(dataset->feeding);
        remote_unref(dataset->remote);
        unpacked_unref(dataset->unpacked);
        version_lock_free(dataset->lock); /* after the last file is closed */
        pthread_mutex_destroy(&dataset->error_lock);
        free(dataset);
}

uint64_t catalog_dataset_error(struct catalog_dataset *dataset, const char *text) {
        pthread_mutex_lock(&dataset->error_lock);
        snprintf(dataset->last_error.text, sizeof(dataset->last_error.text), "%s", text);
        pthread_mutex_unlock(&dataset->error_lock);
        return atomic_fetch_add_explicit(&dataset->n_errors, 1, memory_order_relaxed);
}

/* ---- opening, in the background ------------------------------------------------------------------------------ */

static void catalog_on_progress(void *userdata, uint64_t n_samples) {
        struct catalog_entry *entry = userdata;

        if (!entry->has_parts)
                work_tell(&entry->work, n_samples, 0, "samples");
}

static void on_part(void *userdata, uint64_t n_done, uint64_t n_total, const char *unit) {
        struct catalog_entry *entry = userdata;

        entry->has_parts = true;
        work_tell(&entry->work, n_done, n_total, unit);
}

/* The lock is taken before anything of the version is opened: from then on the version is not removed. */
static int opening_lock(struct opening *opening) {
        int r;

        if (!opening->version[0])
                return 0;
        r = version_lock_take(&opening->place, opening->version, &opening->lock, &opening->unprotected);
        if (r == 0)
                opening->unprotected.text[0] = '\0';
        if (r == -ENOENT)
                opening->why = opening->unprotected;
        return r == -ENOENT ? r : 0;
}

/* What an index unpacks into memory is given back soon; six times as much may be taken for a moment, a part of it where
 * nobody counts it. */
static uint64_t max_copied(const struct budget *budget) {
        uint64_t part = budget ? budget->limit_bytes / 8 : INDEX_COPIED_MAX;

        return part == 0 ? 1 : part < INDEX_COPIED_MAX ? part : INDEX_COPIED_MAX;
}

#define DOUBT_LEAST_NS 20000000ull /* of an index that was there: files that are in memory are looked at in 5 ms */
#define DOUBT_MOST_NS  2000000000ull

/* How long files may be looked at: a twentieth of what making the index took. */
static uint64_t doubt_ns(const struct dataset_report *report) {
        uint64_t part = report->duration_ns / 20;

        return part < DOUBT_LEAST_NS ? DOUBT_LEAST_NS : part < DOUBT_MOST_NS ? part : DOUBT_MOST_NS;
}

/* What the path means here, if it is a URL. */
static int open_remote(struct opening *opening, struct dataset_spec *spec, const struct index_watch *watch) {
        char *const *texts = opening->entry->remote;
        const struct cached_terms terms = { .url = opening->path,
                                            .endpoint = texts[REMOTE_ENDPOINT],
                                            .region = texts[REMOTE_REGION],
                                            .addressing = texts[REMOTE_ADDRESSING],
                                            .credentials = texts[REMOTE_CREDENTIALS],
                                            .ca_file = texts[REMOTE_CA_FILE],
                                            .mirror = texts[REMOTE_MIRROR],
                                            .n_connections = opening->entry->n_connections };
        int r;

        if (!path_is_url(opening->path))
                return 0;
        r = remote_open(opening->entry->catalog->cache, &terms, watch, &opening->remote, &opening->why);
        if (r < 0)
                return r;
        opening->remote->is_arriving = opening->is_arriving;
        spec->path = cached_path(opening->remote->cached);
        spec->origin = &opening->remote->origin;
        remote_fetch_index(opening->remote, watch->cancel, opening->index);
        spec->given_index = opening->index[0] ? opening->index : NULL;
        return 0;
}

static void opening_keep_remote(struct opening *opening) {
        if (!opening->remote)
                return;
        if (opening->result == 0 && opening->unpacked) { /* which has all that is wanted of it */
                remote_unref(TAKE_PTR(opening->remote));
                return;
        }
        if (opening->result < 0)
                remote_explain(opening->remote, &opening->why);
        else
                opening->remote->folder = dataset_root(opening->dataset);
        if (opening->result < 0)
                remote_unref(TAKE_PTR(opening->remote));
}

/* A plug-in may be the one that reads it. */
static int open_plain(struct opening *opening, struct dataset_spec *spec, const struct index_watch *watch) {
        const struct catalog *catalog = opening->entry->catalog;
        struct scanner *scanner = NULL;
        int r = 0;

        if (strncmp(spec->format, SCANNER_PREFIX, strlen(SCANNER_PREFIX)) == 0)
                r = format_scanner_new(spec->format, catalog->plugins, &scanner, &opening->why);
        spec->scanner = scanner;
        if (r == 0)
                r = dataset_open(spec, catalog->index_dir, watch, &opening->dataset, &opening->report, &opening->why);
        format_scanner_free(scanner);
        return r;
}

/* Compressed files are unpacked first: where the path names them, and where no format takes them as they are. */
static int open_dataset(struct opening *opening, struct dataset_spec *spec, const struct index_watch *watch) {
        int r;

        if (opening->remote)
                opening->entry->could_arrive = opening_could_arrive(opening, spec, watch);
        r = unpacked_is_due(opening, spec) ? -ENOTSUP : open_plain(opening, spec, watch);
        if (r != -ENOTSUP)
                return r;
        if (!opening->remote)
                opening->entry->could_arrive = opening_could_arrive(opening, spec, watch);
        spec->given_index = NULL; /* what lies beside them is of the compressed files */
        r = opening_unpack(opening, spec, watch);
        if (r == 0)
                r = open_plain(opening, spec, watch);
        if (r < 0)
                opening_drop_unpacked(opening);
        return r;
}

void opening_work(void *userdata) {
        struct opening *opening = userdata;
        struct catalog_entry *entry = opening->entry;
        struct dataset_spec spec = { .name = entry->name,
                                     .path = opening->path,
                                     .format = opening->format,
                                     .options = opening->options,
                                     .follows_links = entry->follows_links,
                                     .budget = entry->catalog->budget,
                                     .given_index = opening->index[0] ? opening->index : NULL,
                                     .given_digest = opening->digest,
                                     .is_staged = opening->version[0] != '\0' };
        struct index_watch watch = { .progress = catalog_on_progress,
                                     .part = on_part,
                                     .userdata = entry,
                                     .cancel = &entry->cancelled,
                                     .max_copied = max_copied(entry->catalog->budget) };

        entry->has_parts = entry->could_arrive = false;
        errand_begin(opening->errands, NULL);
        opening->result = opening_lock(opening);
        if (opening->result == 0)
                opening->result = open_remote(opening, &spec, &watch);
        if (opening->result == 0)
                opening->result = opening->is_arriving ? opening_arrive(opening, &spec, &watch)
                                                       : open_dataset(opening, &spec, &watch);
        if (!opening->is_arriving)
                opening_keep_remote(opening);
        if (opening->result == 0 && !opening->remote && !opening->is_arriving) /* which would fetch its files */
                opening_doubt(opening, doubt_ns(&opening->report));
        if (opening->result == 0 && ledger_open(entry->catalog->ledgers, opening->dataset, &opening->ledger) < 0) {
                arrival_stop(opening->arrival);
                dataset_unref(TAKE_PTR(opening->dataset));
                opening_drop_unpacked(opening);
                if (!opening->is_arriving)
                        remote_unref(TAKE_PTR(opening->remote));
                opening->result = why_errno(&opening->why, -ENOMEM, "the ledger of damaged samples");
        }
        if (opening->result < 0 && opening->is_arriving) {
                arrival_free(TAKE_PTR(opening->arrival));
                remote_unref(TAKE_PTR(opening->remote));
        }
        if (opening->result < 0)
                version_lock_free(TAKE_PTR(opening->lock));
        else
                dataset_leave(opening->dataset); /* held again when the first rank is served from it */
        errand_end();
}

void opening_free(struct opening *opening) {
        if (!opening)
                return;
        free(opening->options);
        free(opening);
}

struct catalog_dataset *opening_take(struct opening *opening) {
        struct catalog_dataset *open;

        if (opening->result < 0)
                return NULL;
        open = catalog_dataset_new(opening->dataset, opening->ledger, opening->entry->name);
        if (!open) {
                arrival_stop(opening->arrival);
                ledger_unref(opening->ledger);
                dataset_unref(opening->dataset);
                arrival_free(opening->arrival);
                remote_unref(opening->remote);
                opening_drop_unpacked(opening);
                version_lock_free(opening->lock);
                opening->result = why_errno(&opening->why, -ENOMEM, "opening");
                return NULL;
        }
        open->lock = opening->lock;
        if (!opening->is_arriving || arrival_is_in_place(opening->arrival))
                open->remote = opening->remote;
        else
                open->feeding = opening->remote;
        if (open->remote && opening->is_arriving)
                open->remote->folder = dataset_root(open->dataset);
        open->arrival = opening->arrival;
        open->unpacked = opening->unpacked;
        open->doubt = opening->doubt;
        if (opening->unprotected.text[0])
                log_warning("dataset", "%s: version %s cannot be locked against removal while it is served: %s",
                            opening->entry->name, opening->version, opening->unprotected.text);
        return open;
}

void entry_free(struct catalog_entry *entry) {
        catalog_dataset_unref(entry->open);
        catalog_dataset_unref(entry->arriving);
        staged_free(entry->staged);
        groups_fini(&entry->allow);
        free(entry->name);
        work_fini(&entry->work);
        free(entry->path);
        free(entry->options);
        for (size_t i = 0; i < N_REMOTE_TEXTS; i++)
                free(entry->remote[i]);
        free(entry);
}

static void log_opened(const struct catalog_entry *entry, const struct dataset_report *report) {
        const struct source *index = dataset_source(entry->open->dataset);
        static const char *const HOW[] = {
                [DATASET_LOADED] = "opened",         [DATASET_BUILT] = "indexed",
                [DATASET_REBUILT] = "indexed again", [DATASET_GIVEN] = "opened with the index beside it",
                [DATASET_LIVE] = "opened",
        };

        if (index->growth)
                log_info("dataset", "%s: a stream, digest %.12s", entry->name, index->digest);
        else
                log_info("dataset", "%s: %s%s%s in %.2f s; %llu samples, %u classes, digest %.12s", entry->name,
                         HOW[report->how], report->reason.text[0] ? " because " : "", report->reason.text,
                         (double)report->duration_ns / 1e9, (unsigned long long)index->n_samples, index->n_classes,
                         index->digest);
        if (entry->open->remote && cached_notice(entry->open->remote->cached)[0])
                log_warning("dataset", "%s: %s", entry->name, cached_notice(entry->open->remote->cached));
        if (index->n_refused > 0)
                log_warning("dataset", "%s: %u columns cannot be served, %s first: %s; dlctl datasets %s lists them",
                            entry->name, index->n_refused, index->refused[0].name, index->refused[0].reason,
                            entry->name);
        if (report->not_taken.text[0])
                log_warning("dataset", "%s: the index beside it cannot be used: %s; one was made here", entry->name,
                            report->not_taken.text);
        if (entry->open->doubt.text[0])
                log_warning("dataset", "%s: %s", entry->name, entry->open->doubt.text);
        if (!report->saved)
                log_warning("dataset", "%s: the index could not be saved (%s); it will be built again next time",
                            entry->name, report->not_saved.text);
}

/* What was opened replaces what was served until now. */
static void entry_take(struct catalog_entry *entry, struct catalog_dataset *open, const struct opening *opening) {
        const struct dataset_report *report = &opening->report;

        if (entry->staged)
                staged_take(entry, open);
        entry->open = open;
        entry->state = CATALOG_READY;
        why_set(&entry->text, 0, "%s%s%s%s", report->reason.text, report->reason.text[0] && !report->saved ? "; " : "",
                report->saved ? "" : "the index was not saved: ", report->not_saved.text);
        log_opened(entry, report);
}

void entry_fail(struct catalog_entry *entry, int error, const struct why *why) {
        bool is_news = !entry->staged || strcmp(entry->staged->told.text, why->text) != 0;

        entry->text = *why;
        if (entry->open) { /* a new version that cannot be used: the old one is still served */
                if (is_news)
                        log_error("dataset", "%s: %s; the previous version is still served", entry->name, why->text);
        } else {
                entry->state = CATALOG_FAILED;
                entry->failed_at_ns = clock_now_ns();
                entry->was_told = false;
                if (is_news && error != -ECANCELED) /* -ECANCELED comes from our own shutdown */
                        log_error("dataset", "%s: %s; attaching to it tries again", entry->name, why->text);
        }
        if (entry->staged)
                entry->staged->told = *why;
}

/* Where this cannot be, or fails, opening it as any other says why. */
static void entry_take_arriving(struct catalog_entry *entry, struct catalog_dataset *open,
                                const struct opening *opening) {
        entry->arriving = open;
        entry->cannot_arrive = !open;
        if (open)
                log_info("dataset", "%s: served while its files arrive, digest %.12s", entry->name,
                         dataset_source(open->dataset)->digest);
        else if (opening->result != -ENOTSUP)
                log_info("dataset", "%s: it is served once all files are there: %s", entry->name, opening->why.text);
        if (!open && !entry->catalog->is_ending && entry->state == CATALOG_CLOSED)
                entry_open(entry);
}

static void opening_done(void *userdata) {
        struct opening *opening = userdata;
        struct catalog_entry *entry = opening->entry;
        struct catalog_dataset *open = opening_take(opening);

        opening_leave_doubts(opening);
        entry->is_opening = false;
        work_end(&entry->work);
        if (!entry->is_wanted) {
                catalog_dataset_unref(open);
                entry_free(entry);
        } else if (opening->is_arriving) {
                entry_take_arriving(entry, open, opening);
        } else if (open) {
                entry_take(entry, open, opening);
        } else {
                entry_fail(entry, opening->result, &opening->why);
        }
        opening_free(opening);
}

/* Where the dataset lies, its format, and the index that came with it. */
static int opening_aim(struct opening *opening, const struct catalog_entry *entry) {
        if (entry->staged)
                return staged_aim(entry, opening);
        if (snprintf(opening->path, PATH_MAX, "%s", entry->path) >= PATH_MAX)
                return -ENAMETOOLONG;
        snprintf(opening->format, sizeof(opening->format), "%s", entry->format);
        return 0;
}

struct errands *entry_errands(const struct catalog_entry *entry) {
        return entry->is_path ? entry->catalog->asker : &entry->catalog->shared;
}

void entry_open(struct catalog_entry *entry) {
        entry_open_as(entry, false);
}

void entry_open_as(struct catalog_entry *entry, bool arriving) {
        struct opening *opening = calloc(1, sizeof(*opening));
        int r = -ENOMEM;

        if (opening) {
                opening->entry = entry;
                opening->is_arriving = arriving;
                opening->errands = entry_errands(entry);
                opening->options = strdup(entry->options);
                r = opening->options ? opening_aim(opening, entry) : -ENOMEM;
        }
        if (r == 0) {
                work_begin(&entry->work, "indexing", "");
                atomic_store_explicit(&entry->cancelled, false, memory_order_relaxed);
                r = background_run(entry->catalog->background, opening_work, opening_done, opening);
        }
        if (r < 0) {
                struct why why;

                opening_free(opening);
                work_end(&entry->work);
                why_errno(&why, r, "opening");
                entry_fail(entry, r, &why);
                return;
        }
        entry->is_opening = true;
        if (entry->open || arriving)
                return; /* the version before: served until the new one is open */
        entry->state = CATALOG_INDEXING;
        entry->was_told = false;
}

/* ---- the list ------------------------------------------------------------------------------------------------ */

int catalog_init(struct catalog *catalog, struct background *background, const char *index_dir, struct budget *budget) {
        int r;

        *catalog = (struct catalog){ .background = background, .index_dir = strdup(index_dir), .budget = budget };
        TAILQ_INIT(&catalog->entries);
        TAILQ_INIT(&catalog->joined);
        if (!catalog->index_dir)
                return -ENOMEM;
        index_sweep(index_dir);
        r = ledgers_new(index_dir, &catalog->ledgers);
        if (r < 0)
                free(catalog->index_dir);
        return r;
}

void catalog_cancel(struct catalog *catalog) {
        struct catalog_entry *entry;

        catalog->is_ending = true;
        TAILQ_FOREACH(entry, &catalog->entries, entry)
                atomic_store_explicit(&entry->cancelled, true, memory_order_relaxed);
}

void catalog_fini(struct catalog *catalog) {
        struct catalog_entry *entry;

        joined_fini(catalog);
        while ((entry = TAILQ_FIRST(&catalog->entries))) {
                TAILQ_REMOVE(&catalog->entries, entry, entry);
                entry_free(entry);
        }
        ledgers_free(catalog->ledgers);
        free(catalog->index_dir);
}

struct catalog_entry *entry_find(struct catalog *catalog, const char *name) {
        struct catalog_entry *entry;

        TAILQ_FOREACH(entry, &catalog->entries, entry)
                if (strcmp(entry->name, name) == 0)
                        return entry;
        return NULL;
}

static bool has_same_terms(const struct catalog_entry *entry, const struct catalog_wish *wish) {
        for (size_t i = 0; i < N_REMOTE_TEXTS; i++)
                if (strcmp(entry->remote[i], wish->remote[i] ? wish->remote[i] : "") != 0)
                        return false;
        return entry->n_connections == wish->n_connections;
}

static bool entry_matches(const struct catalog_entry *entry, const struct catalog_wish *wish) {
        return strcmp(entry->name, wish->name) == 0 && strcmp(entry->path, wish->path) == 0 &&
               strcmp(entry->format, wish->format) == 0 &&
               strcmp(entry->options, wish->options ? wish->options : "") == 0 &&
               entry->follows_links == wish->follows_links && has_same_terms(entry, wish) &&
               staged_matches(entry->staged, wish->origin);
}

/* What applies from now on, also to a dataset that is already there. */
static int entry_apply(struct catalog_entry *entry, const struct catalog_wish *wish, struct why *why) {
        struct groups allow = { 0 };

        if (wish->allow && groups_copy(wish->allow, &allow) < 0)
                return why_errno(why, -ENOMEM, "dataset %s", wish->name);
        groups_fini(&entry->allow);
        entry->allow = allow;
        entry->weight = wish->weight > 0 ? wish->weight : 1;
        return 0;
}

void entry_remove(struct catalog_entry *entry) {
        TAILQ_REMOVE(&entry->catalog->entries, entry, entry);
        entry->is_wanted = false;
        entry_wake_waiters(entry);
        if (entry->is_opening)
                atomic_store_explicit(&entry->cancelled, true, memory_order_relaxed); /* opening_done() frees it */
        else
                entry_free(entry);
}

int entry_add(struct catalog *catalog, const struct catalog_wish *wish, bool is_path, struct why *why) {
        struct catalog_entry *entry = calloc(1, sizeof(*entry));
        int r = 0;

        if (entry) {
                work_init(&entry->work);
                entry->path = strdup(wish->path);
        }
        if (entry)
                entry->options = strdup(wish->options ? wish->options : "");
        if (entry)
                entry->name = strdup(wish->name);
        for (size_t i = 0; entry && i < N_REMOTE_TEXTS && r == 0; i++) {
                entry->remote[i] = strdup(wish->remote[i] ? wish->remote[i] : "");
                r = entry->remote[i] ? 0 : why_errno(why, -ENOMEM, "dataset %s", wish->name);
        }
        if (r == 0 && (!entry || !entry->path || !entry->options || !entry->name))
                r = why_errno(why, -ENOMEM, "dataset %s", wish->name);
        else if (r == 0 && wish->origin && *wish->origin)
                r = staged_new(wish, &entry->staged, why);
        if (r == 0)
                r = entry_apply(entry, wish, why);
        if (r < 0) {
                if (entry)
                        entry_free(entry);
                return r;
        }
        snprintf(entry->format, sizeof(entry->format), "%s", wish->format);
        entry->follows_links = wish->follows_links;
        entry->n_connections = wish->n_connections;
        entry->is_path = is_path;
        entry->catalog = catalog;
        entry->is_wanted = true;
        TAILQ_INIT(&entry->waiters);
        TAILQ_INSERT_TAIL(&catalog->entries, entry, entry);
        if (!entry->staged)
                entry_open_as(entry, wish->in_blocks); /* the others after a look at their stamp */
        return 0;
}

int catalog_configure(struct catalog *catalog, const struct catalog_wish *wishes, size_t n_wishes, struct why *why) {
        struct catalog_entry *entry, *next;
        int r;

        joined_drop_unused(catalog);
        TAILQ_FOREACH_SAFE(entry, &catalog->entries, entry, next) {
                const struct catalog_wish *wish = NULL;

                if (entry->is_path)
                        continue;
                for (size_t i = 0; i < n_wishes; i++)
                        if (entry_matches(entry, &wishes[i]))
                                wish = &wishes[i];
                if (!wish) {
                        entry_remove(entry);
                        continue;
                }
                r = entry_apply(entry, wish, why);
                if (r < 0)
                        return r;
                entry_check(entry);
        }
        for (size_t i = 0; i < n_wishes; i++)
                if (!entry_find(catalog, wishes[i].name)) {
                        r = entry_add(catalog, &wishes[i], false, why);
                        if (r < 0)
                                return r;
                }
        catalog_look(catalog);
        return 0;
}

static int catalog_unknown_dataset(struct catalog *catalog, const char *name, struct why *why) {
        char known[256] = "";
        struct catalog_entry *entry;
        struct nearest nearest;
        size_t n = 0;

        nearest_begin(&nearest, name, strlen(name));
        TAILQ_FOREACH(entry, &catalog->entries, entry) {
                if (entry->is_path)
                        continue;
                nearest_offer(&nearest, entry->name);
                if (n < sizeof(known))
                        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", entry->name);
        }
        return why_set(why, -ENOENT, "dataset: there is no \"%s\"%s; %s%s", name, nearest_hint(&nearest),
                       known[0] ? "the configuration has: " : "the configuration names no dataset", known);
}

struct catalog_entry *catalog_find(struct catalog *catalog, const char *name, struct why *why) {
        struct catalog_entry *entry = entry_find(catalog, name);

        if (!entry)
                catalog_unknown_dataset(catalog, name, why);
        return entry;
}

bool catalog_is_stream(const struct catalog_entry *entry) {
        _cleanup_(freep) char *value = NULL;

        format_options_value(entry->options, FORMAT_STREAM, &value);
        return format_option_is_yes(value);
}

int catalog_get_again(struct catalog *catalog, const char *name, const char *digest,
                      struct catalog_dataset **ret_dataset, struct why *why) {
        struct catalog_entry *entry = entry_find(catalog, name);
        struct catalog_dataset *older;

        if (!entry || !entry->staged || !digest || !*digest ||
            (entry->open && strcmp(dataset_source(entry->open->dataset)->digest, digest) == 0))
                return catalog_get(catalog, name, ret_dataset, why);
        older = versions_find(entry->staged, digest);
        if (older) {
                *ret_dataset = catalog_dataset_ref(older);
                return 0;
        }
        if (versions_seek(entry, digest))
                return why_set(why, -EAGAIN, "dataset %s: the version that the job had before is being searched for",
                               name);
        return catalog_get(catalog, name, ret_dataset, why);
}

static void open_again(struct catalog_entry *entry) {
        if (entry->staged)
                staged_look_again(entry);
        else
                entry_open(entry);
}

struct catalog_dataset *catalog_shown(const struct catalog_entry *entry) {
        return entry->state == CATALOG_READY ? entry->open : entry->state == CATALOG_CLOSED ? entry->arriving : NULL;
}

void catalog_try_again(struct catalog_entry *entry) {
        if (entry->state == CATALOG_CLOSED && !entry->staged && !entry->is_opening)
                entry_open(entry); /* it was served in the order of blocks alone */
        if (entry->state == CATALOG_FAILED && clock_now_ns() - entry->failed_at_ns >= RETRY_AFTER_NS)
                open_again(entry);
}

/* What a text about a dataset says after the dataset's name, which may be the path with which the text begins. */
static const char *catalog_without_path(const struct catalog_entry *entry, const char *name, const char *text) {
        size_t n = strlen(entry->path);

        if (name[0] != '/' || n < 2 || strncmp(text, entry->path, n) != 0)
                return text;
        if (strncmp(text + n, ": ", 2) == 0)
                return text + n + 2;
        return text[n] == '/' && text[n + 1] ? text + n + 1 : text;
}

const char *catalog_advice(const struct catalog_entry *entry) {
        return entry->could_arrive ? "; order=\"blocks\" begins without it" : "";
}

int catalog_get(struct catalog *catalog, const char *name, struct catalog_dataset **ret_dataset, struct why *why) {
        struct catalog_entry *entry = catalog_find(catalog, name, why);
        struct dlp_progress progress;
        char sentence[DLP_TEXT_MAX];

        if (!entry)
                return -ENOENT;

        entry->used_ns = clock_now_ns();
        if (entry->state == CATALOG_FAILED && !entry->was_told &&
            clock_now_ns() - entry->failed_at_ns < RETRY_AFTER_NS) {
                entry->was_told = true;
                return why_set(why, -EIO, "dataset %s: %s", name, catalog_without_path(entry, name, entry->text.text));
        }
        if (entry->state == CATALOG_FAILED) /* too old, or reported already: opened again, without a restart */
                open_again(entry);
        if (entry->state == CATALOG_CLOSED && !entry->staged && !entry->is_opening)
                entry_open(entry);
        if (entry->state == CATALOG_READY) {
                *ret_dataset = catalog_dataset_ref(entry->open);
                return 0;
        }
        if (entry->state != CATALOG_INDEXING && entry->staged) {
                char text[DLP_TEXT_MAX];

                return why_set(why, -EAGAIN, "dataset %s: %s", name, catalog_staging_text(entry, text));
        }
        if (catalog_is_stream(entry))
                return why_set(why, -EAGAIN, "dataset %s: the stream waits for its first whole shard in %s", name,
                               entry->path);
        work_read(&entry->work, &progress);
        progress.phase[0] = '\0';
        dlp_progress_sentence(&progress, sentence);
        return why_set(why, -EAGAIN, "dataset %s: its index is being built%s%s%s", name, sentence[0] ? ", " : "",
                       sentence, catalog_advice(entry));
}
