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

void make_files(const scratch_directory& root, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string name = "file" + std::to_string(i);
    fd(::openat(root.get(), name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
}

std::set<std::string> names_in(directory range) {
  std::set<std::string> names;
  for (const directory_entry& entry : range) CHECK(names.emplace(entry.name).second);
  return names;
}

}  // namespace

TEST_CASE("directory is a range of the names in it", "[directory]") {
  run([] {
    const scratch_directory root;
    CHECK(names_in(directory(root.name())).empty());
    make_files(root, 3);
    REQUIRE(::mkdirat(root.get(), "below", 0700) == 0);
    REQUIRE(::symlinkat("file0", root.get(), "link") == 0);
    CHECK(names_in(directory(root.name())) ==
          std::set<std::string>{"below", "file0", "file1", "file2", "link"});
    for (const directory_entry& entry : directory(root.name())) {
      if (entry.type == DT_UNKNOWN) continue;
      CHECK(entry.type == (entry.name == "below"  ? DT_DIR
                           : entry.name == "link" ? DT_LNK
                                                  : DT_REG));
    }
  });
}

TEST_CASE("directory reads a large directory page by page, while other fibers run", "[directory]") {
  run([] {
    const scratch_directory root;
    const int files = static_cast<int>(testing::scaled(100'000, 3'000));
    make_files(root, files);
    int turns = 0;
    bool done = false;
    auto counter = spin([&] {
      while (!done) {
        ++turns;
        snooze();
      }
    });
    CHECK(names_in(directory(root.name())).size() == static_cast<std::size_t>(files));
    done = true;
    counter.await();
    CHECK(turns > 3);
  });
}

TEST_CASE("directory::next() allows names to be removed while it reads", "[directory]") {
  run([] {
    const scratch_directory root;
    make_files(root, 2'000);
    directory listing(root.name());
    while (auto entry = listing.next()) {
      io::unlinkat(listing.native_handle(), std::string(entry->name).c_str());
    }
    CHECK(std::filesystem::is_empty(root.name()));
    CHECK_FALSE(listing.next());
  });
}

TEST_CASE("directory::next() leaves out no name when it is interrupted", "[directory]") {
  run([] {
    const scratch_directory root;
    make_files(root, 1'500);
    directory listing(root.name());
    std::set<std::string> names;
    const int interruptions = testing::read_while_interrupted([&] {
      const auto entry = listing.next();
      if (entry) names.emplace(entry->name);
      return entry.has_value();
    });
    CHECK(names.size() == 1'500);
    CHECK(interruptions > 0);
  });
}

TEST_CASE("directory throws for what is no directory", "[directory]") {
  run([] {
    const scratch_directory root;
    make_files(root, 1);
    CHECK(error_of([&] { directory(root.name() + "/gone"); }) ==
          std::errc::no_such_file_or_directory);
    CHECK(error_of([&] { directory(root.name() + "/file0"); }) == std::errc::not_a_directory);
    CHECK_THROWS_AS(directory(std::string_view("a\0b", 3)), std::invalid_argument);
    CHECK(error_of([&] { directory(fd()).next(); }) == std::errc::bad_file_descriptor);
    const auto pipe = testing::make_pipe();
    directory odd((fd(::dup(pipe.first()))));
    CHECK(error_of([&] { odd.next(); }) == std::errc::not_a_directory);
    directory target = std::move(odd);
    CHECK(target.native_handle() >= 0);
    CHECK(odd.native_handle() == -1);
    CHECK(error_of([&] { odd.next(); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("directory::next() returns nothing for a removed directory", "[directory]") {
  run([] {
    const scratch_directory root;
    REQUIRE(::mkdirat(root.get(), "below", 0700) == 0);
    directory inner(root.name() + "/below");
    REQUIRE(::unlinkat(root.get(), "below", AT_REMOVEDIR) == 0);
    CHECK_FALSE(inner.next());
  });
}
