/* lib/progress/client_progress.h: what the caller is told while a call of the library waits. */
#pragma once

#include <stdint.h>

#include "proto/base/shown/progress.h"

struct dlc_loader;

/* Tells the caller of the public function what it waits for: on_wait ten times a second at most, on_progress once a
 * second. `progress` may have no phase: then `text`, a sentence, is all that is known. */
void dli_progress_tell(struct dlc_loader *loader, const struct dlp_progress *progress, const char *text);

/* Called every now and then while there is no batch: asks the daemon, and tells what it has answered. Never blocks. */
void dli_progress_look(struct dlc_loader *loader);
