/* base/machine/linked.h: with which libraries this program was linked, for `dlctl status`. */
#pragma once

/* One word: "system" (the machine's shared libraries) or "portable" (its own; what make wheel packs). Static. */
const char *linked_libraries(void);

/* The same as a sentence, with what is absent. Static. */
const char *linked_text(void);
