#include "daemon/data/ledger/ledger_book.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 64u

struct ledger_kept {
        uint64_t sample, n_met;
        int64_t first_unix, last_unix;
        char *error;
        char field[SCHEMA_NAME_MAX];
        enum ledger_state state;
};

int ledger_book_init(struct ledger_book *book, uint64_t n_samples) {
        *book = (struct ledger_book){ 0 };
        return bitmap_init(&book->met, n_samples);
}

void ledger_book_fini(struct ledger_book *book) {
        for (uint32_t i = 0; i < book->n_kept; i++)
                free(book->kept[i].error);
        free(book->kept);
        free(book->places);
        bitmap_fini(&book->met);
        *book = (struct ledger_book){ 0 };
}

/* ---- finding ------------------------------------------------------------------------------------------------- */

/* The place of the sample, or the free place where it belongs. */
static uint32_t *ledger_book_find_place(const struct ledger_book *book, uint64_t sample) {
        uint64_t hash = sample * 0x9e3779b97f4a7c15ull; /* spreads neighbouring numbers */
        uint32_t i = (uint32_t)(hash >> 32) & (book->n_places - 1);

        while (book->places[i] && book->kept[book->places[i] - 1].sample != sample)
                i = (i + 1) & (book->n_places - 1);
        return &book->places[i];
}

static struct ledger_kept *ledger_book_find(const struct ledger_book *book, uint64_t sample) {
        uint32_t place = book->n_places ? *ledger_book_find_place(book, sample) : 0;

        return place ? &book->kept[place - 1] : NULL;
}

/* ---- adding -------------------------------------------------------------------------------------------------- */

static int ledger_book_grow(struct ledger_book *book) {
        uint32_t capacity = book->capacity ? 2 * book->capacity : CAPACITY_FIRST;
        struct ledger_kept *kept;
        uint32_t *places;

        kept = realloc(book->kept, capacity * sizeof(*kept));
        if (!kept)
                return -ENOMEM;
        book->kept = kept;
        places = calloc(2 * capacity, sizeof(*places));
        if (!places)
                return -ENOMEM;
        free(book->places);
        book->places = places;
        book->n_places = 2 * capacity;
        book->capacity = capacity;
        for (uint32_t i = 0; i < book->n_kept; i++)
                *ledger_book_find_place(book, kept[i].sample) = i + 1;
        return 0;
}

/* Adds a sample that is not in the book yet. */
static int ledger_book_add(struct ledger_book *book, uint64_t sample, struct ledger_kept **ret_kept) {
        struct ledger_kept *kept;

        if (book->n_kept == book->capacity && ledger_book_grow(book) < 0)
                return -ENOMEM;
        kept = &book->kept[book->n_kept];
        *kept = (struct ledger_kept){ .sample = sample };
        *ledger_book_find_place(book, sample) = ++book->n_kept;
        *ret_kept = kept;
        return 0;
}

static void set_error(struct ledger_kept *kept, const char *field, const char *error) {
        char *copy;

        snprintf(kept->field, sizeof(kept->field), "%s", field);
        if (kept->error && strcmp(kept->error, error) == 0)
                return;
        copy = strdup(error);
        if (!copy)
                return; /* no memory for the new text: keeps the old one, or none */
        free(kept->error);
        kept->error = copy;
}

int ledger_book_meet(struct ledger_book *book, uint64_t sample, const char *field, const char *error,
                     int64_t now_unix) {
        struct ledger_kept *kept = ledger_book_find(book, sample);
        bool is_new = bitmap_add(&book->met, sample);
        int r = LEDGER_BOOK_KNOWN;

        book->n_met += is_new;
        if (!kept) {
                if (!is_new)
                        return LEDGER_BOOK_KNOWN; /* above the limit */
                if (book->n_kept >= LEDGER_ENTRIES_MAX)
                        return book->n_met == LEDGER_ENTRIES_MAX + 1 ? LEDGER_BOOK_FULL : LEDGER_BOOK_KNOWN;
                r = ledger_book_add(book, sample, &kept);
                if (r < 0)
                        return r;
                kept->first_unix = now_unix;
                kept->state = LEDGER_NEW;
                r = LEDGER_BOOK_ADDED;
        }
        kept->n_met++;
        kept->last_unix = now_unix;
        if (kept->state == LEDGER_WRITTEN)
                kept->state = LEDGER_REPEATED;
        set_error(kept, field, error);
        return r;
}

int ledger_book_put(struct ledger_book *book, const struct ledger_entry *entry) {
        struct ledger_kept *kept = ledger_book_find(book, entry->sample);
        int r;

        if (entry->sample >= book->met.n_bits)
                return -ERANGE;
        if (!kept) {
                if (book->n_kept >= LEDGER_ENTRIES_MAX)
                        return -ENOSPC;
                r = ledger_book_add(book, entry->sample, &kept);
                if (r < 0)
                        return r;
                book->n_met += bitmap_add(&book->met, entry->sample);
        }
        kept->n_met = entry->n_met;
        kept->first_unix = entry->first_unix;
        kept->last_unix = entry->last_unix;
        kept->state = LEDGER_WRITTEN;
        set_error(kept, entry->field, entry->error.text);
        return 0;
}

/* ---- reading all entries ------------------------------------------------------------------------------------- */

bool ledger_book_at(const struct ledger_book *book, uint64_t idx, struct ledger_entry *ret_entry) {
        const struct ledger_kept *kept;

        if (idx >= book->n_kept)
                return false;
        kept = &book->kept[idx];
        ret_entry->sample = kept->sample;
        ret_entry->n_met = kept->n_met;
        ret_entry->first_unix = kept->first_unix;
        ret_entry->last_unix = kept->last_unix;
        why_set(&ret_entry->error, 0, "%s", kept->error ? kept->error : "");
        strcpy(ret_entry->field, kept->field);
        return true;
}

bool ledger_book_take(struct ledger_book *book, enum ledger_state at_least, uint32_t *idx,
                      struct ledger_entry *ret_entry) {
        for (uint32_t i = *idx; i < book->n_kept; i++)
                if (book->kept[i].state >= at_least) {
                        ledger_book_at(book, i, ret_entry);
                        book->kept[i].state = LEDGER_WRITTEN;
                        *idx = i + 1;
                        return true;
                }
        return false;
}

void ledger_book_unwrite(struct ledger_book *book) {
        for (uint32_t i = 0; i < book->n_kept; i++)
                book->kept[i].state = LEDGER_NEW;
}
