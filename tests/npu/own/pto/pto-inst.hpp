// In place of PTO-ISA's header of this name.
#include "../../../../ptoisa_shim.h"
