#include "daemon/data/orders/order_table.h"

/* A list of tables under one mutex, and a thread that advances them chunk by chunk.
 *
 * The thread works on a table without the mutex. Only the thread writes elements, and only those from n_final on;
 * readers read only those below n_final. If a table loses its last reference while the thread works on it, the thread
 * frees it. */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "daemon/base/base_trace.h"
#include "daemon/base/machine/cpus.h"
#include "daemon/base/threads/queue.h"
#include "daemon/base/threads/thread.h"
#include "daemon/base/work/gate.h"
#include "daemon/base/work/sweeper.h"
#include "daemon/data/orders/order_growing.h"
#include "daemon/data/orders/order_made.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/limits.h"
#include "proto/order/epoch_plan.h"

#define CHUNK_STEPS_MIN 4096u         /* takes a fraction of a millisecond, so that a first batch comes soon */
#define CHUNK_STEPS_MAX 65536u        /* a few milliseconds: the longest that a stop, or another table, waits */
#define SHORT_NS        1000000000ull /* until an order of a stream that found no memory tries again */
#define GIVES_WAY       5             /* a third of the weight that samples have, sched(7) */
#define NICE_MAX        19

struct order_table {
        struct order_tables *tables;
        TAILQ_ENTRY(order_table) entry; /* mutex */
        uint32_t n_refs;                /* mutex */
        bool is_worked_on;              /* mutex; the thread works on it */
        bool was_listed;                /* mutex; somebody has had it */

        struct order_spec spec;
        _Atomic uint64_t n; /* positions of an epoch; DLP_UNKNOWN until a stream has ended */

        void *memory; /* NULL: computed, or nothing to shuffle */
        uint64_t n_bytes;
        _Atomic uint64_t n_final; /* published after the elements; sequentially consistent with is_wanted */
        atomic_bool is_wanted;    /* a caller got ORDER_NOT_YET */
        uint64_t chunk_steps;     /* thread only */

        struct dlp_sampler sampler; /* advanced by the thread only */

        struct order_growing growing; /* of a stream; advanced by the thread only */
        atomic_bool has_more;         /* there may be more of it to make */
        struct why lack;              /* mutex: why there is no memory for more of it; "" */

        bool is_made;           /* by a sampler's steps: `made` is used, and `n` is DLP_UNKNOWN at first */
        struct order_made made; /* its own thread */
        struct gate_turn turn;  /* of that thread */
        int nice;               /* likewise: the value that it has */
        _Atomic uint64_t n_units;
        struct sweep sweep;
};

struct order_tables {
        struct order_tables_options options;
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t work; /* a table was added, or stop */
        bool stop;           /* mutex */
        uint32_t n_makers;   /* mutex; threads that make orders of samplers */
        pthread_cond_t maker_ended;
        struct gate gate;               /* of these threads */
        uint64_t now_ns;                /* mutex; filled_ns of the user who was served last: newcomers begin there */
        _Atomic int nice;               /* that threads are to have */
        int fills_with_nice;            /* the background thread alone: the value that it has */
        struct order_user all;          /* if the owner tells no users apart */
        TAILQ_HEAD(, order_table) list; /* mutex; oldest first */
};

uint64_t order_table_bytes(const struct order_spec *spec) {
        if (spec->sampling)
                return order_made_bytes(spec->sampling, &spec->terms, spec->batch_size);
        return spec->growth ? 0 : dlp_sampler_table_bytes(&spec->terms);
}

void order_user_init(struct order_user *user) {
        fair_group_init(&user->group, NULL);
        fair_share_init(&user->share, &user->group, 1);
}

static struct order_user *order_table_user_of(const struct order_table *table) {
        struct order_tables *tables = table->tables;

        return tables->options.user ? tables->options.user(tables->options.userdata, table->spec.payer) : &tables->all;
}

static void order_table_charge(const struct order_table *table, uint64_t taken_ns) {
        const struct order_tables_options *options = &table->tables->options;

        if (options->spent && taken_ns > 0)
                options->spent(options->userdata, table->spec.payer, taken_ns);
}

/* Lowering it takes a privilege; without it the thread keeps what it has. Samples are waited for by the millisecond,
 * and each one that becomes ready would wait until a thread that never sleeps has had its slice. */
static void order_table_follow_nice(const struct order_tables *tables, int *nice) {
        int wanted = atomic_load_explicit(&tables->nice, memory_order_relaxed) + GIVES_WAY;

        if (wanted > NICE_MAX)
                wanted = NICE_MAX;
        if (wanted != *nice)
                setpriority(PRIO_PROCESS, 0, wanted); /* applies to the calling thread */
        *nice = wanted;
}

void order_tables_set_nice(struct order_tables *tables, int nice) {
        atomic_store_explicit(&tables->nice, nice, memory_order_relaxed);
}

static bool is_done(const struct order_table *table) {
        return atomic_load(&table->n_final) == table->n;
}

/* At the end both numbers are the same. A stream's order has no end. */
static void order_table_tell(struct order_table *table, uint64_t n_done, uint64_t n_total) {
        const struct order_tables_options *options = &table->tables->options;

        if (options->told && !table->spec.growth)
                options->told(options->userdata, table->spec.payer, table->spec.terms.epoch, n_done, n_total);
}

static void order_table_free_now(void *userdata) {
        struct order_table *table = userdata;
        struct order_tables *tables = table->tables;
        bool has_memory = table->memory || table->is_made, was_listed = table->was_listed;

        if (table->growing.growth) {
                growth_leave(table->growing.growth, &table->growing.listener);
                order_growing_fini(&table->growing);
                if (tables->options.release) /* nothing; but the payer was kept for it */
                        tables->options.release(tables->options.userdata, table->spec.payer, 0);
        }
        if (table->is_made)
                order_made_fini(&table->made);
        if (table->memory)
                sweeper_unmap(table->memory, table->n_bytes);
        if (has_memory) {
                order_table_tell(table, 1, 1); /* perhaps nobody wanted it to the end */
                if (tables->options.release)
                        tables->options.release(tables->options.userdata, table->spec.payer, table->n_bytes);
        }
        free(table);
        /* A caller may wait for the memory; but whose own table found no thread would try again, for ever. */
        if (was_listed && has_memory && tables->options.ready)
                tables->options.ready(tables->options.userdata);
}

/* Frees a table that is not in a list any more. Without the mutex, because release() is the owner's code. */
static void order_table_table_free(struct order_table *table) {
        sweeper_free(&table->sweep, table->n_bytes, order_table_free_now, table);
}

/* With the mutex: removes the table from the list and from the sums. */
static void table_remove(struct order_table *table) {
        TAILQ_REMOVE(&table->tables->list, table, entry);
}

/* ---- the thread ---------------------------------------------------------------------------------------------- */

/* With the mutex: what the user has had. Nobody saves up time while he wants nothing. */
static uint64_t had_ns(const struct order_tables *tables, const struct order_user *user) {
        return user->filled_ns > tables->now_ns ? user->filled_ns : tables->now_ns;
}

/* With the mutex: a table that a caller waits for, or else an unfinished one; of these the oldest of the user who has
 * had the least. */
static struct order_table *next_work(struct order_tables *tables) {
        struct order_table *table, *next = NULL;
        bool is_wanted, next_is_wanted = false;

        TAILQ_FOREACH(table, &tables->list, entry) {
                if (table->n_refs == 0 || table->is_made || is_done(table))
                        continue;
                if (table->growing.growth && !atomic_load_explicit(&table->has_more, memory_order_relaxed))
                        continue;
                is_wanted = atomic_load_explicit(&table->is_wanted, memory_order_relaxed);
                if (next && is_wanted == next_is_wanted
                            ? had_ns(tables, order_table_user_of(table)) < had_ns(tables, order_table_user_of(next))
                            : !next || is_wanted) {
                        next = table;
                        next_is_wanted = is_wanted;
                }
        }
        return next;
}

/* The next positions of a stream. `has_more` is cleared before it is looked how many samples there are, so that those
 * which come afterwards are looked for again. */
static uint64_t order_table_grow(struct order_table *table, struct why *ret_lack) {
        uint64_t n_before = atomic_load_explicit(&table->n_final, memory_order_relaxed), n_final;
        bool is_whole;

        atomic_store(&table->has_more, false);
        n_final = order_growing_advance(&table->growing, table->chunk_steps, &is_whole, ret_lack);
        if (n_final - n_before >= table->chunk_steps)
                atomic_store(&table->has_more, true);
        if (is_whole)
                atomic_store(&table->n, n_final);
        return n_final;
}

/* Makes one chunk. A reader that misses an element sets is_wanted and then reads n_final again; here n_final is stored
 * first and is_wanted is read after that. In any order of these four operations one side sees the store of the other,
 * so no waiter is forgotten. */
static void make_chunk(struct order_table *table, struct why *ret_lack) {
        struct order_tables *tables = table->tables;
        uint64_t n_final = table->growing.growth ? order_table_grow(table, ret_lack)
                                                 : dlp_sampler_advance(&table->sampler, table->chunk_steps);

        if (table->chunk_steps < CHUNK_STEPS_MAX)
                table->chunk_steps *= 2;
        if (n_final == atomic_load_explicit(&table->n_final, memory_order_relaxed) && !is_done(table) &&
            !(table->growing.growth && growth_has_failed(table->growing.growth, NULL)))
                return; /* no new elements, and no news of the end: waiters go on waiting */

        atomic_store(&table->n_final, n_final);
        if (atomic_exchange(&table->is_wanted, false) && tables->options.ready)
                tables->options.ready(tables->options.userdata);
        order_table_tell(table, n_final, atomic_load_explicit(&table->n, memory_order_relaxed));
}

/* With the mutex: waits for work. An order that found no memory is tried again after a while. */
static void wait_for_work(struct order_tables *tables) {
        struct order_table *table;
        bool is_short = false;

        TAILQ_FOREACH(table, &tables->list, entry)
                is_short |= table->lack.text[0] != '\0';
        if (!is_short) {
                pthread_cond_wait(&tables->work, &tables->mutex);
                return;
        }
        thread_wait_until(&tables->work, &tables->mutex, clock_now_ns() + SHORT_NS);
        TAILQ_FOREACH(table, &tables->list, entry)
                if (table->lack.text[0])
                        atomic_store(&table->has_more, true);
}

static void trace_order(const struct order_table *table, uint64_t begin_ns, uint64_t n_before) {
        const struct trace_subject subject = { .word = TRACE_NOBODY, .epoch = table->spec.terms.epoch };
        uint64_t n_final = atomic_load_explicit(&table->n_final, memory_order_relaxed);

        if (trace_is_on())
                trace_write(&subject, DLP_TRACE_ORDER, DLP_TRACE_DONE, begin_ns, clock_now_ns(), n_final - n_before);
}

static void *order_table_run(void *argument) {
        struct order_tables *tables = argument;
        struct trace_thread traced;
        uint64_t begin_ns, taken_ns, n_before;
        struct order_user *user;
        struct why lack;

        trace_thread_begin(&traced, "order");
        pthread_mutex_lock(&tables->mutex);
        while (!tables->stop) {
                struct order_table *table = next_work(tables);

                if (!table) {
                        wait_for_work(tables);
                        continue;
                }
                table->is_worked_on = true;
                user = order_table_user_of(table);
                tables->now_ns = had_ns(tables, user);
                pthread_mutex_unlock(&tables->mutex);
                order_table_follow_nice(tables, &tables->fills_with_nice);
                lack.text[0] = '\0';
                begin_ns = clock_now_ns();
                n_before = atomic_load_explicit(&table->n_final, memory_order_relaxed);
                make_chunk(table, &lack);
                trace_order(table, begin_ns, n_before);
                taken_ns = clock_now_ns() - begin_ns;
                order_table_charge(table, taken_ns);
                pthread_mutex_lock(&tables->mutex);
                user->filled_ns = tables->now_ns + taken_ns;
                table->lack = lack;
                table->is_worked_on = false;
                if (table->n_refs == 0) {
                        table_remove(table);
                        pthread_mutex_unlock(&tables->mutex);
                        order_table_table_free(table);
                        pthread_mutex_lock(&tables->mutex);
                }
        }
        pthread_mutex_unlock(&tables->mutex);
        trace_thread_end(&traced);
        return NULL;
}

/* ---- orders of samplers: a thread each, in turns ---------------------------------------------------------------- */

static void call_ready(struct order_table *table) {
        struct order_tables *tables = table->tables;

        if (atomic_exchange(&table->is_wanted, false) && tables->options.ready)
                tables->options.ready(tables->options.userdata);
}

/* As in make_chunk(): everything is stored first, and is_wanted is read after that. */
static void on_published(struct order_made *made, uint64_t n_positions, uint64_t n_units, uint64_t n_final) {
        struct order_table *table = (struct order_table *)((uint8_t *)made - offsetof(struct order_table, made));

        atomic_store(&table->n, n_positions);
        atomic_store(&table->n_units, n_units);
        atomic_store(&table->n_final, n_final);
        call_ready(table);
}

static void on_told(struct order_made *made, uint64_t n_done, uint64_t n_total) {
        struct order_table *table = (struct order_table *)((uint8_t *)made - offsetof(struct order_table, made));

        if (n_done < n_total) /* a step has ended, and another one may follow */
                order_table_tell(table, n_done, n_total);
        if (!atomic_load_explicit(&made->is_unwanted, memory_order_relaxed)) {
                order_table_charge(table, gate_pass(&table->tables->gate, &table->turn));
                order_table_follow_nice(table->tables, &table->nice);
        }
}

static void *order_table_make(void *argument) {
        struct order_table *table = argument;
        struct order_tables *tables = table->tables;
        struct trace_thread traced;
        uint64_t begin_ns = clock_now_ns();
        bool is_last;

        trace_thread_begin(&traced, "sampler");
        order_table_follow_nice(tables, &table->nice);
        gate_enter(&tables->gate, &order_table_user_of(table)->share, &table->turn);
        order_made_run(&table->made);
        order_table_charge(table, gate_leave(&tables->gate, &table->turn));
        trace_order(table, begin_ns, 0);
        trace_thread_end(&traced);
        order_table_tell(table, 1, 1);
        call_ready(table);
        pthread_mutex_lock(&tables->mutex);
        table->is_worked_on = false;
        is_last = table->n_refs == 0;
        if (is_last)
                table_remove(table);
        pthread_mutex_unlock(&tables->mutex);
        if (is_last)
                order_table_table_free(table);
        pthread_mutex_lock(&tables->mutex);
        tables->n_makers--;
        pthread_cond_signal(&tables->maker_ended);
        pthread_mutex_unlock(&tables->mutex);
        return NULL;
}

/* With the mutex, before the table is in the list: starts its thread, which nobody joins. */
static int start_maker(struct order_table *table) {
        struct order_tables *tables = table->tables;
        pthread_t thread;
        int r = thread_start(&thread, "sampler", order_table_make, table);

        if (r < 0)
                return r;
        thread_detach(thread);
        table->is_worked_on = true;
        tables->n_makers++;
        return 0;
}

static uint32_t n_makers(const struct order_tables_options *options) {
        uint32_t n = options->n_makers;
        struct cpus cpus;

        if (n == 0) {
                cpus_find(&cpus);
                n = cpus_n_threads(&cpus) / 2;
        }
        return n > 0 ? n : 1;
}

int order_tables_new(const struct order_tables_options *options, struct order_tables **ret_tables) {
        _cleanup_(freep) struct order_tables *tables = calloc(1, sizeof(*tables));
        int r;

        if (!tables)
                return -ENOMEM;
        tables->options = *options;
        TAILQ_INIT(&tables->list);
        pthread_mutex_init(&tables->mutex, NULL);
        pthread_cond_init(&tables->work, NULL);
        pthread_cond_init(&tables->maker_ended, NULL);
        gate_init(&tables->gate, n_makers(options));
        order_user_init(&tables->all);

        r = thread_start(&tables->thread, "order", order_table_run, tables);
        if (r < 0) {
                pthread_cond_destroy(&tables->work);
                pthread_cond_destroy(&tables->maker_ended);
                pthread_mutex_destroy(&tables->mutex);
                gate_fini(&tables->gate);
                return r;
        }
        *ret_tables = TAKE_PTR(tables);
        return 0;
}

void order_tables_free(struct order_tables *tables) {
        if (!tables)
                return;
        pthread_mutex_lock(&tables->mutex);
        tables->stop = true;
        pthread_cond_signal(&tables->work);
        while (tables->n_makers > 0) /* nobody wants their orders, so they end soon */
                pthread_cond_wait(&tables->maker_ended, &tables->mutex);
        pthread_mutex_unlock(&tables->mutex);
        thread_join(tables->thread);

        assert(TAILQ_EMPTY(&tables->list));
        pthread_cond_destroy(&tables->work);
        pthread_cond_destroy(&tables->maker_ended);
        pthread_mutex_destroy(&tables->mutex);
        gate_fini(&tables->gate);
        free(tables);
}

/* ---- get and put --------------------------------------------------------------------------------------------- */

/* Fresh pages of zeroes, as samplers need them; only the touched ones take memory. Huge pages are not used: the first
 * few thousand steps touch pages all over the table, and clearing 2 MiB for each would delay the first batch. */
static int take_memory(struct order_table *table, struct why *why) {
        const struct order_tables_options *options = &table->tables->options;
        uint64_t n_bytes = order_table_bytes(&table->spec);
        char what[64];
        int r;

        snprintf(what, sizeof(what), "the order of %" PRIu64 " samples", table->spec.terms.n_samples);
        r = options->reserve ? options->reserve(options->userdata, table->spec.payer, n_bytes, what, why) : 0;
        if (r < 0)
                return r;
        table->memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (table->memory == MAP_FAILED) {
                table->memory = NULL;
                if (options->release)
                        options->release(options->userdata, table->spec.payer, n_bytes);
                return why_set(why, -ENOMEM, "no memory for %s: %" PRIu64 " bytes", what, n_bytes);
        }
        madvise(table->memory, n_bytes, MADV_NOHUGEPAGE); /* only advice; refused by a kernel without huge pages */
        table->n_bytes = n_bytes;
        return 0;
}

/* Called while the stream's samples are published: says only that there is work. */
static void on_growth(struct growth_listener *listener) {
        struct order_growing *growing = (struct order_growing *)((uint8_t *)listener -
                                                                 offsetof(struct order_growing, listener));
        struct order_table *table = (struct order_table *)((uint8_t *)growing - offsetof(struct order_table, growing));

        atomic_store(&table->has_more, true);
        pthread_mutex_lock(&table->tables->mutex);
        pthread_cond_signal(&table->tables->work);
        pthread_mutex_unlock(&table->tables->mutex);
}

/* The table pays as it grows; the payer is asked for nothing, and so kept. */
static int begin_growing(struct order_table *table, struct why *why) {
        const struct order_tables_options *options = &table->tables->options;
        const struct order_spec *spec = &table->spec;
        int r = options->reserve ? options->reserve(options->userdata, spec->payer, 0, "an order", why) : 0;

        if (r < 0)
                return r;
        r = order_growing_init(&table->growing, spec->growth, &spec->terms, spec->budget, why);
        if (r < 0) {
                if (options->release)
                        options->release(options->userdata, spec->payer, 0);
                return r;
        }
        atomic_init(&table->n, DLP_UNKNOWN);
        atomic_init(&table->n_final, 0);
        atomic_init(&table->has_more, true);
        table->growing.listener.grown = on_growth;
        growth_listen(spec->growth, &table->growing.listener);
        return 0;
}

/* The order of a sampler: its memory is reserved, its thread is started when it is in the list. */
static int begin_making(struct order_table *table, struct why *why) {
        const struct order_tables_options *options = &table->tables->options;
        const struct order_spec *spec = &table->spec;
        uint64_t n_bytes = order_table_bytes(spec);
        int r = options->reserve
                        ? options->reserve(options->userdata, spec->payer, n_bytes, "the order of a sampler", why)
                        : 0;

        if (r < 0)
                return r;
        table->n_bytes = n_bytes;
        table->is_made = true;
        order_made_init(&table->made, spec->sampling, &spec->terms, spec->batch_size);
        table->made.publish = on_published;
        table->made.told = on_told;
        atomic_init(&table->n, DLP_UNKNOWN);
        atomic_init(&table->n_units, DLP_UNKNOWN);
        atomic_init(&table->n_final, 0);
        return 0;
}

static int order_table_table_new(struct order_tables *tables, const struct order_spec *spec,
                                 struct order_table **ret_table, struct why *why) {
        _cleanup_(freep) struct order_table *table = NULL;
        int r;

        if (spec->terms.n_samples > DLP_SAMPLES_MAX && !spec->growth)
                return why_set(why, -EINVAL, "an order of %" PRIu64 " samples: at most %llu are possible",
                               spec->terms.n_samples, DLP_SAMPLES_MAX);
        table = aligned_alloc(_Alignof(struct order_table), sizeof(*table));
        if (!table)
                return why_set(why, -ENOMEM, "no memory for an order");
        memset(table, 0, sizeof(*table));
        table->tables = tables;
        table->n_refs = 1;
        table->spec = *spec;
        table->chunk_steps = CHUNK_STEPS_MIN;
        if (spec->growth || spec->sampling) {
                r = spec->sampling ? begin_making(table, why) : begin_growing(table, why);
                if (r == 0)
                        *ret_table = TAKE_PTR(table);
                return r;
        }
        atomic_init(&table->n, dlp_sampler_n_positions(&spec->terms));
        if (order_table_bytes(spec) > 0) {
                r = take_memory(table, why);
                if (r < 0)
                        return r;
        }
        dlp_sampler_init(&table->sampler, &spec->terms, table->memory);
        atomic_init(&table->n_final, table->memory ? 0 : table->n);
        *ret_table = TAKE_PTR(table);
        return 0;
}

/* With the mutex. */
static struct order_table *order_table_find(struct order_tables *tables, const struct order_spec *spec) {
        struct order_table *table;

        TAILQ_FOREACH(table, &tables->list, entry)
                if (table->n_refs > 0 && table->spec.payer == spec->payer && table->spec.growth == spec->growth &&
                    table->spec.sampling == spec->sampling && dlp_sampler_is_same(&table->spec.terms, &spec->terms) &&
                    (!spec->sampling || table->spec.terms.epoch == spec->terms.epoch))
                        return table;
        return NULL;
}

/* With the mutex: takes one more reference to the table of this order, if there is one. */
static struct order_table *find_and_ref(struct order_tables *tables, const struct order_spec *spec) {
        struct order_table *table = order_table_find(tables, spec);

        if (table)
                table->n_refs++;
        return table;
}

int order_table_get(struct order_tables *tables, const struct order_spec *spec, struct order_table **ret_table,
                    struct why *why) {
        struct order_table *table, *made = NULL;
        int r;

        pthread_mutex_lock(&tables->mutex);
        table = find_and_ref(tables, spec);
        pthread_mutex_unlock(&tables->mutex);
        if (table) {
                *ret_table = table;
                return 0;
        }

        r = order_table_table_new(tables, spec, &made, why); /* without the mutex: it calls reserve() */
        if (r < 0)
                return r;

        pthread_mutex_lock(&tables->mutex);
        table = find_and_ref(tables, spec); /* another thread may have been faster */
        if (!table) {
                r = made->is_made ? start_maker(made) : 0;
                if (r == 0) {
                        table = TAKE_PTR(made);
                        table->was_listed = true;
                        TAILQ_INSERT_TAIL(&tables->list, table, entry);
                        pthread_cond_signal(&tables->work);
                }
        }
        pthread_mutex_unlock(&tables->mutex);
        if (made)
                order_table_table_free(made);
        if (r < 0)
                return why_errno(why, r, "no thread for the order of a sampler");
        *ret_table = table;
        return 0;
}

struct order_table *order_table_ref(struct order_table *table) {
        pthread_mutex_lock(&table->tables->mutex);
        assert(table->n_refs > 0);
        table->n_refs++;
        pthread_mutex_unlock(&table->tables->mutex);
        return table;
}

void order_table_put(struct order_table *table) {
        struct order_tables *tables;
        bool last;

        if (!table)
                return;
        tables = table->tables;
        pthread_mutex_lock(&tables->mutex);
        assert(table->n_refs > 0);
        last = --table->n_refs == 0 && !table->is_worked_on;
        if (table->n_refs == 0 && table->is_made)
                atomic_store_explicit(&table->made.is_unwanted, true, memory_order_relaxed);
        if (last)
                table_remove(table);
        pthread_mutex_unlock(&tables->mutex);
        if (last)
                order_table_table_free(table);
}

/* ---- lookup -------------------------------------------------------------------------------------------------- */

bool order_table_has(struct order_table *table, uint64_t n) {
        /* acquire: pairs with the release store of n_final, which comes after the elements */
        if (n <= atomic_load_explicit(&table->n_final, memory_order_acquire))
                return true;
        atomic_store(&table->is_wanted, true);
        return n <= atomic_load(&table->n_final); /* once more: see make_chunk() */
}

bool order_table_is_short(struct order_table *table, struct why *ret_why) {
        pthread_mutex_lock(&table->tables->mutex);
        *ret_why = table->lack;
        pthread_mutex_unlock(&table->tables->mutex);
        return ret_why->text[0] != '\0';
}

uint64_t order_table_n_units(struct order_table *table) {
        if (!table->is_made)
                return atomic_load_explicit(&table->n, memory_order_relaxed);
        if (atomic_load(&table->n_final) > 0)
                return atomic_load(&table->n_units);
        atomic_store(&table->is_wanted, true);
        return atomic_load(&table->n_final) > 0 ? atomic_load(&table->n_units) : DLP_UNKNOWN; /* see on_published() */
}

bool order_table_has_failed(struct order_table *table, struct why *ret_why) {
        if (!table->is_made || !atomic_load_explicit(&table->made.has_failed, memory_order_acquire))
                return false;
        *ret_why = table->made.failure;
        return true;
}

const struct dlp_order *order_table_made(const struct order_table *table) {
        return table->is_made ? &table->made.order : NULL;
}

uint32_t order_table_length(const struct order_table *table, uint64_t position) {
        return sampling_length(table->spec.sampling, dlp_order_sample(&table->made.order, position));
}

int order_table_at(struct order_table *table, uint64_t position, uint64_t *ret_index) {
        uint64_t n = atomic_load_explicit(&table->n, memory_order_relaxed), at;

        if (n == 0)
                return -ERANGE;
        at = position < n ? position : position % n;
        if (!order_table_has(table, at + 1))
                return ORDER_NOT_YET;
        *ret_index = table->is_made          ? dlp_order_sample(&table->made.order, at)
                     : table->growing.growth ? order_growing_at(&table->growing, at)
                                             : dlp_sampler_at(&table->sampler, at);
        return 0;
}
