#include "daemon/plugin/plugin_table.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

bool plugin_is_name(const char *name, size_t n) {
        static const char ALLOWED[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

        return n > 0 && n < DLPLUGIN_NAME_MAX && strspn(name, ALLOWED) >= n && (name[0] < '0' || name[0] > '9');
}

/* ---- copying ----------------------------------------------------------------------------------------------------- */

static int copy_name(const char *from, const char *what, char to[DLPLUGIN_NAME_MAX], struct why *why) {
        if (!from || !plugin_is_name(from, strlen(from)))
                return why_set(why, -EINVAL,
                               "has %s called \"%s\": names are 1 to %u letters, digits and \"_\", the first of which "
                               "is no digit",
                               what, from ? from : "", DLPLUGIN_NAME_MAX - 1);
        strcpy(to, from);
        return 0;
}

/* What people read may be too long: its end is left out. */
static void plugin_table_copy_text(const char *from, char to[DLPLUGIN_TEXT_MAX]) {
        size_t n = from ? strnlen(from, DLPLUGIN_TEXT_MAX - 1) : 0;

        memcpy(to, from ? from : "", n);
        to[n] = '\0';
        for (char *at = to; *at; at++)
                if ((unsigned char)*at < ' ')
                        *at = ' ';
}

static int plugin_table_refuse_argument(const struct plugin_step *step, const char *name, const char *what,
                                        struct why *why) {
        return why_set(why, -EINVAL, "has a step %s whose argument %s %s", step->name, name, what);
}

static int describe_argument(const struct plugin_step *step, const struct dlplugin_argument *from,
                             struct plugin_argument *to, struct why *why) {
        int r = copy_name(from->name, "an argument", to->name, why);

        if (r < 0)
                return r;
        if (from->kind < DLPLUGIN_NUMBER || from->kind > DLPLUGIN_TEXT)
                return plugin_table_refuse_argument(step, to->name, "is of an unknown kind", why);
        if (from->kind == DLPLUGIN_CHOICE && (!from->choices || strlen(from->choices) >= DLPLUGIN_TEXT_MAX ||
                                              !from->choices[strspn(from->choices, " ")]))
                return plugin_table_refuse_argument(step, to->name, "is a choice of nothing, or of too much", why);
        if (isnan(from->minimum) || isnan(from->maximum) || from->minimum > from->maximum)
                return plugin_table_refuse_argument(step, to->name, "has a minimum above its maximum", why);
        if (from->by_default && strlen(from->by_default) >= DLPLUGIN_TEXT_MAX)
                return plugin_table_refuse_argument(step, to->name, "has a default that is too long", why);
        to->kind = from->kind;
        to->must_be_given = !from->by_default;
        plugin_table_copy_text(from->by_default, to->by_default);
        plugin_table_copy_text(from->choices, to->choices);
        to->minimum = from->minimum;
        to->maximum = from->maximum;
        if (from->minimum == 0 && from->maximum == 0) {
                to->minimum = -INFINITY;
                to->maximum = INFINITY;
        }
        return 0;
}

static int describe_arguments(const struct dlplugin_argument *from, uint32_t n, struct plugin_step *to,
                              struct why *why) {
        int r = 0;

        if (n > DLPLUGIN_ARGUMENTS_MAX || (n > 0 && !from))
                return why_set(why, -EINVAL, "has a step %s of %u arguments: up to %u are possible", to->name, n,
                               DLPLUGIN_ARGUMENTS_MAX);
        to->n_arguments = n;
        for (uint32_t i = 0; i < n && r == 0; i++)
                r = describe_argument(to, &from[i], &to->arguments[i], why);
        return r;
}

static int describe_step(const struct dlplugin_step *from, struct plugin_step *to, struct why *why) {
        int r = copy_name(from->name, "a step", to->name, why);

        if (r < 0)
                return r;
        if (!from->run)
                return why_set(why, -EINVAL, "has a step %s that cannot be run", to->name);
        plugin_table_copy_text(from->about, to->about);
        return describe_arguments(from->arguments, from->n_arguments, to, why);
}

static int describe_codec(const struct dlplugin_codec *from, struct plugin_step *to, struct why *why) {
        int r = copy_name(from->name, "a codec", to->name, why);

        if (r < 0)
                return r;
        if (!from->decode)
                return why_set(why, -EINVAL, "has a codec %s that cannot decode", to->name);
        if (!from->settle && !from->measure)
                return why_set(why, -EINVAL, "has a codec %s for pictures that cannot measure them", to->name);
        to->kind = PLUGIN_CODEC;
        plugin_table_copy_text(from->about, to->about);
        return describe_arguments(from->arguments, from->n_arguments, to, why);
}

static int describe_format(const struct dlplugin_format *from, struct plugin_step *to, struct why *why) {
        int r = copy_name(from->name, "a format", to->name, why);

        if (r < 0)
                return r;
        if (!from->scan)
                return why_set(why, -EINVAL, "has a format %s that cannot scan", to->name);
        if (from->endings && strlen(from->endings) >= DLPLUGIN_TEXT_MAX)
                return why_set(why, -EINVAL, "has a format %s whose endings are too long", to->name);
        to->kind = PLUGIN_FORMAT;
        plugin_table_copy_text(from->about, to->about);
        plugin_table_copy_text(from->endings, to->endings);
        return describe_arguments(from->arguments, from->n_arguments, to, why);
}

static int describe_collation(const struct dlplugin_collation *from, struct plugin_step *to, struct why *why) {
        int r = copy_name(from->name, "a collation", to->name, why);

        if (r < 0)
                return r;
        if (!from->collate)
                return why_set(why, -EINVAL, "has a collation %s that cannot collate", to->name);
        to->kind = PLUGIN_COLLATION;
        plugin_table_copy_text(from->about, to->about);
        return describe_arguments(from->arguments, from->n_arguments, to, why);
}

const char *table_kind(const struct plugin_step *step) {
        static const char *const KINDS[] = {
                [PLUGIN_STEP] = "a step",
                [PLUGIN_CODEC] = "a codec",
                [PLUGIN_FORMAT] = "a format",
                [PLUGIN_COLLATION] = "a collation",
        };

        return KINDS[step->kind];
}

static int plugin_table_check_twice(const struct plugin_table *table, struct why *why) {
        for (uint32_t i = 0; i < table->n_steps; i++)
                for (uint32_t k = 0; k < i; k++)
                        if (strcmp(table->steps[i].name, table->steps[k].name) == 0)
                                return why_set(why, -EINVAL, "has two things called %s", table->steps[i].name);
        return 0;
}

static int plugin_table_check(const struct dlplugin *plugin, struct why *why) {
        if (plugin->threads < DLPLUGIN_PARALLEL || plugin->threads > DLPLUGIN_PER_WORKER)
                return why_set(why, -EINVAL,
                               "does not say how many threads may call it: set threads to DLPLUGIN_PARALLEL, "
                               "DLPLUGIN_SERIAL or DLPLUGIN_PER_WORKER");
        if (plugin->threads == DLPLUGIN_PER_WORKER && !plugin->worker_open)
                return why_set(why, -EINVAL, "says DLPLUGIN_PER_WORKER and has no worker_open()");
        if ((uint64_t)plugin->n_steps + plugin->n_codecs + plugin->n_formats + plugin->n_collations >
            DLPLUGIN_STEPS_MAX)
                return why_set(why, -EINVAL,
                               "has %u steps, %u codecs, %u formats and %u collations: up to %u are possible together",
                               plugin->n_steps, plugin->n_codecs, plugin->n_formats, plugin->n_collations,
                               DLPLUGIN_STEPS_MAX);
        if ((plugin->n_steps > 0 && !plugin->steps) || (plugin->n_codecs > 0 && !plugin->codecs) ||
            (plugin->n_formats > 0 && !plugin->formats) || (plugin->n_collations > 0 && !plugin->collations))
                return why_set(why, -EINVAL,
                               "says how many steps, codecs, formats or collations it has, and not where they are");
        return 0;
}

int table_describe(const struct dlplugin *plugin, struct plugin_table *ret_table, struct why *why) {
        _cleanup_(freep) struct plugin_table *table = calloc(1, sizeof(*table));
        int r;

        if (!table)
                return why_errno(why, -ENOMEM, "cannot be described");
        r = copy_name(plugin->name, "itself", table->name, why);
        if (r == 0)
                r = plugin_table_check(plugin, why);
        if (r < 0)
                return r;
        plugin_table_copy_text(plugin->about, table->about);
        table->version = plugin->version;
        table->threads = plugin->threads;
        for (uint32_t i = 0; i < plugin->n_steps && r == 0; i++)
                r = describe_step(&plugin->steps[i], &table->steps[table->n_steps++], why);
        for (uint32_t i = 0; i < plugin->n_codecs && r == 0; i++)
                r = describe_codec(&plugin->codecs[i], &table->steps[table->n_steps++], why);
        for (uint32_t i = 0; i < plugin->n_formats && r == 0; i++)
                r = describe_format(&plugin->formats[i], &table->steps[table->n_steps++], why);
        for (uint32_t i = 0; i < plugin->n_collations && r == 0; i++)
                r = describe_collation(&plugin->collations[i], &table->steps[table->n_steps++], why);
        if (r == 0)
                r = plugin_table_check_twice(table, why);
        if (r == 0)
                *ret_table = *table;
        return r;
}

/* ---- from another process ---------------------------------------------------------------------------------------- */

static bool plugin_table_is_text(const char *text, size_t size) {
        return memchr(text, '\0', size) != NULL;
}

static bool plugin_table_is_argument(const struct plugin_argument *argument) {
        return plugin_table_is_text(argument->name, sizeof(argument->name)) &&
               plugin_is_name(argument->name, strlen(argument->name)) &&
               plugin_table_is_text(argument->by_default, sizeof(argument->by_default)) &&
               plugin_table_is_text(argument->choices, sizeof(argument->choices)) &&
               argument->kind >= DLPLUGIN_NUMBER && argument->kind <= DLPLUGIN_TEXT &&
               argument->minimum <= argument->maximum;
}

static bool plugin_table_is_step(const struct plugin_step *step) {
        bool is = plugin_table_is_text(step->name, sizeof(step->name)) &&
                  plugin_is_name(step->name, strlen(step->name)) &&
                  plugin_table_is_text(step->about, sizeof(step->about)) &&
                  plugin_table_is_text(step->endings, sizeof(step->endings)) && step->kind <= PLUGIN_COLLATION &&
                  step->n_arguments <= DLPLUGIN_ARGUMENTS_MAX;

        for (uint32_t i = 0; is && i < step->n_arguments; i++)
                is = plugin_table_is_argument(&step->arguments[i]);
        return is;
}

bool table_is_valid(const struct plugin_table *table) {
        bool is = plugin_table_is_text(table->name, sizeof(table->name)) &&
                  plugin_is_name(table->name, strlen(table->name)) &&
                  plugin_table_is_text(table->about, sizeof(table->about)) && table->threads >= DLPLUGIN_PARALLEL &&
                  table->threads <= DLPLUGIN_PER_WORKER && table->n_steps <= DLPLUGIN_STEPS_MAX;

        for (uint32_t i = 0; is && i < table->n_steps; i++)
                is = plugin_table_is_step(&table->steps[i]);
        return is;
}
