#include "daemon/plugin/calling.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static int on_fail(struct dlplugin_call *call, const char *format, ...) {
        struct calling *calling = call->daemon;
        va_list arguments;

        if (calling->text[0])
                return -1;
        va_start(arguments, format);
        vsnprintf(calling->text, sizeof(calling->text), format, arguments);
        va_end(arguments);
        return -1;
}

static uint32_t on_random_bits(struct dlplugin_call *call) {
        struct calling *calling = call->daemon;

        return dlp_philox_u32(&calling->philox);
}

static double on_random(struct dlplugin_call *call) {
        struct calling *calling = call->daemon;

        return dlp_philox_f64(&calling->philox);
}

void calling_begin(struct calling *calling, void *opened) {
        *calling = (struct calling){
                .call = { .version = DLPLUGIN_VERSION,
                          .plugin = opened,
                          .daemon = calling,
                          .fail = on_fail,
                          .random_bits = on_random_bits,
                          .random = on_random },
        };
        calling->call.values = calling->values;
        dlp_philox_init(&calling->philox, 0, 0, 0, 0);
}

int calling_answer(const struct calling *calling, int result, struct plugin_reply *reply) {
        if (result == 0)
                return 0;
        reply->result = -EBADMSG;
        snprintf(reply->text, sizeof(reply->text), "%s",
                 calling->text[0] ? calling->text : "failed without saying why");
        return reply->result;
}
