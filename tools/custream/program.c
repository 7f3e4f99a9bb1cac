#define _GNU_SOURCE /* O_PATH */
#include "tools/custream/program.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

bool program_find(const char *name, char *path, size_t size)
{
    if (strchr(name, '/')) {
        snprintf(path, size, "%s", name);
        return true;
    }
    const char *list = getenv("PATH");
    if (!list) list = "/bin:/usr/bin"; /* execvp's own default */
    for (;;) {
        int length = (int)strcspn(list, ":");
        /* An empty element means the current directory. */
        snprintf(path, size, "%.*s%s%s", length, list, length ? "/" : "./", name);
        struct stat about;
        if (!stat(path, &about) && S_ISREG(about.st_mode) && !access(path, X_OK)) return true;
        if (!list[length]) return false;
        list += length + 1;
    }
}

int program_open(const char *path)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || (!fstat(fd, &about) && S_ISREG(about.st_mode))) return fd;
    close(fd);
    return -1;
}

bool is_file_at(int fd, const char *path)
{
    struct stat a, b;
    return !fstat(fd, &a) && !stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_same_file(const char *a, const char *b)
{
    const int fd = open(a, O_PATH | O_CLOEXEC);
    const bool is = is_file_at(fd, b);
    if (fd >= 0) close(fd);
    return is;
}

struct elf_facts {
    GElf_Ehdr header;
    bool interpreted; /* the file has PT_INTERP: a loader starts it and reads LD_PRELOAD */
};

/* Reads the facts of a file. False: it is no ELF file of this byte order. */
static bool elf_read(const char *path, struct elf_facts *facts)
{
    const unsigned char native =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    const int fd = program_open(path);
    size_t count = 0;
    if (fd < 0) return false;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    bool good = elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &facts->header) &&
                facts->header.e_ident[EI_DATA] == native;
    good = good && !elf_getphdrnum(elf, &count);
    facts->interpreted = false;
    for (size_t i = 0; good && i < count; i++) {
        GElf_Phdr segment;
        good = gelf_getphdr(elf, (int)i, &segment);
        facts->interpreted |= good && segment.p_type == PT_INTERP;
    }
    elf_end(elf);
    close(fd);
    return good;
}

char *script_words(const char *path, char line[SCRIPT_LINE])
{
    const int fd = program_open(path);
    const ssize_t got = fd >= 0 ? read(fd, line, SCRIPT_LINE - 1) : -1;
    if (fd >= 0) close(fd);
    line[got > 0 ? got : 0] = 0;
    if (got < 3 || memcmp(line, "#!", 2)) return NULL;
    line[strcspn(line, "\n")] = 0;
    return line + 2 + strspn(line + 2, " \t");
}

const char *program_obstacle(const char *path)
{
    char line[SCRIPT_LINE], *interpreter = script_words(path, line);
    struct elf_facts own, facts;
    /* A script's own setuid bit has no effect on Linux. */
    if (interpreter) interpreter[strcspn(interpreter, " \t")] = 0, path = interpreter;
    /* Such a program runs with AT_SECURE, so the loader ignores an LD_PRELOAD with a slash
     * (ld.so(8)). */
    struct stat about;
    if (!stat(path, &about) &&
        ((about.st_mode & S_ISUID && about.st_uid != getuid()) ||
            (about.st_mode & S_ISGID && about.st_mode & S_IXGRP && about.st_gid != getgid()) ||
            (getuid() && getxattr(path, "security.capability", NULL, 0) > 0)))
        return "runs with raised privileges (setuid, setgid or capabilities), so the loader "
               "ignores LD_PRELOAD";
    if (!elf_read(path, &facts)) return NULL;
    if (!facts.interpreted) return "is statically linked, so no loader reads LD_PRELOAD";
    if (!elf_read("/proc/self/exe", &own)) return NULL;
    if (own.header.e_ident[EI_CLASS] != facts.header.e_ident[EI_CLASS] ||
        own.header.e_machine != facts.header.e_machine)
        return "is built for another architecture than the preload library";
    return NULL;
}
