// Compiles the runtime that the library and all trees share: wsp_core.h.

#define WSP_CORE_SOURCES
#include "wsp_core.h"
