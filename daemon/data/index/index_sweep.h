/* data/index/index_sweep.h: the folder of indices and ledgers, as earlier daemons left it. */
#pragma once

/* Removes temporary files that a killed daemon left there: a part of an index, or of a ledger. Only those that have not
 * changed for an hour, because another process may be working on a younger one.
 *
 * It also takes away the rights of other users there: the files hold names and texts of datasets which `allow` may keep
 * from them. Files of earlier versions, and folders that were made by hand, were readable for all. A folder is only
 * closed if it has nothing else in it: it may be one that somebody named by mistake. */
void index_sweep(const char *index_dir);
