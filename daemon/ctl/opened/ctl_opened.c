#include "daemon/ctl/opened/ctl_opened.h"

#include <errno.h>

#include "daemon/ctl/users/access.h"
#include "proto/base/clock.h"

int opened_find(struct session *session, const char *name, struct catalog_entry **ret_entry, struct why *why) {
        struct catalog_entry *entry;
        int r = access_find_dataset(session, name, &entry, why);

        if (r < 0)
                return r;
        if (entry->state != CATALOG_READY) {
                catalog_try_again(entry);
                return why_set(why, -EBUSY, "%s: %s%s%s%s", entry->name, catalog_state_name(entry->state),
                               entry->text.text[0] ? ": " : "", entry->text.text,
                               entry->state == CATALOG_FAILED ? "" : "; ask again once it is ready");
        }
        entry->used_ns = clock_now_ns();
        *ret_entry = entry;
        return 0;
}
