// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: files and their names.
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

#include "cancellation/endless_io.hpp"
#include "cancellation/endless_loop.hpp"
#include "io/scratch.hpp"

namespace {

using namespace testing;

const switchpoint_table table = {
    {"io::pread",
     [](endless_loop& again) { again([from = zeros()] { io::pread(from.get(), single, 0); }); }},
    {"io::pread, of a file",
     [](endless_loop& again) {
       again([from = file_of("a")] { io::pread(from.get(), single, 0); });
     }},
    {"io::pread, nothing",
     [](endless_loop& again) {
       again([from = file_of("a")] { io::pread(from.get(), no_room, 0); });
     }},
    {"io::pread, with a code",
     [](endless_loop& again) {
       again([from = file_of("a")] {
         std::error_code error;
         io::pread(from.get(), single, 0, error);
         return error;
       });
     }},
    {"io::pwrite",
     [](endless_loop& again) { again([to = file_of("a")] { io::pwrite(to.get(), single, 0); }); }},
    {"io::pwrite, nothing",
     [](endless_loop& again) {
       again([to = file_of("a")] { io::pwrite(to.get(), no_bytes, 0); });
     }},
    {"io::preadv",
     [](endless_loop& again) {
       const iovec vector{single.data(), single.size()};
       again([&, from = file_of("a")] { io::preadv(from.get(), std::span(&vector, 1), 0); });
     }},
    {"io::preadv, nothing",
     [](endless_loop& again) { again([from = file_of("a")] { io::preadv(from.get(), {}, 0); }); }},
    {"io::pwritev",
     [](endless_loop& again) {
       const iovec vector{single.data(), single.size()};
       again([&, to = file_of("a")] { io::pwritev(to.get(), std::span(&vector, 1), 0); });
     }},
    {"io::fsync", [](endless_loop& again) { again([in = file_of("a")] { io::fsync(in.get()); }); }},
    {"io::fdatasync",
     [](endless_loop& again) { again([in = file_of("a")] { io::fdatasync(in.get()); }); }},
    {"io::fallocate",
     [](endless_loop& again) { again([in = file_of("a")] { io::fallocate(in.get(), 0, 0, 1); }); }},
    {"io::ftruncate",
     [](endless_loop& again) { again([in = file_of("a")] { io::ftruncate(in.get(), 0); }); }},
    {"io::openat",
     [](endless_loop& again) {
       again([] { const fd opened(io::openat(AT_FDCWD, "/dev/null", O_RDONLY)); });
     }},
    {"io::statx",
     [](endless_loop& again) {
       struct ::statx status{};
       again([&] { io::statx(AT_FDCWD, "/", 0, STATX_SIZE, status); });
     }},
    {"io::renameat",
     [](endless_loop& again) {
       const scratch_directory in;
       ::mkdirat(in.get(), "same", 0700);
       again([&] { io::renameat(in.get(), "same", in.get(), "same"); });
     }},
    {"io::unlinkat",
     [](endless_loop& again) {
       const scratch_directory in;
       again([&] {
         ::mkdirat(in.get(), "made", 0700);
         io::unlinkat(in.get(), "made", AT_REMOVEDIR);
       });
     }},
    {"io::unlinkat, with a code",
     [](endless_loop& again) {
       const scratch_directory in;
       again([&] {
         std::error_code error;
         io::unlinkat(in.get(), "missing", 0, error);
         return error;
       });
     }},
    {"io::mkdirat",
     [](endless_loop& again) {
       const scratch_directory in;
       again([&] {
         io::mkdirat(in.get(), "made", 0700);
         ::unlinkat(in.get(), "made", AT_REMOVEDIR);
       });
     }},
    {"file::open", [](endless_loop& again) { again([] { file::open("/dev/null"); }); }},
    {"file::open, with a code",
     [](endless_loop& again) {
       again([] {
         std::error_code error;
         file::open("/dev/null/none", O_RDONLY, 0, error);
         return error;
       });
     }},
    {"file::read",
     [](endless_loop& again) { again([from = file(zeros())]() mutable { from.read(single); }); }},
    {"file::read, at the end",
     [](endless_loop& again) {
       again([from = file(file_of(""))]() mutable { from.read(single); });
     }},
    {"file::read, nothing",
     [](endless_loop& again) { again([from = file(zeros())]() mutable { from.read(no_room); }); }},
    {"file::read, with a code",
     [](endless_loop& again) {
       again([from = file(zeros())]() mutable {
         std::error_code error;
         from.read(single, error);
         return error;
       });
     }},
    {"file::read_exactly",
     [](endless_loop& again) {
       again([from = file(zeros())]() mutable { from.read_exactly(single); });
     }},
    {"file::read_exactly, nothing",
     [](endless_loop& again) {
       again([from = file(zeros())]() mutable { from.read_exactly(no_room); });
     }},
    {"file::write",
     [](endless_loop& again) { again([to = file(zeros())]() mutable { to.write(single); }); }},
    {"file::write, nothing",
     [](endless_loop& again) { again([to = file(zeros())]() mutable { to.write(no_bytes); }); }},
    {"file::write_all",
     [](endless_loop& again) { again([to = file(zeros())]() mutable { to.write_all(single); }); }},
    {"file::write_all, nothing",
     [](endless_loop& again) { again([to = file(zeros())]() mutable { to.write_all(""); }); }},
    {"file::read_at",
     [](endless_loop& again) {
       again([from = file(file_of("a"))]() mutable { from.read_at(single, 0); });
     }},
    {"file::read_at, nothing",
     [](endless_loop& again) {
       again([from = file(file_of("a"))]() mutable { from.read_at(no_room, 0); });
     }},
    {"file::write_at",
     [](endless_loop& again) {
       again([to = file(file_of("a"))]() mutable { to.write_at(single, 0); });
     }},
    {"file::write_at, nothing",
     [](endless_loop& again) {
       again([to = file(file_of("a"))]() mutable { to.write_at(no_bytes, 0); });
     }},
    {"file::append",
     [](endless_loop& again) { again([to = file(file_of("a"))]() mutable { to.append("b"); }); }},
    {"file::append, nothing",
     [](endless_loop& again) { again([to = file(file_of("a"))]() mutable { to.append(""); }); }},
    {"file::size", [](endless_loop& again) { again([in = file(file_of("a"))] { in.size(); }); }},
    {"file::resize",
     [](endless_loop& again) { again([in = file(file_of("a"))]() mutable { in.resize(0); }); }},
    {"file::sync",
     [](endless_loop& again) { again([in = file(file_of("a"))]() mutable { in.sync(); }); }},
    {"file::sync_data",
     [](endless_loop& again) { again([in = file(file_of("a"))]() mutable { in.sync_data(); }); }},
    {"directory::directory",
     [](endless_loop& again) { again([] { directory("/proc/self/fd"); }); }},
    {"directory::next",
     [](endless_loop& again) {
       directory read("/proc/self/fd");
       while (read.next()) {
       }
       again([&] { read.next(); });
     }},
    {"directory::begin",
     [](endless_loop& again) {
       directory read("/proc/self/fd");
       while (read.next()) {
       }
       again([&] { read.begin(); });
     }},
    {"directory_walk::directory_walk",
     [](endless_loop& again) { again([] { directory_walk("/proc/self/fd"); }); }},
    {"directory_walk::next",
     [](endless_loop& again) {
       directory_walk from("/proc/self/fd", {.max_depth = 0});
       again([&] { from.next(); });
     }},
    {"directory_walk::begin",
     [](endless_loop& again) {
       directory_walk from("/proc/self/fd", {.max_depth = 0});
       while (from.next()) {
       }
       again([&] { from.begin(); });
     }},
    {"file_watch::file_watch", [](endless_loop& again) { again([] { file_watch("/tmp"); }); }},
    {"file_watch::watch",
     [](endless_loop& again) {
       file_watch changes;
       again([&] { changes.watch("/tmp"); });
     }},
    {"file_watch::next",
     [](endless_loop& again) {
       file_watch nothing;
       again([&] { nothing.next(); });
     }},
    {"file_watch::begin",
     [](endless_loop& again) {
       file_watch nothing;
       again([&] { nothing.begin(); });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
