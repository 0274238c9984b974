/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a NEFF and decides whether it may go to the device: there, whole, and of the digest the program
 * gave. The header's own fields are read only to say better what is wrong; trust rests on the digest. */
#include "neff.h"

#include "sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEFF_HEADER_BYTES 1024
#define NEFF_MAX_BYTES    ((off_t)1 << 34)

static bool file_read(int file, const char *path, NeffBytes *neff, Fault *fault)
{
    struct stat about;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        return tdsl_fault_set(fault, TDSL_E_NEFF, "NEFF '%s' is no regular file", path);
    }
    if (about.st_size < NEFF_HEADER_BYTES || about.st_size > NEFF_MAX_BYTES) {
        return tdsl_fault_set(fault, TDSL_E_NEFF,
                              "NEFF '%s' has %lld bytes: truncated or no NEFF", path,
                              (long long)about.st_size);
    }
    neff->bytes = (size_t)about.st_size;
    neff->owned = malloc(neff->bytes);
    neff->data = neff->owned;
    if (neff->owned == NULL) {
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory for the %zu bytes of NEFF '%s'",
                              neff->bytes, path);
    }
    if (!tdsl_read_fully(file, neff->owned, neff->bytes)) {
        free(neff->owned);
        neff->owned = NULL;
        return tdsl_fault_set(fault, TDSL_E_NEFF, "NEFF '%s' cannot be read to its end", path);
    }
    return true;
}

static bool path_read(const char *path, NeffBytes *neff, Fault *fault)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return tdsl_fault_set(fault, TDSL_E_NEFF, "NEFF '%s' cannot be opened: %s", path,
                              errno == ENOENT   ? "it is missing"
                              : errno == EACCES ? "permission denied"
                                                : "the system refuses");
    }
    bool good = file_read(file, path, neff, fault);
    (void)close(file);
    return good;
}

static uint64_t little_endian(const unsigned char *at)
{
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;) {
        value = value << 8 | at[i];
    }
    return value;
}

static bool digest_equal(const char *a, const char *b)
{
    for (size_t i = 0; i + 1 < SHA256_HEX_BYTES; i++) {
        char x = a[i] >= 'A' && a[i] <= 'F' ? (char)(a[i] - 'A' + 'a') : a[i];
        if (x != b[i]) {
            return false;
        }
    }
    return true;
}

static bool neff_check(const NkiPart *part, const NeffBytes *neff, Fault *fault)
{
    const char *what = part->neff_path != NULL ? part->neff_path : "embedded";
    if (neff->bytes < NEFF_HEADER_BYTES) {
        return tdsl_fault_set(fault, TDSL_E_NEFF,
                              "NEFF '%s' has %zu bytes: truncated or no NEFF", what,
                              neff->bytes);
    }
    char digest[SHA256_HEX_BYTES];
    tdsl_sha256_hex(neff->data, neff->bytes, digest);
    if (!digest_equal(part->neff_sha256, digest)) {
        uint64_t head_bytes = little_endian((const unsigned char *)neff->data + 8);
        uint64_t data_bytes = little_endian((const unsigned char *)neff->data + 16);
        bool whole = head_bytes <= neff->bytes && data_bytes <= neff->bytes - head_bytes;
        return tdsl_fault_set(
            fault, TDSL_E_NEFF, "NEFF '%s' has SHA-256 %.16s..., not %.16s...: %s", what,
            digest, part->neff_sha256, whole ? "another or a damaged file" : "it is truncated");
    }
    return true;
}

/* Embedded bytes are the program's: a load that hangs may still read them when it has freed them. */
static bool neff_copy(NeffBytes *neff, Fault *fault)
{
    neff->owned = malloc(neff->bytes);
    if (neff->owned == NULL) {
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory for the %zu bytes of its NEFF",
                              neff->bytes);
    }
    memcpy(neff->owned, neff->data, neff->bytes);
    neff->data = neff->owned;
    return true;
}

bool tdsl_neff_read(const NkiPart *part, NeffBytes *neff, Fault *fault)
{
    neff->data = part->neff;
    neff->bytes = part->neff_bytes;
    neff->owned = NULL;
    if (part->neff_path != NULL && !path_read(part->neff_path, neff, fault)) {
        return false;
    }
    if (!neff_check(part, neff, fault)) {
        free(neff->owned);
        neff->owned = NULL;
        return false;
    }
    return neff->owned != NULL || neff_copy(neff, fault);
}
