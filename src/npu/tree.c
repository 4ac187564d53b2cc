// A tree on disk, whole or not at all.
//
//      parent/.ptowsp-123-0     all files are written here: a directory of its own
//      parent/name              ... and it is renamed to its place
//      parent/.ptowsp-123-1     a replaced tree goes here first, and is removed last
//
// Until the rename the old tree is untouched, and a failure removes the new files. All functions
// work on descriptors of the two directories, without memory of their own, so cleaning up cannot
// run out of anything.

#include "npu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PTOWSP_NPU_WRITE
#define PTOWSP_NPU_WRITE(fd, data, size) write(fd, data, size)
#endif

#define NPU_TREE_NAME_MAX 64

typedef struct npu_tree {
    npu_emitter *emitter;
    char *parent;      // path
    const char *name;  // of the tree in it
    int parent_fd;
    char written[NPU_TREE_NAME_MAX];  // directory that is written
    int written_fd;
} npu_tree;

// Reports a failed path, with the system's words; a long path keeps its end.
static bool npu_system_fail(npu_tree *tree, const char *verb, const char *path) {
    int error = errno;
    size_t length = strlen(tree->parent) + strlen(tree->name) + 1;
    const char *parent = tree->parent;
    const char *cut = "";
    if (length > 300) {
        size_t parent_length = strlen(parent);
        size_t over = length - 300;
        parent += over < parent_length ? over : parent_length;
        cut = "...";
    }
    bool is_root = strcmp(tree->parent, "/") == 0;
    return npu_fail(tree->emitter, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                    "cannot %s %s%s%s%s%s%s: %s", verb, cut, parent, is_root ? "" : "/", tree->name,
                    *path ? "/" : "", path, strerror(error));
}

NPU_INTERNAL bool npu_remove(int parent_fd, const char *name) {
    struct stat about;
    if (fstatat(parent_fd, name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT;
    }
    if (!S_ISDIR(about.st_mode)) {
        return unlinkat(parent_fd, name, 0) == 0;
    }
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        errno = error;
        return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0;
    }
    bool is_removed = true;
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            is_removed = npu_remove(fd, entry->d_name) && is_removed;
        }
    }
    closedir(directory);
    return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 && is_removed;
}

// -- writing --------------------------------------------------------------------------------------

// Finds a free name in the parent: tries numbers.
static bool npu_make_name(npu_tree *tree, char name[NPU_TREE_NAME_MAX], bool is_made) {
    for (unsigned i = 0; i < 10000; i++) {
        snprintf(name, NPU_TREE_NAME_MAX, ".ptowsp-%ld-%u", (long)getpid(), i);
        struct stat about;
        if (is_made ? mkdirat(tree->parent_fd, name, 0755) == 0
                    : fstatat(tree->parent_fd, name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
            return is_made || errno == ENOENT;
        }
        if (is_made && errno != EEXIST) {
            return false;
        }
    }
    errno = EEXIST;
    return false;
}

// Makes the directories of a file, except those shared with the previous file.
static bool npu_make_directories(npu_tree *tree, const char *path, const char *before) {
    char directory[NPU_PATH_MAX];
    bool is_same = true;
    for (size_t i = 0; path[i]; i++) {
        is_same = is_same && before[i] == path[i];
        if (path[i] == '/' && !is_same) {
            memcpy(directory, path, i);
            directory[i] = '\0';
            if (mkdirat(tree->written_fd, directory, 0755) != 0 && errno != EEXIST) {
                return npu_system_fail(tree, "create directory", directory);
            }
        }
    }
    return true;
}

static bool npu_write_file(npu_tree *tree, const npu_file *file) {
    int fd = openat(tree->written_fd, file->path,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) {
        return npu_system_fail(tree, "create", file->path);
    }
    for (size_t done = 0; done < file->size;) {
        ssize_t size = PTOWSP_NPU_WRITE(fd, file->data + done, file->size - done);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size <= 0) {
            errno = size == 0 ? ENOSPC : errno;
            npu_system_fail(tree, "write", file->path);
            close(fd);
            return false;
        }
        done += (size_t)size;
    }
    return close(fd) == 0 ? true : npu_system_fail(tree, "write", file->path);
}

static bool npu_write_files(npu_tree *tree) {
    const npu_emitter *emitter = tree->emitter;
    const char *before = "";
    for (uint32_t i = 0; i < emitter->file_count; i++) {
        const npu_file *file = &emitter->files[i];
        PTOWSP_ASSERT(strlen(file->path) < NPU_PATH_MAX);
        if (!npu_make_directories(tree, file->path, before) || !npu_write_file(tree, file)) {
            return false;
        }
        before = file->path;
    }
    return true;
}

// -- the old tree ---------------------------------------------------------------------------------

typedef enum npu_found {
    NPU_FOUND_NOTHING,
    NPU_FOUND_EMPTY,
    NPU_FOUND_TREE,
    NPU_FOUND_OTHER,
    NPU_FOUND_UNKNOWN  // errno says why
} npu_found;

// Does the directory have a manifest.json that begins as ours?
static bool npu_is_tree(int fd) {
    char start[sizeof NPU_MANIFEST_START - 1];
    int file = openat(fd, "manifest.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t size = read(file, start, sizeof start);
    close(file);
    return size == (ssize_t)sizeof start && memcmp(start, NPU_MANIFEST_START, sizeof start) == 0;
}

static npu_found npu_look(const npu_tree *tree) {
    struct stat about;
    if (fstatat(tree->parent_fd, tree->name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
        // A name that is too long shows when the tree is renamed to it.
        return errno == ENOENT || errno == ENAMETOOLONG ? NPU_FOUND_NOTHING : NPU_FOUND_UNKNOWN;
    }
    int fd = openat(tree->parent_fd, tree->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return NPU_FOUND_OTHER;
    }
    bool is_tree = npu_is_tree(fd), is_empty = true;
    DIR *directory = fdopendir(fd);
    if (!directory) {
        close(fd);
        return NPU_FOUND_OTHER;
    }
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        is_empty =
            is_empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    }
    closedir(directory);
    return is_empty ? NPU_FOUND_EMPTY : is_tree ? NPU_FOUND_TREE : NPU_FOUND_OTHER;
}

static bool npu_may_write(npu_tree *tree, const ptowsp_npu_desc *desc, npu_found found) {
    if (found == NPU_FOUND_UNKNOWN) {
        return npu_system_fail(tree, "look at", "");
    }
    if (found != NPU_FOUND_NOTHING && !desc->is_replacing) {
        return npu_fail(tree->emitter, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                        "%.300s exists, and is not to be replaced", desc->directory);
    }
    if (found == NPU_FOUND_OTHER) {
        return npu_fail(tree->emitter, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                        "%.300s is not replaced, as it is neither an emitted tree (it has no "
                        "manifest.json of one) nor an empty directory",
                        desc->directory);
    }
    return true;
}

// -- all of it ------------------------------------------------------------------------------------

static bool npu_put_in_place(npu_tree *tree, npu_found found) {
    char old[NPU_TREE_NAME_MAX];
    int parent = tree->parent_fd;
    if (found != NPU_FOUND_TREE) {
        return renameat(parent, tree->written, parent, tree->name) == 0
                   ? true
                   : npu_system_fail(tree, "rename a directory to", "");
    }
    if (!npu_make_name(tree, old, false) || renameat(parent, tree->name, parent, old) != 0) {
        return npu_system_fail(tree, "rename", "");
    }
    if (renameat(parent, tree->written, parent, tree->name) != 0) {
        npu_system_fail(tree, "rename a directory to", "");
        renameat(parent, old, parent, tree->name);
        return false;
    }
    if (!npu_remove(parent, old)) {
        int error = errno;
        npu_fail(tree->emitter, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX,
                 "%.300s is replaced, but the tree that was there cannot be removed: it is %s "
                 "beside it: %s",
                 tree->name, old, strerror(error));
    }
    return true;
}

// Opens the new directory: the one that was made, also where others can write to the parent.
static int npu_open_written(const npu_tree *tree) {
    struct stat about;
    int fd =
        openat(tree->parent_fd, tree->written, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    int error = fstat(fd, &about) != 0 ? errno : 0;
    if (!error && (about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)))) {
        error = EPERM;
    }
    if (error) {
        close(fd);
        errno = error;
    }
    return error ? -1 : fd;
}

static void npu_tree_write_in(npu_tree *tree, const ptowsp_npu_desc *desc) {
    npu_found found = npu_look(tree);
    if (!npu_may_write(tree, desc, found)) {
        return;
    }
    if (!npu_make_name(tree, tree->written, true)) {
        npu_system_fail(tree, "create a directory beside", "");
        return;
    }
    tree->written_fd = npu_open_written(tree);
    bool is_in_place = tree->written_fd >= 0 ? npu_write_files(tree)
                                             : npu_system_fail(tree, "open a directory beside", "");
    if (tree->written_fd >= 0) {
        close(tree->written_fd);
    }
    is_in_place = is_in_place && npu_put_in_place(tree, found);
    if (!is_in_place) {
        npu_remove(tree->parent_fd, tree->written);
    }
}

// Splits a path at its last part: "a/b/" is "b" in "a", "/b" is "b" in "/", "b" is "b" in ".".
static bool npu_tree_split(npu_tree *tree, npu_text *path) {
    while (path->size > 1 && path->data[path->size - 1] == '/') {
        path->data[--path->size] = '\0';
    }
    char *slash = strrchr(path->data, '/');
    tree->name = slash ? slash + 1 : path->data;
    if (!slash) {
        npu_write(path, "\0.", 3);
        tree->name = path->data;
        tree->parent = path->data + strlen(path->data) + 1;
    } else if (slash == path->data) {
        memmove(path->data + 2, path->data + 1, path->size);  // after the parent's terminator
        path->data[1] = '\0';
        tree->parent = path->data;
        tree->name = path->data + 2;
    } else {
        *slash = '\0';
        tree->parent = path->data;
    }
    return *tree->name && strcmp(tree->name, ".") != 0 && strcmp(tree->name, "..") != 0;
}

NPU_INTERNAL void npu_tree_write(npu_emitter *emitter, const ptowsp_npu_desc *desc) {
    npu_tree tree;
    memset(&tree, 0, sizeof tree);
    tree.emitter = emitter;
    npu_text path = {NULL, 0, 0, false};
    npu_print(&path, "%s", desc->directory);
    npu_write(&path, "\0\0\0", 4);  // room for what splitting adds
    if (path.is_out_of_memory) {
        npu_out_of_memory(emitter);
        npu_text_free(&path);
        return;
    }
    path.size -= 4;
    if (!npu_tree_split(&tree, &path)) {
        npu_fail(emitter, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                 "a tree needs a name of its own, and \"%.300s\" has none", desc->directory);
        npu_text_free(&path);
        return;
    }
    tree.parent_fd = open(tree.parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree.parent_fd < 0) {
        npu_fail(emitter, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX, "cannot open directory %.300s: %s",
                 tree.parent, strerror(errno));
    } else {
        npu_tree_write_in(&tree, desc);
        close(tree.parent_fd);
    }
    npu_text_free(&path);
}
