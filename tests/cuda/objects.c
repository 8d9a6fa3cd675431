/* cuda/objects.c: handles. A handle is a number, not an address: a caller that follows it crashes, as it should. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/inside.h"

#define FIRST_HANDLE 0xc0da00000000ull /* above what a process can map */
#define HANDLE_STEP  16

static struct object **objects;
static uint64_t n_objects, n_room;

static const char *const KINDS[N_KINDS] = { "context", "stream", "event", "module", "function" };

void *must_alloc(size_t n_bytes) {
        void *memory = calloc(1, n_bytes);

        if (!memory) {
                fprintf(stderr, "libcuda stand-in: no memory\n");
                abort();
        }
        return memory;
}

/* How many of a kind are alive; functions live as long as their module and are not counted. */
static uint64_t *count_of(enum kind kind) {
        uint64_t *const COUNTS[N_KINDS] = { &the.counts.n_contexts, &the.counts.n_streams, &the.counts.n_events,
                                            &the.counts.n_modules, NULL };

        return COUNTS[kind];
}

void *object_new(enum kind kind, size_t n_bytes, struct context *context) {
        struct object *object = must_alloc(n_bytes);

        if (n_objects == n_room) {
                n_room = n_room ? 2 * n_room : 64;
                objects = realloc(objects, n_room * sizeof(objects[0]));
                if (!objects)
                        abort();
        }
        object->kind = kind;
        object->alive = true;
        object->handle = (void *)(FIRST_HANDLE + n_objects * HANDLE_STEP);
        object->context = context;
        objects[n_objects++] = object;
        if (count_of(kind))
                ++*count_of(kind);
        return object;
}

void *object_find(const char *call, void *handle, enum kind kind) {
        uint64_t idx = ((uint64_t)handle - FIRST_HANDLE) / HANDLE_STEP;

        if ((uint64_t)handle < FIRST_HANDLE || idx >= n_objects || objects[idx]->handle != handle ||
            objects[idx]->kind != kind) {
                violation("%s: %p is not a handle of a %s", call, handle, KINDS[kind]);
                return NULL;
        }
        if (!objects[idx]->alive) {
                violation("%s: the %s %p was destroyed before", call, KINDS[kind], handle);
                return NULL;
        }
        return objects[idx];
}

void object_destroy(struct object *object) {
        object->alive = false;
        if (!object->hidden && count_of(object->kind))
                --*count_of(object->kind);
}

void object_hide(struct object *object) {
        object->hidden = true;
        --*count_of(object->kind);
}

uint64_t objects_destroy(struct context *context) {
        uint64_t n = 0;

        for (uint64_t i = 0; i < n_objects; i++) {
                struct object *object = objects[i];

                if (!object->alive || (context && (object->context != context || object->kind == CONTEXT)))
                        continue;
                object_destroy(object);
                n += object->kind != FUNCTION && !object->hidden;
        }
        return n;
}
