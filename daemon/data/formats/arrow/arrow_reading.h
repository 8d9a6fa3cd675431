/* data/formats/arrow/arrow_reading.h: Arrow files as tables that are kept column by column (columnar/columnar.h). */
#pragma once

#include "daemon/data/formats/arrow/arrow_folder.h"
#include "daemon/data/formats/arrow/host.h"
#include "daemon/data/formats/arrow/table/ipc_schema.h"
#include "daemon/data/formats/columnar/columnar.h"

/* What a pass has as its own. */
struct arrow_dataset {
        const struct arrow_host *host; /* NULL: the files are Arrow files */
        struct arrow_folder folder;
        struct arrow_schema schema; /* the pass's */
};

extern const struct columnar_format ARROW_READING;
