#include "proto/order/making/order_classes.h"

#include <errno.h>
#include <stdlib.h>

#define AT_ONCE    1024u
#define LOOK       65536u     /* values between two looks at whether the order is still wanted */
#define DIRECT_MIN (1u << 16) /* values of a table that is made for any labels; labels that lie further apart... */
#define DIRECT_MAX (1u << 24) /* ... than this, or than there are labels, are hashed */
#define SLOTS_MIN  1024u

/* ---- hashing --------------------------------------------------------------------------------------------------- */

static uint64_t order_classes_hash_of(int64_t label) {
        uint64_t mixed = (uint64_t)label * 0x9e3779b97f4a7c15ull;

        return (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ull >> 16;
}

/* The slot of a label, or the free one where it belongs. At most half of the slots are used. */
static struct dlp_class_slot *order_classes_slot_of(const struct dlp_classes *classes, int64_t label) {
        uint64_t i = order_classes_hash_of(label) & (classes->n_slots - 1);

        while (classes->slots[i].class_after != 0 && classes->slots[i].label != label)
                i = (i + 1) & (classes->n_slots - 1);
        return &classes->slots[i];
}

static int grow_slots(struct dlp_making *making, struct dlp_classes *classes) {
        struct dlp_classes grown = *classes;
        int r;

        grown.n_slots = classes->n_slots ? 2 * classes->n_slots : SLOTS_MIN;
        r = dlp_making_allocate(making, grown.n_slots, sizeof(*grown.slots), &grown.slots);
        if (r < 0)
                return r;
        for (uint64_t i = 0; i < classes->n_slots; i++)
                if (classes->slots[i].class_after != 0)
                        *order_classes_slot_of(&grown, classes->slots[i].label) = classes->slots[i];
        making->release(making, classes->slots, classes->n_slots * sizeof(*classes->slots));
        *classes = grown;
        return 0;
}

/* ---- finding them ---------------------------------------------------------------------------------------------- */

/* Calls `each` for all values; it may stop with an error. */
static int for_each(struct dlp_making *making, const struct dlp_column *column, struct dlp_classes *classes,
                    int (*each)(struct dlp_making *making, struct dlp_classes *classes, int64_t label)) {
        int64_t labels[AT_ONCE];
        int r = 0;

        for (uint64_t i = 0; i < column->n_values; i += AT_ONCE) {
                uint64_t n_left = column->n_values - i, n = n_left < AT_ONCE ? n_left : AT_ONCE;

                dlp_column_wholes(column, i, n, labels);
                for (uint64_t k = 0; r == 0 && k < n; k++)
                        r = each(making, classes, labels[k]);
                if (r < 0)
                        return r;
                if (i % LOOK == 0 && !making->go_on(making, 0, making->terms->base.n_samples))
                        return -ECANCELED;
        }
        return 0;
}

static int mark_slot(struct dlp_making *making, struct dlp_classes *classes, int64_t label) {
        struct dlp_class_slot *slot;
        int r = 2 * (classes->n + 1) > classes->n_slots ? grow_slots(making, classes) : 0;

        if (r < 0)
                return r;
        if (classes->n > DLP_CLASSES_MAX)
                return -E2BIG;
        slot = order_classes_slot_of(classes, label);
        if (slot->class_after == 0)
                *slot = (struct dlp_class_slot){ .label = label, .class_after = ++classes->n };
        return 0;
}

static int mark_direct(struct dlp_making *making, struct dlp_classes *classes, int64_t label) {
        uint32_t *place = &classes->direct[(uint64_t)label - (uint64_t)classes->minimum];

        (void)making;
        classes->n += *place == 0;
        *place = 1;
        return 0;
}

static int count_one(struct dlp_making *making, struct dlp_classes *classes, int64_t label) {
        (void)making;
        classes->counts[dlp_classes_find(classes, label)]++;
        return 0;
}

static uint64_t n_direct_max(uint64_t n_values) {
        return n_values < DIRECT_MIN ? DIRECT_MIN : n_values < DIRECT_MAX ? n_values : DIRECT_MAX;
}

/* A table for labels that lie close together; else slots. */
static int choose_way(struct dlp_making *making, const struct dlp_column *column, struct dlp_classes *classes) {
        int64_t minimum = INT64_MAX, maximum = INT64_MIN, labels[AT_ONCE];
        uint64_t span;

        for (uint64_t i = 0; i < column->n_values; i += AT_ONCE) {
                uint64_t n_left = column->n_values - i, n = n_left < AT_ONCE ? n_left : AT_ONCE;

                dlp_column_wholes(column, i, n, labels);
                for (uint64_t k = 0; k < n; k++) {
                        minimum = labels[k] < minimum ? labels[k] : minimum;
                        maximum = labels[k] > maximum ? labels[k] : maximum;
                }
                if (i % LOOK == 0 && !making->go_on(making, 0, making->terms->base.n_samples))
                        return -ECANCELED;
        }
        if (column->n_values == 0)
                return 0;
        span = (uint64_t)maximum - (uint64_t)minimum;
        if (span >= n_direct_max(column->n_values))
                return 0;
        classes->minimum = minimum;
        classes->n_direct = span + 1;
        return dlp_making_allocate(making, classes->n_direct, sizeof(*classes->direct), &classes->direct);
}

static int compare_labels(const void *a, const void *b) {
        int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

        return (left > right) - (left < right);
}

/* Numbers the classes in the sequence of their labels. */
static void order_classes_number(struct dlp_classes *classes) {
        uint32_t n = 0;

        for (uint64_t i = 0; i < classes->n_direct; i++)
                if (classes->direct[i] != 0) {
                        classes->labels[n] = classes->minimum + (int64_t)i;
                        classes->direct[i] = ++n;
                }
        for (uint64_t i = 0; i < classes->n_slots; i++)
                if (classes->slots[i].class_after != 0)
                        classes->labels[n++] = classes->slots[i].label;
        if (classes->n_slots > 0)
                qsort(classes->labels, n, sizeof(*classes->labels), compare_labels);
        for (uint32_t i = 0; classes->n_slots > 0 && i < n; i++)
                order_classes_slot_of(classes, classes->labels[i])->class_after = i + 1;
}

int dlp_classes_init(struct dlp_making *making, const char *step, const struct dlp_column *column,
                     struct dlp_classes *ret_classes) {
        struct dlp_classes *classes = ret_classes;
        int r;

        *classes = (struct dlp_classes){ 0 };
        if (!dlp_column_is_whole(column))
                return why_set(making->why, -EINVAL, "%s: \"%s\" has %s; labels are whole numbers", step, column->name,
                               dlp_dtype_name(column->dtype));
        r = choose_way(making, column, classes);
        if (r == 0)
                r = for_each(making, column, classes, classes->n_direct > 0 ? mark_direct : mark_slot);
        if (r == -E2BIG || classes->n > DLP_CLASSES_MAX)
                r = why_set(making->why, -EINVAL, "%s: \"%s\" has more than %u classes; give a column of labels", step,
                            column->name, DLP_CLASSES_MAX);
        if (r == 0) {
                classes->n_room = classes->n;
                r = dlp_making_allocate(making, classes->n_room, sizeof(*classes->counts), &classes->counts);
        }
        if (r == 0)
                r = dlp_making_allocate(making, classes->n_room, sizeof(*classes->labels), &classes->labels);
        if (r == 0) {
                order_classes_number(classes);
                r = for_each(making, column, classes, count_one);
        }
        return r;
}

void dlp_classes_fini(struct dlp_making *making, struct dlp_classes *classes) {
        making->release(making, classes->counts, classes->n_room * sizeof(*classes->counts));
        making->release(making, classes->labels, classes->n_room * sizeof(*classes->labels));
        making->release(making, classes->direct, classes->n_direct * sizeof(*classes->direct));
        making->release(making, classes->slots, classes->n_slots * sizeof(*classes->slots));
        *classes = (struct dlp_classes){ 0 };
}

uint32_t dlp_classes_find(const struct dlp_classes *classes, int64_t label) {
        uint32_t class_after = classes->n_direct > 0 ? classes->direct[(uint64_t)label - (uint64_t)classes->minimum]
                                                     : order_classes_slot_of(classes, label)->class_after;

        return class_after - 1;
}

void dlp_classes_read(const struct dlp_classes *classes, const struct dlp_column *column, uint64_t i, uint64_t n,
                      uint32_t *ret_classes) {
        int64_t labels[AT_ONCE];

        for (uint64_t done = 0; done < n; done += AT_ONCE) {
                uint64_t n_some = n - done < AT_ONCE ? n - done : AT_ONCE;

                dlp_column_wholes(column, i + done, n_some, labels);
                for (uint64_t k = 0; k < n_some; k++)
                        ret_classes[done + k] = dlp_classes_find(classes, labels[k]);
        }
}

/* Slots before and after they grow for the last time, or the table; and two numbers a class. */
uint64_t dlp_classes_bytes_max(uint64_t n) {
        uint64_t n_slots = SLOTS_MIN, direct = n_direct_max(n) * sizeof(uint32_t), slots;

        if (n > DLP_CLASSES_MAX)
                n = DLP_CLASSES_MAX;
        while (n_slots < 2 * (n + 2))
                n_slots *= 2;
        slots = (n_slots + n_slots / 2) * sizeof(struct dlp_class_slot);
        return (direct > slots ? direct : slots) + 2 * n * sizeof(uint64_t);
}
