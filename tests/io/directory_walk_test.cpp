// SPDX-License-Identifier: MIT
// The entries of a tree of directories, with their sizes.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <motet/motet.hpp>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/interrupted.hpp"
#include "io/scratch.hpp"
#include "support.hpp"

using namespace motet;
using testing::error_of;
using testing::scratch_directory;

namespace fs = std::filesystem;

namespace {

/// One entry, with the path below the walk's own.
struct seen {
  unsigned char type;
  std::uint64_t size;
  std::size_t depth;
  bool operator==(const seen&) const = default;
};
using listing = std::map<std::string, seen>;

void write_file(const std::string& path, std::size_t size) {
  const fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::ftruncate(made.get(), static_cast<off_t>(size)) == 0);
}

/// Some files in each of `width` directories, in each of which are as many, `depth` levels deep.
void make_tree(const std::string& root, int width, int depth, int files) {
  for (int i = 0; i < files; ++i)
    write_file(root + "/file" + std::to_string(i), static_cast<std::size_t>(i * 1'000));
  for (int i = 0; i < width && depth > 0; ++i) {
    const std::string below = root + "/directory" + std::to_string(i);
    REQUIRE(::mkdir(below.c_str(), 0700) == 0);
    make_tree(below, width, depth - 1, files);
  }
}

listing listed(directory_walk from, const std::string& root) {
  listing found;
  for (const walk_entry& each : from) {
    REQUIRE(each.path.starts_with(root + "/"));
    CHECK(each.path.ends_with(each.name));
    const std::string name(each.path.substr(root.size() + 1));
    CHECK(found.emplace(name, seen{each.type, each.size, each.depth}).second);
    CHECK((each.depth == 0 || found.contains(fs::path(name).parent_path())));
  }
  return found;
}

/// What std::filesystem and lstat(2) find.
listing expected(const std::string& root) {
  listing found;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::end(at); ++at) {
    struct stat about{};
    REQUIRE(::lstat(at->path().c_str(), &about) == 0);
    found.emplace(
        at->path().lexically_relative(root).string(),
        seen{static_cast<unsigned char>(IFTODT(about.st_mode)),
             static_cast<std::uint64_t>(about.st_size), static_cast<std::size_t>(at.depth())});
  }
  return found;
}

std::set<std::string> names_of(directory_walk from) {
  std::set<std::string> found;
  for (const walk_entry& each : from) found.emplace(each.name);
  return found;
}

/// Without the rights of root, whom no permission stops, while it lives.
class unprivileged {
 public:
  unprivileged() {
    if (::geteuid() == 0) ::seteuid(65'534);
  }
  /// Where there are no other users, or others may not come so far, nothing can be tried.
  bool can_reach(const std::string& path) const {
    return ::geteuid() != 0 && ::faccessat(AT_FDCWD, path.c_str(), R_OK | X_OK, AT_EACCESS) == 0;
  }
  unprivileged(const unprivileged&) = delete;
  unprivileged& operator=(const unprivileged&) = delete;
  ~unprivileged() { ::seteuid(::getuid()); }
};

}  // namespace

TEST_CASE("a walk lists a tree with types, sizes and depths, a directory before its contents",
          "[directory_walk]") {
  run([] {
    const scratch_directory in;
    CHECK(listed(directory_walk(in.name()), in.name()).empty());
    make_tree(in.name(), 3, 3, 4);
    REQUIRE(::symlinkat("file1", in.get(), "link") == 0);
    REQUIRE(::symlinkat("..", in.get(), "circle") == 0);
    REQUIRE(::mkfifoat(in.get(), "fifo", 0600) == 0);
    const listing all = expected(in.name());
    CHECK(listed(directory_walk(in.name()), in.name()) == all);
    CHECK(all.at("circle") == seen{DT_LNK, 2, 0});
    CHECK(all.at("directory0/file3") == seen{DT_REG, 3'000, 1});
    REQUIRE(all.size() == 4 * 40 + 39 + 3);
  });
}

TEST_CASE("a walk enters as many levels as max_depth allows", "[directory_walk]") {
  run([] {
    const scratch_directory in;
    make_tree(in.name(), 2, 3, 1);
    const listing all = expected(in.name());
    for (std::size_t depth = 0; depth < 5; ++depth) {
      listing shallow = all;
      std::erase_if(shallow, [&](const auto& each) { return each.second.depth > depth; });
      CHECK(listed(directory_walk(in.name(), {.max_depth = depth}), in.name()) == shallow);
    }
  });
}

TEST_CASE("only the walk's own path may be a symbolic link, or end in a slash",
          "[directory_walk]") {
  run([] {
    const scratch_directory in;
    REQUIRE(::mkdirat(in.get(), "target", 0700) == 0);
    make_tree(in.name() + "/target", 0, 0, 3);
    REQUIRE(::symlinkat("target", in.get(), "link") == 0);
    const std::string link = in.name() + "/link";
    CHECK(listed(directory_walk(link), link) == expected(in.name() + "/target"));
    CHECK(listed(directory_walk(link + "/"), link).size() == 3);
    CHECK(directory_walk("/", {.max_depth = 0}).next()->path.rfind('/') == 0);
  });
}

TEST_CASE("other fibers run while a large tree is walked", "[directory_walk]") {
  run([] {
    const scratch_directory in;
    make_tree(in.name(), 3, 2, 200);
    int turns = 0;
    bool over = false;
    auto other = spin([&] {
      while (!over) {
        ++turns;
        snooze();
      }
    });
    CHECK(listed(directory_walk(in.name()), in.name()).size() == 200 * 13 + 12);
    over = true;
    other.await();
    CHECK(turns > 3);
  });
}

TEST_CASE("an interrupted walk goes on and leaves out no entry", "[directory_walk]") {
  run([] {
    const scratch_directory in;
    make_tree(in.name(), 2, 3, 100);
    directory_walk all(in.name());
    std::vector<std::string> found;
    const int interruptions = testing::read_while_interrupted([&] {
      const auto each = all.next();
      if (each) found.emplace_back(each->path);
      return each.has_value();
    });
    CHECK(found.size() == 15 * 100 + 14);
    CHECK(std::set<std::string>(found.begin(), found.end()).size() == found.size());
    CHECK(interruptions > 0);
  });
}

TEST_CASE("directories may be replaced by links during a walk, which does not follow them",
          "[directory_walk]") {
  run([] {
    const scratch_directory elsewhere;
    write_file(elsewhere.name() + "/secret", 1);
    const scratch_directory in;
    make_tree(in.name(), 4, 2, 100);
    std::set<std::string> replaced;
    directory_walk all(in.name());
    while (auto each = all.next()) {
      CHECK(each->name != "secret");
      const std::string path(each->path);
      if (each->type != DT_DIR || replaced.contains(fs::path(path).parent_path())) continue;
      fs::remove_all(path);
      fs::create_symlink(elsewhere.name(), path);
      replaced.insert(path);
    }
    CHECK_FALSE(all.next());
    CHECK(replaced.size() == 4);
    CHECK(fs::exists(elsewhere.name() + "/secret"));
  });
}

TEST_CASE("a walk throws for a directory that it may not enter and goes on behind it",
          "[directory_walk]") {
  run([] {
    const scratch_directory in;
    make_tree(in.name(), 3, 2, 2);
    const listing all = expected(in.name());
    for (const auto& [name, each] : all) ::chmod((in.name() + "/" + name).c_str(), 0755);
    ::chmod(in.name().c_str(), 0755);
    const std::string secret = in.name() + "/directory1";
    ::chmod(secret.c_str(), 0000);
    listing rest = all;
    std::erase_if(rest, [](const auto& each) { return each.first.starts_with("directory1/"); });

    std::vector<std::string> refusals;
    std::set<std::string> found;
    {
      const unprivileged process;
      if (!process.can_reach(in.name())) return;
      directory_walk from(in.name());
      for (bool more = true; more;) {
        try {
          const auto each = from.next();
          more = each.has_value();
          if (more) found.emplace(each->path.substr(in.name().size() + 1));
        } catch (const std::system_error& error) {
          CHECK(error.code() == std::errc::permission_denied);
          refusals.emplace_back(error.what());
        }
      }
    }
    ::chmod(secret.c_str(), 0755);
    REQUIRE(refusals.size() == 1);
    CHECK(refusals[0] == "openat of \"" + secret + "\": Permission denied");
    CHECK(found.contains("directory1"));
    CHECK(found.size() == rest.size());
  });
}

TEST_CASE("a walk of what is no directory throws an error that names it", "[directory_walk]") {
  run([] {
    const scratch_directory in;
    make_tree(in.name(), 0, 0, 1);
    const std::string gone = in.name() + "/gone";
    CHECK_THROWS_WITH(directory_walk(gone), Catch::Contains("\"" + gone + "\""));
    CHECK(error_of([&] { directory_walk{gone}; }) == std::errc::no_such_file_or_directory);
    CHECK(error_of([&] { directory_walk(in.name() + "/file0"); }) == std::errc::not_a_directory);
    CHECK(error_of([&] { directory_walk(""); }) == std::errc::no_such_file_or_directory);
    CHECK_THROWS_AS(directory_walk(std::string_view("a\0b", 3)), std::invalid_argument);
    directory_walk from(in.name());
    directory_walk moved = std::move(from);
    CHECK(error_of([&] { from.next(); }) == std::errc::bad_file_descriptor);
    CHECK(names_of(std::move(moved)) == std::set<std::string>{"file0"});
  });
}
