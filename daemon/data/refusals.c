#include "daemon/data/refusals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/field_name.h"

void refusals_fini(struct refusals *refusals) {
        if (!refusals)
                return;
        growing_fini(&refusals->texts);
        growing_fini(&refusals->marked);
}

bool refusals_next(const struct refusals *refusals, struct refusal *refusal) {
        const char *begin = refusals ? (const char *)refusals->texts.bytes : NULL;

        refusal->name = refusal->name ? refusal->reason + strlen(refusal->reason) + 1 : begin;
        if (!begin || (size_t)(refusal->name - begin) == refusals->texts.n_bytes)
                return false;
        refusal->reason = refusal->name + strlen(refusal->name) + 1;
        return true;
}

bool refusals_have(const struct refusals *refusals, const char *name) {
        struct refusal one = { 0 };

        while (refusals_next(refusals, &one))
                if (strcmp(one.name, name) == 0)
                        return true;
        return false;
}

int refusals_add(struct refusals *refusals, const char *name, int error, const struct why *why) {
        size_t n_before = refusals ? refusals->texts.n_bytes : 0;

        if (refusals_have(refusals, name))
                return 0;
        if (!refusals || refusals->n == REFUSALS_MAX)
                return error;
        if (growing_append(&refusals->texts, name, strlen(name) + 1) < 0 ||
            growing_append(&refusals->texts, why->text, strlen(why->text) + 1) < 0) {
                refusals->texts.n_bytes = n_before;
                return error;
        }
        refusals->n++;
        return 0;
}

bool refusals_are_for(int error) {
        return error == -EBADMSG || error == -ENOTSUP || error == -EINVAL || error == -ERANGE;
}

static bool mark(struct refusals *refusals, const char *name, int error, const char *text) {
        size_t n_before = refusals ? refusals->marked.n_bytes : 0;
        char field[SCHEMA_NAME_MAX];

        if (!refusals || !refusals_are_for(error))
                return false;
        field_name_from(name, strlen(name), field);
        if (growing_append(&refusals->marked, field, strlen(field) + 1) == 0 &&
            growing_append(&refusals->marked, text, strlen(text) + 1) == 0)
                return true;
        refusals->marked.n_bytes = n_before;
        return false;
}

int refusals_mark(struct refusals *refusals, const char *name, int error) {
        mark(refusals, name, error, "");
        return error;
}

bool refusals_mark_of_several(struct refusals *refusals, const char *name, int error, const struct why *why) {
        return mark(refusals, name, error, why->text);
}

/* What went upward ends with what is said of one of them, after their place. */
static void say_of(struct why *ret_why, const struct why *why, const char *said, const char *text) {
        const char *at = said[0] && text[0] ? strstr(why->text, said) : NULL;

        if (at)
                why_set(ret_why, 0, "%.*s%s", (int)(at - why->text), why->text, text);
        else
                *ret_why = *why;
}

bool refusals_settle(struct refusals *refusals, int error, const struct why *why) {
        const struct refusals marks = { .texts = refusals->marked };
        struct refusal one = { 0 };
        const char *said = "";
        bool is_new = false;

        while (refusals_next(&marks, &one))
                if (one.reason[0] && strstr(why->text, one.reason))
                        said = one.reason;
        for (one = (struct refusal){ 0 }; refusals_next(&marks, &one);) {
                struct why own;

                if (refusals->n >= REFUSALS_AGAIN_MAX || refusals_have(refusals, one.name))
                        continue;
                if (one.reason[0] && !refusals_are_for(error)) /* it ended for another reason */
                        why_set(&own, 0, "%s", one.reason);
                else
                        say_of(&own, why, said, one.reason);
                is_new |= refusals_add(refusals, one.name, error, &own) == 0;
        }
        growing_clear(&refusals->marked);
        return is_new;
}

int refusals_list(const struct refusals *refusals, struct refusal **ret_refused) {
        struct refusal *refused = calloc(refusals->n + 1u, sizeof(*refused)), one = { 0 };

        if (!refused)
                return -ENOMEM;
        for (uint32_t i = 0; refusals_next(refusals, &one); i++)
                refused[i] = one;
        *ret_refused = refused;
        return 0;
}

const char *refusal_of(const struct refusal *refused, uint32_t n, const char *name, size_t n_name) {
        char wanted[SCHEMA_NAME_MAX];

        field_name_from(name, n_name, wanted);
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(refused[i].name, wanted) == 0)
                        return refused[i].reason;
        return NULL;
}
