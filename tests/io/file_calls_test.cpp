// SPDX-License-Identifier: MIT
// The verbs of motet/io/io.hpp for files and names, on whatever descriptor, beside the system
// calls.
#include <linux/falloc.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <array>

#include "io/kinds_of_sockets.hpp"
#include "io/system_calls.hpp"

namespace {

using namespace testing;
namespace io = motet::io;

std::array<std::byte, 16> room;
const std::span<const std::byte> bytes = bytes_of("abc");
std::array<iovec, 2> vectors{iovec{room.data(), 3}, iovec{room.data() + 3, 13}};

/// A descriptor closed at once, as 0.
long closed_again(long fd) {
  if (fd >= 0) ::close(static_cast<int>(fd));
  return fd < 0 ? fd : 0;
}

const std::vector<verb> placed = {
    {"pread", [](int fd) { return told(::pread(fd, room.data(), room.size(), 2)); },
     [](int fd, std::error_code& error) -> long { return io::pread(fd, room, 2, error); }},
    {"pread that throws", [](int fd) { return told(::pread(fd, room.data(), room.size(), 2)); },
     [](int fd, std::error_code&) -> long { return io::pread(fd, room, 2); }},
    {"pread of nothing", [](int fd) { return told(::pread(fd, room.data(), 0, 0)); },
     [](int fd, std::error_code& error) -> long { return io::pread(fd, {}, 0, error); }},
    {"pread before the beginning",
     [](int fd) { return told(::pread(fd, room.data(), room.size(), -1)); },
     [](int fd, std::error_code& error) -> long { return io::pread(fd, room, -1, error); }},
    {"preadv", [](int fd) { return told(::preadv(fd, vectors.data(), 2, 0)); },
     [](int fd, std::error_code& error) -> long { return io::preadv(fd, vectors, 0, error); }},
    {"preadv of nothing", [](int fd) { return told(::preadv(fd, vectors.data(), 0, 0)); },
     [](int fd, std::error_code& error) -> long { return io::preadv(fd, {}, 0, error); }},
    {"pwrite", [](int fd) { return told(::pwrite(fd, bytes.data(), bytes.size(), 2)); },
     [](int fd, std::error_code& error) -> long { return io::pwrite(fd, bytes, 2, error); }},
    {"pwrite of nothing", [](int fd) { return told(::pwrite(fd, bytes.data(), 0, 0)); },
     [](int fd, std::error_code& error) -> long { return io::pwrite(fd, {}, 0, error); }},
    {"pwrite before the beginning",
     [](int fd) { return told(::pwrite(fd, bytes.data(), bytes.size(), -1)); },
     [](int fd, std::error_code& error) -> long { return io::pwrite(fd, bytes, -1, error); }},
    {"pwritev", [](int fd) { return told(::pwritev(fd, vectors.data(), 2, 0)); },
     [](int fd, std::error_code& error) -> long { return io::pwritev(fd, vectors, 0, error); }},
    {"pwritev of nothing", [](int fd) { return told(::pwritev(fd, vectors.data(), 0, 0)); },
     [](int fd, std::error_code& error) -> long { return io::pwritev(fd, {}, 0, error); }},
};

const std::vector<verb> whole = {
    {"fsync", [](int fd) { return told(::fsync(fd)); },
     [](int fd, std::error_code& error) { return io::fsync(fd, error), 0L; }},
    {"fdatasync", [](int fd) { return told(::fdatasync(fd)); },
     [](int fd, std::error_code& error) { return io::fdatasync(fd, error), 0L; }},
    {"fallocate", [](int fd) { return told(::fallocate(fd, 0, 0, 4096)); },
     [](int fd, std::error_code& error) { return io::fallocate(fd, 0, 0, 4096, error), 0L; }},
    {"fallocate of a hole",
     [](int fd) {
       return told(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
     },
     [](int fd, std::error_code& error) {
       return io::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096, error), 0L;
     }},
    {"fallocate of nothing", [](int fd) { return told(::fallocate(fd, 0, 0, 0)); },
     [](int fd, std::error_code& error) { return io::fallocate(fd, 0, 0, 0, error), 0L; }},
    {"ftruncate", [](int fd) { return told(::ftruncate(fd, 3)); },
     [](int fd, std::error_code& error) { return io::ftruncate(fd, 3, error), 0L; }},
    {"ftruncate to less than nothing", [](int fd) { return told(::ftruncate(fd, -1)); },
     [](int fd, std::error_code& error) { return io::ftruncate(fd, -1, error), 0L; }},
    {"waitid",
     [](int fd) {
       siginfo_t status{};
       return told(::waitid(P_PIDFD, static_cast<id_t>(fd), &status, WEXITED));
     },
     [](int fd, std::error_code& error) { return io::waitid(fd, WEXITED, error), 0L; }},
    {"waitid that leaves the status",
     [](int fd) {
       siginfo_t status{};
       return told(::waitid(P_PIDFD, static_cast<id_t>(fd), &status, WEXITED | WNOWAIT));
     },
     [](int fd, std::error_code& error) { return io::waitid(fd, WEXITED | WNOWAIT, error), 0L; }},
};

const std::vector<verb> names = {
    {"statx",
     [](int fd) {
       struct ::statx status{};
       return told(::statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &status));
     },
     [](int fd, std::error_code& error) {
       struct ::statx status{};
       return io::statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, status, error), 0L;
     }},
    {"statx of a missing name",
     [](int fd) {
       struct ::statx status{};
       return told(::statx(fd, "motet-missing", 0, STATX_SIZE, &status));
     },
     [](int fd, std::error_code& error) {
       struct ::statx status{};
       return io::statx(fd, "motet-missing", 0, STATX_SIZE, status, error), 0L;
     }},
    {"statx of an empty name",
     [](int fd) {
       struct ::statx status{};
       return told(::statx(fd, "", 0, STATX_SIZE, &status));
     },
     [](int fd, std::error_code& error) {
       struct ::statx status{};
       return io::statx(fd, "", 0, STATX_SIZE, status, error), 0L;
     }},
    {"openat", [](int fd) { return closed_again(told(::openat(fd, ".", O_RDONLY))); },
     [](int fd, std::error_code& error) -> long {
       return closed_again(io::openat(fd, ".", O_RDONLY, 0, error));
     }},
    {"openat of an absolute name",
     [](int fd) { return closed_again(told(::openat(fd, "/dev/null", O_RDONLY))); },
     [](int fd, std::error_code& error) -> long {
       return closed_again(io::openat(fd, "/dev/null", O_RDONLY, 0, error));
     }},
    {"openat with flags that fit badly",
     [](int fd) { return closed_again(told(::openat(fd, ".", O_RDONLY | O_CREAT, 0600))); },
     [](int fd, std::error_code& error) -> long {
       return closed_again(io::openat(fd, ".", O_RDONLY | O_CREAT, 0600, error));
     }},
    {"unlinkat", [](int fd) { return told(::unlinkat(fd, "motet-missing", 0)); },
     [](int fd, std::error_code& error) {
       return io::unlinkat(fd, "motet-missing", 0, error), 0L;
     }},
    {"renameat", [](int fd) { return told(::renameat(fd, "motet-missing", fd, "motet-other")); },
     [](int fd, std::error_code& error) {
       return io::renameat(fd, "motet-missing", fd, "motet-other", 0, error), 0L;
     }},
    {"mkdirat", [](int fd) { return told(::mkdirat(fd, ".", 0700)); },
     [](int fd, std::error_code& error) { return io::mkdirat(fd, ".", 0700, error), 0L; }},
};

const std::vector<difference> of_nothing = {
    {"pread of nothing", "directory", "EISDIR", "0", "a ring does not look at what it reads"},
    {"pwrite of nothing", "/dev/full", "ENOSPC", "0", "a ring does not look at what it writes"},
};

}  // namespace

TEST_CASE("io::pread(), preadv(), pwrite() and pwritev() do what the system calls do") {
  check_agreement(placed, all_kinds(), of_nothing);
}

TEST_CASE("io::fsync(), fallocate(), ftruncate() and waitid() do what the system calls do") {
  check_agreement(whole, all_kinds());
}

TEST_CASE("io::statx(), openat(), unlinkat(), renameat() and mkdirat() do what the kernel does") {
  check_agreement(names, all_kinds());
}
