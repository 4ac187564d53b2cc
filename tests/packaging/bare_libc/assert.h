extern void bare_failed(const char *condition);
#undef assert
#define assert(condition) ((condition) ? (void)0 : bare_failed(#condition))
