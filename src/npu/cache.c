// The cache directory, which several processes use at the same time; npu_build.h draws it. Nothing
// is locked: every entry visible to others got its name by rename.

#include "npu_build.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NPU_TEMPORARY     "tmp."
#define NPU_MARK          ".ptowsp"
#define NPU_STICKY        01000u  // S_ISVTX, which is not in POSIX without XSI
#define NPU_LINK_MAX      40u     // on the way to the cache
#define NPU_STALE_SECONDS 3600    // age of a temporary whose process is gone

// -- files ----------------------------------------------------------------------------------------

NPU_INTERNAL bool npu_file_write(const char *path, const char *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file) {
        return false;
    }
    bool is_good = fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && is_good;
}

NPU_INTERNAL bool npu_file_read(const char *path, npu_text *text) {
    char bytes[16384];
    FILE *file = fopen(path, "rb");
    if (!file) {
        return false;
    }
    size_t count;
    while ((count = fread(bytes, 1, sizeof bytes, file)) > 0) {
        npu_write(text, bytes, count);
    }
    bool is_good = !ferror(file);
    fclose(file);
    return is_good && !text->is_out_of_memory;
}

NPU_INTERNAL bool npu_file_sync(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    bool is_good = fsync(file) == 0;
    return close(file) == 0 && is_good;
}

NPU_INTERNAL const char *npu_absolute(npu_build *build, const char *path) {
    const char *absolute = path[0] == '/' ? path : NULL;
    for (size_t size = 256; !absolute; size *= 2) {
        char *here = (char *)npu_resize(NULL, size);
        if (here && getcwd(here, size)) {
            absolute = npu_path(build, "%s/%s", here, path);
        } else if (!here || errno != ERANGE) {  // deleted, or not readable: it may work as it is
            absolute = path;
        }
        npu_resize(here, 0);
    }
    return npu_path(build, "%s", absolute);
}

// -- the directory --------------------------------------------------------------------------------

// NULL with an error.
static const char *npu_cache_default(npu_build *build) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') {  // relative paths are to be ignored, by the XDG specification
        return npu_path(build, "%s/ptowsp", cache);
    }
    if (home && home[0] != '\0') {
        return npu_path(build, "%s/.cache/ptowsp", npu_absolute(build, home));
    }
    npu_build_fail(build, PTOWSP_SYSTEM_FAILED,
                   "no cache directory: neither XDG_CACHE_HOME nor HOME names one");
    return NULL;
}

// Makes a directory and its parents. False with errno.
static bool npu_cache_make(npu_build *build, const char *path) {
    for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        const char *parent = npu_path(build, "%.*s", (int)(at - path), path);
        if (mkdir(parent, 0700) != 0 && errno != EEXIST && access(parent, F_OK) != 0) {
            return false;
        }
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool npu_cache_check_path(npu_build *build, const char *path, unsigned depth);

// The path that a link leads to.
static bool npu_cache_check_link(npu_build *build, const char *link, unsigned depth) {
    char target[4096];
    ssize_t size = readlink(link, target, sizeof target - 1);
    if (size < 0 || depth == NPU_LINK_MAX) {
        errno = size < 0 ? errno : ELOOP;
        return npu_build_fail_system(build, "cannot use the cache", link);
    }
    target[size] = '\0';
    const char *last = strrchr(link, '/');
    int parent = target[0] == '/' ? 0 : (int)(last - link) + 1;
    return npu_cache_check_path(build, npu_path(build, "%.*s%s", parent, link, target), depth + 1);
}

// A part of the path of the cache, which is not its end.
static bool npu_cache_check_part(npu_build *build, const char *path, unsigned depth) {
    struct stat state;
    if (lstat(path, &state) != 0) {
        return npu_build_fail_system(build, "cannot use the cache", path);
    }
    bool is_link = S_ISLNK(state.st_mode);
    bool is_ours = state.st_uid == geteuid() || state.st_uid == 0;
    bool is_open =
        !is_link && (state.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (state.st_mode & NPU_STICKY) == 0;
    if (!is_ours || is_open) {
        return npu_build_fail(build, PTOWSP_SYSTEM_FAILED,
                              "the cache %s can be exchanged by others: %s on the way to it %s",
                              build->cache, path,
                              !is_ours ? "belongs to another user" : "is writable for others");
    }
    return !is_link || npu_cache_check_link(build, path, depth);
}

// A user with write access to a directory can replace the cache by a directory of their own, and the
// owner of a link can redirect it. (Where the sticky bit is set, as in /tmp, only owners rename.) So the
// user or root must own each part of the path, links followed, and no one else may write to it.
static bool npu_cache_check_path(npu_build *build, const char *path, unsigned depth) {
    struct stat state;
    bool is_good = npu_cache_check_part(build, "/", depth);
    for (const char *at = strchr(path + 1, '/'); is_good && at; at = strchr(at + 1, '/')) {
        const char *part = npu_path(build, "%.*s", (int)(at - path), path);
        is_good = npu_cache_check_part(build, part, depth);
    }
    bool is_link = is_good && lstat(path, &state) == 0 && S_ISLNK(state.st_mode);
    return is_good && (!is_link || npu_cache_check_link(build, path, depth));
}

// Libraries of the cache run as the user: no one else may write there.
NPU_INTERNAL bool npu_cache_open(npu_build *build, const char *directory) {
    const char *path =
        directory && directory[0] ? npu_absolute(build, directory) : npu_cache_default(build);
    if (!path || build->status != PTOWSP_OK) {
        return false;
    }
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    path = build->cache = npu_path(build, "%.*s", (int)size, path);
    struct stat state, link;
    if (!npu_cache_make(build, path) || stat(path, &state) != 0 || lstat(path, &link) != 0) {
        return npu_build_fail_system(build, "cannot make the cache", path);
    }
    if (S_ISLNK(link.st_mode) && link.st_uid != geteuid() && link.st_uid != 0) {
        return npu_build_fail(
            build, PTOWSP_SYSTEM_FAILED,
            "the cache %s is a link of another user, so its target cannot be trusted", path);
    }
    if (!S_ISDIR(state.st_mode)) {
        errno = ENOTDIR;
        return npu_build_fail_system(build, "cannot use the cache", path);
    }
    if (state.st_uid != geteuid()) {
        return npu_build_fail(
            build, PTOWSP_SYSTEM_FAILED,
            "the cache %s belongs to another user, so its contents cannot be trusted", path);
    }
    if (state.st_mode & (S_IWGRP | S_IWOTH)) {
        return npu_build_fail(
            build, PTOWSP_SYSTEM_FAILED,
            "the cache %s is writable for others, so its contents cannot be trusted "
            "(chmod go-w)",
            path);
    }
    return npu_cache_check_path(build, path, 0);
}

// -- temporaries ----------------------------------------------------------------------------------

// Writes the mark that identifies our directories.
static bool npu_cache_sign(npu_build *build, const char *directory) {
    const char *path = npu_path(build, "%s/" NPU_MARK, directory);
    return npu_file_write(path, "ptowsp\n", 7) ? true
                                               : npu_build_fail_system(build, "cannot write", path);
}

// Is it "tmp.PID.N"?
static bool npu_is_temporary(const char *name) {
    size_t start = strlen(NPU_TEMPORARY);
    if (strncmp(name, NPU_TEMPORARY, start) != 0) {
        return false;
    }
    size_t first = strspn(name + start, "0123456789");
    const char *rest = name + start + first;
    size_t second = *rest == '.' ? strspn(rest + 1, "0123456789") : 0;
    return first > 0 && second > 0 && rest[1 + second] == '\0';
}

// Is it a directory with the mark inside, unchanged for long?
static bool npu_is_stale(npu_build *build, const char *path, time_t now) {
    struct stat state, mark;
    return lstat(path, &state) == 0 && S_ISDIR(state.st_mode) &&
           difftime(now, state.st_mtime) > NPU_STALE_SECONDS &&
           lstat(npu_path(build, "%s/" NPU_MARK, path), &mark) == 0 && S_ISREG(mark.st_mode);
}

// A user may have put other files there: only directories with the name and the mark are removed.
NPU_INTERNAL void npu_cache_sweep(npu_build *build) {
    time_t now = time(NULL);
    DIR *directory = opendir(build->cache);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)) != NULL) {
        if (npu_is_temporary(entry->d_name)) {
            const char *path = npu_path(build, "%s/%s", build->cache, entry->d_name);
            if (npu_is_stale(build, path, now)) {
                npu_remove(AT_FDCWD, path);
            }
        }
    }
    if (directory) {
        closedir(directory);
    }
}

// A name is used once: dlopen returns the library it has loaded by that name, whatever the file
// holds now.
NPU_INTERNAL const char *npu_cache_new(npu_build *build) {
    const char *path;
    do {
        path = npu_path(build, "%s/" NPU_TEMPORARY "%ld.%llu", build->cache, (long)getpid(),
                        (unsigned long long)ptowsp_clock_ns());
        if (mkdir(path, 0700) == 0) {
            if (npu_cache_sign(build, path)) {
                return path;
            }
            npu_remove(AT_FDCWD, path);
            return NULL;
        }
    } while (errno == EEXIST);
    npu_build_fail_system(build, "cannot make", path);
    return NULL;
}

// -- entries --------------------------------------------------------------------------------------

// The hash of a file. False with errno.
static bool npu_file_hash(const char *path, char hash[NPU_HASH_SIZE]) {
    npu_text file = {NULL, 0, 0, false};
    bool is_good = npu_file_read(path, &file);
    if (is_good) {
        npu_hash(file.data, file.size, hash);
    }
    int error = file.is_out_of_memory ? ENOMEM : errno;
    npu_text_free(&file);
    errno = error;
    return is_good;
}

// Does a file hold the hash of another?
static bool npu_is_hash_of(const char *sum, const char *path) {
    char hash[NPU_HASH_SIZE];
    npu_text text = {NULL, 0, 0, false};
    bool is_whole = npu_file_read(sum, &text) && text.size && npu_file_hash(path, hash) &&
                    strcmp(text.data, hash) == 0;
    npu_text_free(&text);
    return is_whole;
}

// The file with the hash of an object: KEY.sum for KEY.o.
static const char *npu_sum_of(npu_build *build, const char *object) {
    return npu_path(build, "%.*ssum", (int)strlen(object) - 1, object);
}

// The hash is renamed into place first. In between, or when another process does the same, an
// object may have another's hash; it is then compiled again.
NPU_INTERNAL bool npu_cache_keep(npu_build *build, const char *output, const char *object) {
    char hash[NPU_HASH_SIZE];
    const char *from = npu_sum_of(build, output), *to = npu_sum_of(build, object);
    return npu_file_hash(output, hash) && npu_file_write(from, hash, strlen(hash)) &&
                   npu_file_sync(from) && npu_file_sync(output) && rename(from, to) == 0 &&
                   rename(output, object) == 0
               ? true
               : npu_build_fail_system(build, "cannot make", object);
}

NPU_INTERNAL bool npu_cache_has(npu_build *build, const char *object) {
    return npu_is_hash_of(npu_sum_of(build, object), object);
}

NPU_INTERNAL bool npu_cache_mark(npu_build *build) {
    char hash[NPU_HASH_SIZE];
    const char *path = npu_path(build, "%s/complete", build->work);
    if (!npu_file_hash(npu_path(build, "%s/" NPU_LIBRARY, build->work), hash)) {
        return npu_build_fail_system(build, "cannot read the library in", build->work);
    }
    return npu_file_write(path, hash, strlen(hash)) && npu_file_sync(path)
               ? true
               : npu_build_fail_system(build, "cannot write", path);
}

NPU_INTERNAL bool npu_cache_is_whole(npu_build *build, const char *directory) {
    return npu_is_hash_of(npu_path(build, "%s/complete", directory),
                          npu_path(build, "%s/" NPU_LIBRARY, directory));
}

// Another process may replace or remove the entry at any moment, so this is tried a few times.
NPU_INTERNAL bool npu_cache_publish(npu_build *build) {
    for (int i = 0; i < 10; i++) {
        if (rename(build->work, build->entry) == 0) {
            build->work = NULL;
            return true;
        }
        if ((errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) || i == 9) {
            break;
        }
        if (npu_cache_is_whole(build, build->entry)) {
            return true;
        }
        const char *aside = npu_cache_new(build);
        if (!aside) {
            return false;
        }
        rename(build->entry, npu_path(build, "%s/old", aside));
        npu_remove(AT_FDCWD, aside);
    }
    return npu_build_fail_system(build, "cannot make", build->entry);
}
