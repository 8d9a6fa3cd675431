/* data/index/index_sweep.h: the folder of indices and ledgers, as earlier daemons left it. */
#pragma once

/* Removes temporary files that a killed daemon left there: a part of an index, or of a ledger. Only those that have not
 * changed for an hour, because another process may be working on a younger one.
 *
 * And takes from others what they may do there. The files have names and texts of datasets that `allow` may keep from
 * them, and were readable for all before that was thought of; so are folders that were made by hand. A folder is only
 * closed if it has nothing else in it: it may be one that somebody named by mistake. */
void index_sweep(const char *index_dir);
