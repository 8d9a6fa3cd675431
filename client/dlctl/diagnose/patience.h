/* dlctl/diagnose/patience.h: lets time pass, until a signal comes. */
#pragma once

#include <stdbool.h>

/* From now on SIGINT and SIGTERM only end waits. */
void patience_begin(void);

/* Has one of them come? */
bool patience_is_over(void);

/* A twentieth of a second, or less if a signal comes. */
void patience_tick(void);
