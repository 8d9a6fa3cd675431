/* Moved to base/machine/. */
#pragma once

#include "daemon/base/machine/disk.h"
