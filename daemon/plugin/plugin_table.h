/* plugin/plugin_table.h: what a plug-in says of itself, copied and checked: it contains no pointer, and so can be sent from
 * the process in which the plug-in is loaded. Private to this floor; others see it through plugins.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/plugin/include/dlplugin.h"
#include "proto/base/why.h"

struct plugin_argument {
        char name[DLPLUGIN_NAME_MAX];
        char by_default[DLPLUGIN_TEXT_MAX];
        char choices[DLPLUGIN_TEXT_MAX];
        double minimum, maximum; /* -inf, inf: any */
        uint32_t kind;           /* enum dlplugin_kind */
        bool must_be_given;
};

enum plugin_kind {
        PLUGIN_STEP,
        PLUGIN_CODEC,
        PLUGIN_FORMAT,
        PLUGIN_COLLATION,
};

/* Whatever a plug-in has that is named and has arguments. */
struct plugin_step {
        char name[DLPLUGIN_NAME_MAX];
        char about[DLPLUGIN_TEXT_MAX];
        uint32_t kind;                   /* enum plugin_kind */
        char endings[DLPLUGIN_TEXT_MAX]; /* of a format; "": any */
        uint32_t n_arguments;
        struct plugin_argument arguments[DLPLUGIN_ARGUMENTS_MAX];
};

struct plugin_table {
        char name[DLPLUGIN_NAME_MAX];
        char about[DLPLUGIN_TEXT_MAX];
        uint32_t version; /* of the header that it was compiled with */
        uint32_t threads; /* enum dlplugin_threads */
        uint32_t n_steps; /* steps, codecs after them, then formats, then collations */
        struct plugin_step steps[DLPLUGIN_STEPS_MAX];
};

/* Letters, digits and "_", not beginning with a digit, and short enough? */
bool plugin_is_name(const char *name, size_t n);

/* "a codec": for messages. */
const char *table_kind(const struct plugin_step *step);

/* Copies what a plug-in says, which is in this daemon's form already. -EINVAL: something of it is impossible; `why`
 * continues "the plug-in ". */
int table_describe(const struct dlplugin *plugin, struct plugin_table *ret_table, struct why *why);

/* Is a table that came from another process one that table_describe() could have made? */
bool table_is_valid(const struct plugin_table *table);
