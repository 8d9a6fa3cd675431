#include "daemon/decode/jpeg/jpeg_tables.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define N_KEPT     32u /* tables in the pool: at most 1.6 MiB */
#define CACHE_LINE 64u

struct shared_table {
        uint8_t definition[HUFFMAN_DEFINITION_MAX];
        size_t n_definition;
        uint32_t hash;
        struct huffman_dc *dc; /* one of the two */
        struct huffman_ac *ac;

        /* pool.lock */
        uint32_t n_holders;
        bool is_kept;
        uint64_t last_wanted; /* pool.clock */
};

/* The lock is a leaf, and is held only for a search in the pool. */
static struct {
        pthread_mutex_t lock;
        struct shared_table *tables[N_KEPT];
        uint64_t clock;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- one table ------------------------------------------------------------------------------------------------- */

static void jpeg_tables_table_free(struct shared_table *table) {
        if (!table)
                return;
        if (table->ac)
                free(atomic_load_explicit(&table->ac->skips, memory_order_acquire));
        free(table->ac);
        free(table->dc);
        free(table);
}

static uint32_t jpeg_tables_hash_of(const struct huffman_definition *definition) {
        uint32_t hash = 2166136261u; /* FNV-1a */

        for (size_t i = 0; i < definition->n; i++)
                hash = (hash ^ definition->bytes[i]) * 16777619u;
        return hash;
}

static bool jpeg_tables_is_same(const struct shared_table *table, bool is_ac,
                                const struct huffman_definition *definition) {
        return table && (table->ac != NULL) == is_ac && table->n_definition == definition->n &&
               memcmp(table->definition, definition->bytes, definition->n) == 0;
}

static int jpeg_tables_build(struct shared_table *table, bool is_ac, const struct huffman_definition *definition) {
        size_t n_bytes = is_ac ? sizeof(*table->ac) : sizeof(*table->dc);
        void *memory;

        n_bytes = (n_bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
        memory = aligned_alloc(CACHE_LINE, n_bytes);
        if (!memory)
                return -ENOMEM;
        if (!is_ac) {
                table->dc = memory;
                return huffman_dc_build(table->dc, definition);
        }
        table->ac = memory;
        atomic_init(&table->ac->skips, NULL);
        return huffman_ac_build(table->ac, definition);
}

static int jpeg_tables_table_new(bool is_ac, const struct huffman_definition *definition,
                                 struct shared_table **ret_table) {
        struct shared_table *table = calloc(1, sizeof(*table));
        int r;

        if (!table)
                return -ENOMEM;
        r = jpeg_tables_build(table, is_ac, definition);
        if (r != 0) {
                jpeg_tables_table_free(table);
                return r;
        }
        memcpy(table->definition, definition->bytes, definition->n);
        table->n_definition = definition->n;
        table->hash = jpeg_tables_hash_of(definition);
        *ret_table = table;
        return 0;
}

/* ---- the pool -------------------------------------------------------------------------------------------------- */

/* With the lock held. */
static struct shared_table *jpeg_tables_look_up(bool is_ac, const struct huffman_definition *definition,
                                                uint32_t hash) {
        for (size_t i = 0; i < N_KEPT; i++) {
                struct shared_table *table = pool.tables[i];

                if (!table || table->hash != hash || !jpeg_tables_is_same(table, is_ac, definition))
                        continue;
                table->n_holders++;
                table->last_wanted = ++pool.clock;
                return table;
        }
        return NULL;
}

/* With the lock held: a place that is free, or whose table nobody holds; of these, the least recently used. NULL:
 * none. */
static struct shared_table **place_for_new(void) {
        struct shared_table **place = NULL;

        for (size_t i = 0; i < N_KEPT; i++) {
                struct shared_table **one = &pool.tables[i];

                if (!*one)
                        return one;
                if ((*one)->n_holders == 0 && (!place || (*one)->last_wanted < (*place)->last_wanted))
                        place = one;
        }
        return place;
}

/* Adds the table to the pool and holds it. If another thread was quicker, holds that thread's table and frees ours. */
static struct shared_table *pool_add(struct shared_table *table, bool is_ac,
                                     const struct huffman_definition *definition) {
        struct shared_table *unwanted = NULL, **place, *found;

        pthread_mutex_lock(&pool.lock);
        found = jpeg_tables_look_up(is_ac, definition, table->hash);
        if (found) {
                unwanted = table;
        } else {
                found = table;
                table->n_holders = 1;
                table->last_wanted = ++pool.clock;
                place = place_for_new();
                if (place) {
                        unwanted = *place;
                        *place = table;
                        table->is_kept = true;
                }
        }
        pthread_mutex_unlock(&pool.lock);
        jpeg_tables_table_free(unwanted);
        return found;
}

static void jpeg_tables_let_go(struct shared_table *table) {
        bool is_last;

        if (!table)
                return;
        pthread_mutex_lock(&pool.lock);
        is_last = --table->n_holders == 0 && !table->is_kept;
        pthread_mutex_unlock(&pool.lock);
        if (is_last)
                jpeg_tables_table_free(table);
}

/* ---- the tables of a decoder ----------------------------------------------------------------------------------- */

/* Releases *held and holds the requested table instead. */
static int exchange(struct shared_table **held, bool is_ac, const struct huffman_definition *definition,
                    bool *ret_is_known) {
        uint32_t hash = jpeg_tables_hash_of(definition);
        struct shared_table *table;
        int r;

        jpeg_tables_let_go(*held);
        *held = NULL;

        pthread_mutex_lock(&pool.lock);
        table = jpeg_tables_look_up(is_ac, definition, hash);
        pthread_mutex_unlock(&pool.lock);
        *ret_is_known = table != NULL;
        if (!table) {
                r = jpeg_tables_table_new(is_ac, definition, &table);
                if (r != 0)
                        return r;
                table = pool_add(table, is_ac, definition);
        }
        *held = table;
        return 0;
}

/* The second chroma component has the first one's tables, except in unusual files. */
static int jpeg_tables_hold(struct shared_table *held[JPEG_COMPONENTS], bool is_known[JPEG_COMPONENTS], uint32_t c,
                            bool is_ac, const struct huffman_definition *definition) {
        int r;

        if (jpeg_tables_is_same(held[c], is_ac, definition)) {
                is_known[c] = c == 0 || held[c] != held[c - 1] || is_known[c - 1];
                return 0;
        }
        r = exchange(&held[c], is_ac, definition, &is_known[c]);
        if (r == 0 && c > 0 && held[c] == held[c - 1])
                is_known[c] = is_known[c - 1];
        return r;
}

int tables_hold(struct jpeg_tables *tables, const struct jpeg_header *header) {
        bool ignored[JPEG_COMPONENTS];
        int r = 0;

        for (uint32_t c = 0; c < header->n_components && r == 0; c++)
                r = jpeg_tables_hold(tables->dc, ignored, c, false, &header->dc[c]);
        for (uint32_t c = 0; c < header->n_components && r == 0; c++)
                r = jpeg_tables_hold(tables->ac, tables->is_known, c, true, &header->ac[c]);
        return r;
}

void tables_fini(struct jpeg_tables *tables) {
        for (uint32_t c = 0; c < JPEG_COMPONENTS; c++) {
                jpeg_tables_let_go(tables->dc[c]);
                jpeg_tables_let_go(tables->ac[c]);
        }
        memset(tables, 0, sizeof(*tables));
}

const struct huffman_dc *tables_dc(const struct jpeg_tables *tables, uint32_t component) {
        return tables->dc[component]->dc;
}

const struct huffman_ac *tables_ac(const struct jpeg_tables *tables, uint32_t component) {
        return tables->ac[component]->ac;
}

const uint16_t *tables_skips(const struct jpeg_tables *tables, uint32_t component) {
        struct huffman_ac *ac = tables->ac[component]->ac;

        return tables->is_known[component] ? huffman_ac_skips(ac) : ac->steps;
}
