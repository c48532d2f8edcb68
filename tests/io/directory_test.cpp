// SPDX-License-Identifier: MIT
// The names in a directory.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <motet/motet.hpp>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/interrupted.hpp"
#include "io/scratch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using testing::error_of;
using testing::scratch_directory;

namespace {

void make_files(const scratch_directory& in, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string name = "file" + std::to_string(i);
    fd(::openat(in.get(), name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
}

std::set<std::string> names_in(directory from) {
  std::set<std::string> found;
  for (const directory_entry& each : from) CHECK(found.emplace(each.name).second);
  return found;
}

}  // namespace

TEST_CASE("a directory is a range of its names", "[directory]") {
  run([] {
    const scratch_directory in;
    CHECK(names_in(directory(in.name())).empty());
    make_files(in, 3);
    REQUIRE(::mkdirat(in.get(), "below", 0700) == 0);
    REQUIRE(::symlinkat("file0", in.get(), "link") == 0);
    CHECK(names_in(directory(in.name())) ==
          std::set<std::string>{"below", "file0", "file1", "file2", "link"});
    for (const directory_entry& each : directory(in.name())) {
      if (each.type == DT_UNKNOWN) continue;
      CHECK(each.type == (each.name == "below" ? DT_DIR : each.name == "link" ? DT_LNK : DT_REG));
    }
  });
}

TEST_CASE("a large directory is read page by page, while other fibers run", "[directory]") {
  run([] {
    const scratch_directory in;
    const int files = static_cast<int>(testing::scaled(100'000, 3'000));
    make_files(in, files);
    int turns = 0;
    bool over = false;
    auto other = spin([&] {
      while (!over) {
        ++turns;
        snooze();
      }
    });
    CHECK(names_in(directory(in.name())).size() == static_cast<std::size_t>(files));
    over = true;
    other.await();
    CHECK(turns > 3);
  });
}

TEST_CASE("what is in a directory can be taken away while it is read", "[directory]") {
  run([] {
    const scratch_directory in;
    make_files(in, 2'000);
    directory all(in.name());
    while (auto each = all.next()) {
      io::unlinkat(all.native_handle(), std::string(each->name).c_str());
    }
    CHECK(std::filesystem::is_empty(in.name()));
    CHECK_FALSE(all.next());
  });
}

TEST_CASE("an interruption leaves out no name", "[directory]") {
  run([] {
    const scratch_directory in;
    make_files(in, 1'500);
    directory all(in.name());
    std::set<std::string> found;
    const int interruptions = testing::read_while_interrupted([&] {
      const auto each = all.next();
      if (each) found.emplace(each->name);
      return each.has_value();
    });
    CHECK(found.size() == 1'500);
    CHECK(interruptions > 0);
  });
}

TEST_CASE("what is no directory is told by its name", "[directory]") {
  run([] {
    const scratch_directory in;
    make_files(in, 1);
    CHECK(error_of([&] { directory(in.name() + "/gone"); }) ==
          std::errc::no_such_file_or_directory);
    CHECK(error_of([&] { directory(in.name() + "/file0"); }) == std::errc::not_a_directory);
    CHECK_THROWS_AS(directory(std::string_view("a\0b", 3)), std::invalid_argument);
    CHECK(error_of([&] { directory(fd()).next(); }) == std::errc::bad_file_descriptor);
    const auto pipe = testing::make_pipe();
    directory odd((fd(::dup(pipe.first()))));
    CHECK(error_of([&] { odd.next(); }) == std::errc::not_a_directory);
    directory taken = std::move(odd);
    CHECK(taken.native_handle() >= 0);
    CHECK(odd.native_handle() == -1);
    CHECK(error_of([&] { odd.next(); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a directory that has been taken away has no names", "[directory]") {
  run([] {
    const scratch_directory in;
    REQUIRE(::mkdirat(in.get(), "below", 0700) == 0);
    directory below(in.name() + "/below");
    REQUIRE(::unlinkat(in.get(), "below", AT_REMOVEDIR) == 0);
    CHECK_FALSE(below.next());
  });
}
