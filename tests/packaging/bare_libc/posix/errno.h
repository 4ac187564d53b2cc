extern int *bare_errno(void);
#define errno (*bare_errno())
