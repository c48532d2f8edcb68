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
     [](endless_loop& again) {
       again([source = zeros()] { io::pread(source.get(), single, 0); });
     }},
    {"io::pread, of a file",
     [](endless_loop& again) {
       again([source = file_of("a")] { io::pread(source.get(), single, 0); });
     }},
    {"io::pread, nothing",
     [](endless_loop& again) {
       again([source = file_of("a")] { io::pread(source.get(), no_room, 0); });
     }},
    {"io::pread, with a code",
     [](endless_loop& again) {
       again([source = file_of("a")] {
         std::error_code error;
         io::pread(source.get(), single, 0, error);
         return error;
       });
     }},
    {"io::pwrite",
     [](endless_loop& again) {
       again([target = file_of("a")] { io::pwrite(target.get(), single, 0); });
     }},
    {"io::pwrite, nothing",
     [](endless_loop& again) {
       again([target = file_of("a")] { io::pwrite(target.get(), no_bytes, 0); });
     }},
    {"io::preadv",
     [](endless_loop& again) {
       const iovec vector{single.data(), single.size()};
       again([&, source = file_of("a")] { io::preadv(source.get(), std::span(&vector, 1), 0); });
     }},
    {"io::preadv, nothing",
     [](endless_loop& again) {
       again([source = file_of("a")] { io::preadv(source.get(), {}, 0); });
     }},
    {"io::pwritev",
     [](endless_loop& again) {
       const iovec vector{single.data(), single.size()};
       again([&, target = file_of("a")] { io::pwritev(target.get(), std::span(&vector, 1), 0); });
     }},
    {"io::fsync",
     [](endless_loop& again) {
       again([directory_file = file_of("a")] { io::fsync(directory_file.get()); });
     }},
    {"io::fdatasync",
     [](endless_loop& again) {
       again([directory_file = file_of("a")] { io::fdatasync(directory_file.get()); });
     }},
    {"io::fallocate",
     [](endless_loop& again) {
       again([directory_file = file_of("a")] { io::fallocate(directory_file.get(), 0, 0, 1); });
     }},
    {"io::ftruncate",
     [](endless_loop& again) {
       again([directory_file = file_of("a")] { io::ftruncate(directory_file.get(), 0); });
     }},
    {"io::openat",
     [](endless_loop& again) {
       again([] { const fd descriptor(io::openat(AT_FDCWD, "/dev/null", O_RDONLY)); });
     }},
    {"io::statx",
     [](endless_loop& again) {
       struct ::statx status{};
       again([&] { io::statx(AT_FDCWD, "/", 0, STATX_SIZE, status); });
     }},
    {"io::renameat",
     [](endless_loop& again) {
       const scratch_directory directory;
       ::mkdirat(directory.get(), "same", 0700);
       again([&] { io::renameat(directory.get(), "same", directory.get(), "same"); });
     }},
    {"io::unlinkat",
     [](endless_loop& again) {
       const scratch_directory directory;
       again([&] {
         ::mkdirat(directory.get(), "made", 0700);
         io::unlinkat(directory.get(), "made", AT_REMOVEDIR);
       });
     }},
    {"io::unlinkat, with a code",
     [](endless_loop& again) {
       const scratch_directory directory;
       again([&] {
         std::error_code error;
         io::unlinkat(directory.get(), "missing", 0, error);
         return error;
       });
     }},
    {"io::mkdirat",
     [](endless_loop& again) {
       const scratch_directory directory;
       again([&] {
         io::mkdirat(directory.get(), "made", 0700);
         ::unlinkat(directory.get(), "made", AT_REMOVEDIR);
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
     [](endless_loop& again) {
       again([source = file(zeros())]() mutable { source.read(single); });
     }},
    {"file::read, at the end",
     [](endless_loop& again) {
       again([source = file(file_of(""))]() mutable { source.read(single); });
     }},
    {"file::read, nothing",
     [](endless_loop& again) {
       again([source = file(zeros())]() mutable { source.read(no_room); });
     }},
    {"file::read, with a code",
     [](endless_loop& again) {
       again([source = file(zeros())]() mutable {
         std::error_code error;
         source.read(single, error);
         return error;
       });
     }},
    {"file::read_exactly",
     [](endless_loop& again) {
       again([source = file(zeros())]() mutable { source.read_exactly(single); });
     }},
    {"file::read_exactly, nothing",
     [](endless_loop& again) {
       again([source = file(zeros())]() mutable { source.read_exactly(no_room); });
     }},
    {"file::write",
     [](endless_loop& again) {
       again([target = file(zeros())]() mutable { target.write(single); });
     }},
    {"file::write, nothing",
     [](endless_loop& again) {
       again([target = file(zeros())]() mutable { target.write(no_bytes); });
     }},
    {"file::write_all",
     [](endless_loop& again) {
       again([target = file(zeros())]() mutable { target.write_all(single); });
     }},
    {"file::write_all, nothing",
     [](endless_loop& again) {
       again([target = file(zeros())]() mutable { target.write_all(""); });
     }},
    {"file::read_at",
     [](endless_loop& again) {
       again([source = file(file_of("a"))]() mutable { source.read_at(single, 0); });
     }},
    {"file::read_at, nothing",
     [](endless_loop& again) {
       again([source = file(file_of("a"))]() mutable { source.read_at(no_room, 0); });
     }},
    {"file::write_at",
     [](endless_loop& again) {
       again([target = file(file_of("a"))]() mutable { target.write_at(single, 0); });
     }},
    {"file::write_at, nothing",
     [](endless_loop& again) {
       again([target = file(file_of("a"))]() mutable { target.write_at(no_bytes, 0); });
     }},
    {"file::append",
     [](endless_loop& again) {
       again([target = file(file_of("a"))]() mutable { target.append("b"); });
     }},
    {"file::append, nothing",
     [](endless_loop& again) {
       again([target = file(file_of("a"))]() mutable { target.append(""); });
     }},
    {"file::size",
     [](endless_loop& again) {
       again([directory_file = file(file_of("a"))] { directory_file.size(); });
     }},
    {"file::resize",
     [](endless_loop& again) {
       again([directory_file = file(file_of("a"))]() mutable { directory_file.resize(0); });
     }},
    {"file::sync",
     [](endless_loop& again) {
       again([directory_file = file(file_of("a"))]() mutable { directory_file.sync(); });
     }},
    {"file::sync_data",
     [](endless_loop& again) {
       again([directory_file = file(file_of("a"))]() mutable { directory_file.sync_data(); });
     }},
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
       directory_walk source("/proc/self/fd", {.max_depth = 0});
       again([&] { source.next(); });
     }},
    {"directory_walk::begin",
     [](endless_loop& again) {
       directory_walk source("/proc/self/fd", {.max_depth = 0});
       while (source.next()) {
       }
       again([&] { source.begin(); });
     }},
    {"file_watch::file_watch", [](endless_loop& again) { again([] { file_watch("/tmp"); }); }},
    {"file_watch::watch",
     [](endless_loop& again) {
       file_watch changes;
       again([&] { changes.watch("/tmp"); });
     }},
    {"file_watch::next",
     [](endless_loop& again) {
       file_watch watch;
       again([&] { watch.next(); });
     }},
    {"file_watch::begin",
     [](endless_loop& again) {
       file_watch watch;
       again([&] { watch.begin(); });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
