/* plugin/calling.h: a call of a function of a plug-in, and what the function can do meanwhile. Private to this floor. */
#pragma once

#include "daemon/plugin/library.h"
#include "proto/order/philox.h"

struct scanning;

/* A call that is under way; `call` is what the plug-in sees of it. */
struct calling {
        struct dlplugin_call call;
        struct dlp_philox philox;
        char text[PLUGIN_REPLY_TEXT_MAX]; /* "": it has not failed */
        struct dlplugin_value values[DLPLUGIN_ARGUMENTS_MAX];
        struct scanning *scanning; /* of scan(); else NULL */
};

/* `opened`: what the plug-in's open() gave. Draws are the same each time until the philox is set. */
void calling_begin(struct calling *calling, void *opened);

/* What a function has returned, as a reply: 0, or its sentence. Returns reply->result. */
int calling_answer(const struct calling *calling, int result, struct plugin_reply *reply);
