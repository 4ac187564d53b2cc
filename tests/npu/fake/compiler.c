// A compiler that only pretends (npu_build_fixture.h). Beside it lie: calls, a line for each of its
// calls; mode, what it does; version, what it says when asked; stub.so, what it links. In mode slow it
// says that it is at work (started.PARENT) and waits for a file (go). Objects are checked when they are linked.

#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char here[4096];

static const char *beside(const char *name) {
    static char path[8192];
    snprintf(path, sizeof path, "%s/%s", here, name);
    return path;
}

// The directory of its own path, or of the one that PATH finds.
static void find_here(const char *self) {
    const char *path = strchr(self, '/') ? self : getenv("PATH");
    if (path == self) {
        snprintf(here, sizeof here, "%.*s", (int)(strrchr(self, '/') - self), self);
        return;
    }
    for (bool is_found = false; path && *path && !is_found; path += strspn(path, ":")) {
        snprintf(here, sizeof here, "%.*s", (int)strcspn(path, ":"), path);
        is_found = access(beside(self), X_OK) == 0;
        path += strcspn(path, ":");
    }
}

// A file as text, "" if it is not there.
static size_t read_whole(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    if (file) {
        fclose(file);
    }
    return length;
}

static bool write_whole(const char *path, const char *how, const char *text, size_t size) {
    FILE *file = fopen(path, how);
    bool is_good = file && fwrite(text, 1, size, file) == size;
    return file && fclose(file) == 0 && is_good;
}

static int link_objects(int count, char **args, const char *out) {
    static char text[1 << 20];
    for (int i = 1; i < count; i++) {
        size_t length = strlen(args[i]);
        if (length > 2 && strcmp(args[i] + length - 2, ".o") == 0) {
            read_whole(args[i], text, sizeof text);
            if (strcmp(text, "object\n") != 0) {
                puts("error: bad object");
                return 1;
            }
        }
    }
    size_t length = read_whole(beside("stub.so"), text, sizeof text);
    return !write_whole(out, "w", text, length);
}

int main(int count, char **args) {
    static char line[1 << 16], mode[64], version[1024];
    const char *out = "";
    bool is_asked = false, is_linking = false;
    size_t at = 0;
    find_here(args[0]);
    for (int i = 1; i < count; i++) {
        at += (size_t)snprintf(line + at, sizeof line - at, "%s%s", i > 1 ? " " : "", args[i]);
        is_asked = is_asked || strcmp(args[i], "--version") == 0;
        is_linking = is_linking || strcmp(args[i], "-shared") == 0;
        out = strcmp(args[i - 1], "-o") == 0 ? args[i] : out;
    }
    line[at++] = '\n';
    write_whole(beside("calls"), "a", line, at);
    read_whole(beside("mode"), mode, sizeof mode);
    if (is_asked) {
        read_whole(beside("version"), version, sizeof version);
        fputs(version, stdout);
        return strcmp(mode, "mute") == 0;
    } else if (strcmp(mode, "slow") == 0) {
        char parent[32];
        snprintf(parent, sizeof parent, "started.%ld", (long)getppid());
        write_whole(beside(parent), "w", "", 0);
        while (access(beside("go"), F_OK) != 0) {
            nanosleep(&(struct timespec){0, 20000000}, NULL);
        }
    } else if (strcmp(mode, "fail") == 0) {
        puts("a.cpp:1: note: at work\na.cpp:2:3: error: no semicolon");
        return 1;
    } else if (strcmp(mode, "silent") == 0) {
        return 0;
    } else if (strcmp(mode, "die") == 0) {
        kill(getpid(), SIGKILL);
    }
    return is_linking ? link_objects(count, args, out) : !write_whole(out, "w", "object\n", 7);
}
