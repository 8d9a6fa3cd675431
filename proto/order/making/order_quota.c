#include "proto/order/making/order_quota.h"

static bool order_quota_is_before(const struct dlp_quota_item *a, const struct dlp_quota_item *b) {
        return a->key < b->key || (a->key == b->key && a->idx < b->idx);
}

static void push(struct dlp_quota_item *heap, uint32_t *n, uint64_t key, uint32_t idx) {
        struct dlp_quota_item item = { .key = key, .idx = idx };
        uint32_t i = (*n)++;

        while (i > 0 && order_quota_is_before(&item, &heap[(i - 1) / 2])) {
                heap[i] = heap[(i - 1) / 2];
                i = (i - 1) / 2;
        }
        heap[i] = item;
}

static uint32_t pop(struct dlp_quota_item *heap, uint32_t *n) {
        uint32_t first = heap[0].idx, i = 0, n_left = --*n;
        struct dlp_quota_item item = heap[n_left];

        for (;;) {
                uint32_t child = 2 * i + 1;

                if (child + 1 < n_left && order_quota_is_before(&heap[child + 1], &heap[child]))
                        child++;
                if (child >= n_left || !order_quota_is_before(&heap[child], &item))
                        break;
                heap[i] = heap[child];
                i = child;
        }
        heap[i] = item;
        return first;
}

/* Position and rest of the item after the class's current one. */
static uint64_t order_quota_after(const struct dlp_quota *quota, const struct dlp_quota_class *class,
                                  uint64_t *ret_rest) {
        uint64_t position = class->position + quota->n / class->count;
        uint64_t rest = class->rest + quota->n % class->count;

        if (rest >= class->count) {
                rest -= class->count;
                position++;
        }
        *ret_rest = rest;
        return position;
}

static void make_ready(struct dlp_quota *quota, uint32_t idx) {
        uint64_t rest, position = order_quota_after(quota, &quota->classes[idx], &rest);

        push(quota->ready, &quota->n_ready, position + (rest > 0) - 1, idx);
}

uint32_t dlp_quota_next(struct dlp_quota *quota) {
        struct dlp_quota_class *class;
        uint32_t idx;

        while (quota->n_waiting > 0 && quota->waiting[0].key <= quota->at)
                make_ready(quota, pop(quota->waiting, &quota->n_waiting));
        idx = pop(quota->ready, &quota->n_ready);
        class = &quota->classes[idx];
        class->position = order_quota_after(quota, class, &class->rest);
        class->n_given++;
        if (class->n_given < class->count)
                push(quota->waiting, &quota->n_waiting, class->position, idx);
        quota->at++;
        return idx;
}

int dlp_quota_init(struct dlp_making *making, const uint64_t *counts, uint32_t n_classes, struct dlp_quota *ret_quota) {
        struct dlp_quota *quota = ret_quota;
        int r;

        *quota = (struct dlp_quota){ .n_classes = n_classes };
        r = dlp_making_allocate(making, n_classes, sizeof(*quota->classes), &quota->classes);
        if (r == 0)
                r = dlp_making_allocate(making, n_classes, sizeof(*quota->waiting), &quota->waiting);
        if (r == 0)
                r = dlp_making_allocate(making, n_classes, sizeof(*quota->ready), &quota->ready);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n_classes; i++) {
                quota->classes[i].count = counts[i];
                quota->n += counts[i];
        }
        for (uint32_t i = 0; i < n_classes; i++)
                if (counts[i] > 0)
                        make_ready(quota, i);
        return 0;
}

void dlp_quota_fini(struct dlp_making *making, struct dlp_quota *quota) {
        making->release(making, quota->classes, quota->n_classes * sizeof(*quota->classes));
        making->release(making, quota->waiting, quota->n_classes * sizeof(*quota->waiting));
        making->release(making, quota->ready, quota->n_classes * sizeof(*quota->ready));
        *quota = (struct dlp_quota){ 0 };
}

uint64_t dlp_quota_bytes(uint64_t n_classes) {
        return n_classes * (sizeof(struct dlp_quota_class) + 2 * sizeof(struct dlp_quota_item));
}
