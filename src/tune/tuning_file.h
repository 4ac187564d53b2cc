// Files that processes share: opened, locked, read, appended to, replaced. These are the only files
// that the library opens.
//
// Functions return 0 or an errno value.

#ifndef PWSP_TUNING_FILE_H
#define PWSP_TUNING_FILE_H

#include "../base/base.h"

typedef struct pwsp_file_id {
    uint64_t device, number;  // the same for one file only, as long as it is open somewhere
    uint64_t size;            // bytes; 0 of a device
    uint64_t link_count;
    uint32_t mode;  // permissions
    bool is_device;
} pwsp_file_id;

// Opens the file that the path names and locks it: shared to read, otherwise exclusive, creating it
// if needed. The locked file is the one that the path names after locking. Waits for other locks:
// ETIMEDOUT after 10 s. ENOTSUP: neither a file nor a device.
PWSP_INTERNAL int pwsp_file_lock(const char *path, bool is_to_write, int *out_file,
                                 pwsp_file_id *out_id);

// A child of a fork may have the file open too, so a close alone would keep the lock.
PWSP_INTERNAL void pwsp_file_unlock(int file);
PWSP_INTERNAL void pwsp_file_close(int file);

// Reads up to size bytes; fewer only at the end.
PWSP_INTERNAL int pwsp_file_read(int file, uint64_t offset, void *data, size_t size,
                                 size_t *out_count);

// Writes at the end of the file: one write(), unless the system takes less than all.
PWSP_INTERNAL int pwsp_file_append(int file, const void *data, size_t size);

// A new file with these permissions, in place of one that may be there; then it takes the place of
// another one, after its bytes are on the disk.
PWSP_INTERNAL int pwsp_file_make(const char *path, uint32_t mode, int *out_file);
PWSP_INTERNAL int pwsp_file_replace(int file, const char *made, const char *path);
PWSP_INTERNAL void pwsp_file_remove(const char *path);

PWSP_INTERNAL bool pwsp_file_is_link(const char *path);

#endif
