// The cache directory, which several processes use at the same time; npu_build.h draws it. Nothing
// is locked: every entry visible to others got its name by rename.

#include "npu_build.h"

#if NPU_HAS_POSIX

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

NPU_INTERNAL void npu_print_absolute(npu_text *text, const char *path) {
    if (path[0] == '/') {
        npu_print(text, "%s", path);
        return;
    }
    for (size_t size = 256;; size *= 2) {
        char *here = (char *)npu_resize(NULL, size);
        bool is_there = here && getcwd(here, size) != NULL;
        if (is_there) {
            npu_print(text, "%s/%s", here, path);
        }
        int error = errno;
        npu_resize(here, 0);
        if (is_there) {
            return;
        }
        if (!here || error != ERANGE) {  // deleted, or not readable: the path may work as it is
            npu_print(text, "%s", path);
            return;
        }
    }
}

// -- the directory --------------------------------------------------------------------------------

static bool npu_cache_default(npu_build *build, npu_text *text) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') {  // relative paths are to be ignored, by the XDG specification
        npu_print(text, "%s/ptowsp", cache);
    } else if (home && home[0] != '\0') {
        npu_print_absolute(text, home);
        npu_print(text, "/.cache/ptowsp");
    } else {
        return npu_build_fail(build, PTOWSP_SYSTEM_FAILED,
                              "no cache directory: neither XDG_CACHE_HOME nor HOME names one");
    }
    return true;
}

// Makes a directory and its parents. False with errno.
static bool npu_cache_make(char *path) {
    for (char *at = path + 1; *at; at++) {
        if (*at == '/') {
            *at = '\0';
            bool is_there = mkdir(path, 0700) == 0 || errno == EEXIST || access(path, F_OK) == 0;
            *at = '/';
            if (!is_there) {
                return false;
            }
        }
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool npu_cache_check_path(npu_build *build, const char *path, unsigned depth);

// The path that a link leads to.
static bool npu_cache_check_link(npu_build *build, const char *link, unsigned depth) {
    char target[4096];
    npu_text path = {NULL, 0, 0, false};
    ssize_t size = readlink(link, target, sizeof target - 1);
    if (size < 0 || depth == NPU_LINK_MAX) {
        errno = size < 0 ? errno : ELOOP;
        return npu_build_fail_system(build, "cannot use the cache", link);
    }
    target[size] = '\0';
    const char *last = strrchr(link, '/');
    if (target[0] != '/') {
        npu_print(&path, "%.*s", (int)(last - link) + 1, link);
    }
    npu_print(&path, "%s", target);
    bool is_good =
        npu_build_check(build, &path) && npu_cache_check_path(build, path.data, depth + 1);
    npu_text_free(&path);
    return is_good;
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
                              build->cache.data, path,
                              !is_ours ? "belongs to another user" : "is writable for others");
    }
    return !is_link || npu_cache_check_link(build, path, depth);
}

// A user with write access to a directory can put another one where the cache is, and the owner of a
// link can lead it elsewhere. (Where the sticky bit is set, as in /tmp, only owners rename.) So each part of the way,
// also behind links, has to be of the user or of root, and no one else may write to it.
static bool npu_cache_check_path(npu_build *build, const char *path, unsigned depth) {
    npu_text part = {NULL, 0, 0, false};
    struct stat state;
    bool is_good = npu_cache_check_part(build, "/", depth);
    for (const char *at = strchr(path + 1, '/'); is_good && at; at = strchr(at + 1, '/')) {
        part.size = 0;
        npu_print(&part, "%.*s", (int)(at - path), path);
        is_good = npu_build_check(build, &part) && npu_cache_check_part(build, part.data, depth);
    }
    npu_text_free(&part);
    bool is_link = is_good && lstat(path, &state) == 0 && S_ISLNK(state.st_mode);
    return is_good && (!is_link || npu_cache_check_link(build, path, depth));
}

// Libraries of the cache run as the user: no one else may write there.
NPU_INTERNAL bool npu_cache_open(npu_build *build, const char *directory) {
    npu_text *path = &build->cache;
    if (directory && directory[0] != '\0') {
        npu_print_absolute(path, directory);
    } else if (!npu_cache_default(build, path)) {
        return false;
    }
    if (path->is_out_of_memory) {
        return npu_build_out_of_memory(build);
    }
    while (path->size > 1 && path->data[path->size - 1] == '/') {
        path->data[--path->size] = '\0';
    }
    struct stat state, link;
    if (!npu_cache_make(path->data) || stat(path->data, &state) != 0 ||
        lstat(path->data, &link) != 0) {
        return npu_build_fail_system(build, "cannot make the cache", path->data);
    }
    if (S_ISLNK(link.st_mode) && link.st_uid != geteuid() && link.st_uid != 0) {
        return npu_build_fail(
            build, PTOWSP_SYSTEM_FAILED,
            "the cache %s is a link of another user, so its target cannot be trusted", path->data);
    }
    if (!S_ISDIR(state.st_mode)) {
        errno = ENOTDIR;
        return npu_build_fail_system(build, "cannot use the cache", path->data);
    }
    if (state.st_uid != geteuid()) {
        return npu_build_fail(
            build, PTOWSP_SYSTEM_FAILED,
            "the cache %s belongs to another user, so its contents cannot be trusted", path->data);
    }
    if (state.st_mode & (S_IWGRP | S_IWOTH)) {
        return npu_build_fail(
            build, PTOWSP_SYSTEM_FAILED,
            "the cache %s is writable for others, so its contents cannot be trusted "
            "(chmod go-w)",
            path->data);
    }
    return npu_cache_check_path(build, path->data, 0);
}

// -- temporaries ----------------------------------------------------------------------------------

// Writes the mark that identifies our directories.
static bool npu_cache_sign(npu_build *build, const char *directory) {
    npu_text path = {NULL, 0, 0, false};
    npu_print(&path, "%s/" NPU_MARK, directory);
    bool is_good = npu_build_check(build, &path);
    if (is_good && !npu_file_write(path.data, "ptowsp\n", 7)) {
        is_good = npu_build_fail_system(build, "cannot write", path.data);
    }
    npu_text_free(&path);
    return is_good;
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
static bool npu_is_stale(const char *path, time_t now) {
    struct stat state, mark;
    npu_text inside = {NULL, 0, 0, false};
    npu_print(&inside, "%s/" NPU_MARK, path);
    bool is_stale = lstat(path, &state) == 0 && S_ISDIR(state.st_mode) &&
                    difftime(now, state.st_mtime) > NPU_STALE_SECONDS && !inside.is_out_of_memory &&
                    lstat(inside.data, &mark) == 0 && S_ISREG(mark.st_mode);
    npu_text_free(&inside);
    return is_stale;
}

// A user may have put other files there: only directories with the name and the mark are removed.
NPU_INTERNAL void npu_cache_sweep(const npu_build *build) {
    time_t now = time(NULL);
    DIR *directory = opendir(build->cache.data);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)) != NULL) {
        npu_text path = {NULL, 0, 0, false};
        if (!npu_is_temporary(entry->d_name)) {
            continue;
        }
        npu_print(&path, "%s/%s", build->cache.data, entry->d_name);
        if (!path.is_out_of_memory && npu_is_stale(path.data, now)) {
            npu_remove(AT_FDCWD, path.data);
        }
        npu_text_free(&path);
    }
    if (directory) {
        closedir(directory);
    }
}

// A name is used once: dlopen returns the library it has loaded by that name, whatever the file
// holds now.
NPU_INTERNAL bool npu_cache_new(npu_build *build, npu_text *path) {
    do {
        path->size = 0;
        npu_print(path, "%s/" NPU_TEMPORARY "%ld.%llu", build->cache.data, (long)getpid(),
                  (unsigned long long)ptowsp_clock_ns());
        if (path->is_out_of_memory) {
            return npu_build_out_of_memory(build);
        }
        if (mkdir(path->data, 0700) == 0) {
            bool is_good = npu_cache_sign(build, path->data);
            if (!is_good) {
                npu_remove(AT_FDCWD, path->data);
            }
            return is_good;
        }
    } while (errno == EEXIST);
    return npu_build_fail_system(build, "cannot make", path->data);
}

NPU_INTERNAL void npu_cache_remove(npu_text *path) {
    if (path->size && !path->is_out_of_memory) {
        npu_remove(AT_FDCWD, path->data);
    }
    npu_text_free(path);
}

// -- entries --------------------------------------------------------------------------------------

// The hash of a file. False with errno.
static bool npu_file_hash(const npu_text *path, char hash[NPU_HASH_SIZE]) {
    npu_text file = {NULL, 0, 0, false};
    bool is_good = !path->is_out_of_memory && npu_file_read(path->data, &file);
    if (is_good) {
        npu_hash(file.data, file.size, hash);
    } else if (path->is_out_of_memory || file.is_out_of_memory) {
        errno = ENOMEM;
    }
    int error = errno;
    npu_text_free(&file);
    errno = error;
    return is_good;
}

// The hash of the library in a directory. False with errno.
static bool npu_cache_hash(const char *directory, char hash[NPU_HASH_SIZE]) {
    npu_text path = {NULL, 0, 0, false};
    npu_print(&path, "%s/" NPU_LIBRARY, directory);
    bool is_good = npu_file_hash(&path, hash);
    int error = errno;
    npu_text_free(&path);
    errno = error;
    return is_good;
}

// The file with the hash of an object: KEY.sum for KEY.o.
static void npu_print_sum(npu_text *text, const npu_text *object) {
    PTOWSP_ASSERT(!object->is_out_of_memory && object->size > 1);  // npu_prepare_work checks it
    npu_print(text, "%.*ssum", (int)object->size - 1, object->data);
}

// The hash is renamed into place first. In between, or when another process does the same, an
// object may have another's hash; it is then compiled again.
NPU_INTERNAL bool npu_cache_keep(npu_build *build, const npu_text *output, const npu_text *object) {
    char hash[NPU_HASH_SIZE];
    npu_text from = {NULL, 0, 0, false}, to = from;
    npu_print_sum(&from, output);
    npu_print_sum(&to, object);
    bool is_good = npu_build_check(build, &from) && npu_build_check(build, &to);
    if (is_good &&
        (!npu_file_hash(output, hash) || !npu_file_write(from.data, hash, strlen(hash)) ||
         !npu_file_sync(from.data) || !npu_file_sync(output->data) ||
         rename(from.data, to.data) != 0 || rename(output->data, object->data) != 0)) {
        is_good = npu_build_fail_system(build, "cannot make", object->data);
    }
    npu_text_free(&from);
    npu_text_free(&to);
    return is_good;
}

NPU_INTERNAL bool npu_cache_has(const npu_text *object) {
    char hash[NPU_HASH_SIZE];
    npu_text path = {NULL, 0, 0, false}, sum = path;
    npu_print_sum(&path, object);
    bool is_whole = !path.is_out_of_memory && npu_file_read(path.data, &sum) && sum.size &&
                    npu_file_hash(object, hash) && strcmp(sum.data, hash) == 0;
    npu_text_free(&path);
    npu_text_free(&sum);
    return is_whole;
}

NPU_INTERNAL bool npu_cache_mark(npu_build *build) {
    npu_text path = {NULL, 0, 0, false};
    char hash[NPU_HASH_SIZE];
    if (!npu_cache_hash(build->work.data, hash)) {
        return npu_build_fail_system(build, "cannot read the library in", build->work.data);
    }
    npu_print(&path, "%s/complete", build->work.data);
    bool is_good = npu_build_check(build, &path);
    if (is_good && (!npu_file_write(path.data, hash, strlen(hash)) || !npu_file_sync(path.data))) {
        is_good = npu_build_fail_system(build, "cannot write", path.data);
    }
    npu_text_free(&path);
    return is_good;
}

NPU_INTERNAL bool npu_cache_is_whole(const char *directory) {
    npu_text path = {NULL, 0, 0, false}, mark = path;
    char hash[NPU_HASH_SIZE];
    npu_print(&path, "%s/complete", directory);
    bool is_whole = !path.is_out_of_memory && npu_file_read(path.data, &mark) && mark.size;
    if (is_whole) {
        is_whole = npu_cache_hash(directory, hash) && strcmp(mark.data, hash) == 0;
    }
    npu_text_free(&path);
    npu_text_free(&mark);
    return is_whole;
}

// Another process may replace or remove the entry at any moment, so this is tried a few times.
NPU_INTERNAL bool npu_cache_publish(npu_build *build) {
    for (int i = 0; i < 10; i++) {
        if (rename(build->work.data, build->entry.data) == 0) {
            npu_text_free(&build->work);
            return true;
        }
        if ((errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) || i == 9) {
            break;
        }
        if (npu_cache_is_whole(build->entry.data)) {
            return true;
        }
        npu_text aside = {NULL, 0, 0, false}, old = aside;
        if (!npu_cache_new(build, &aside)) {
            npu_text_free(&aside);
            return false;
        }
        npu_print(&old, "%s/old", aside.data);
        bool is_good = npu_build_check(build, &old);
        if (is_good) {
            rename(build->entry.data, old.data);
        }
        npu_text_free(&old);
        npu_cache_remove(&aside);
        if (!is_good) {
            return false;
        }
    }
    return npu_build_fail_system(build, "cannot make", build->entry.data);
}

#endif
