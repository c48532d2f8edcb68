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
  const fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::ftruncate(file.get(), static_cast<off_t>(size)) == 0);
}

/// Some files in each of `width` directories, in each of which are as many, `depth` levels deep.
void make_tree(const std::string& root, int width, int depth, int files) {
  for (int i = 0; i < files; ++i)
    write_file(root + "/file" + std::to_string(i), static_cast<std::size_t>(i * 1'000));
  for (int i = 0; i < width && depth > 0; ++i) {
    const std::string path = root + "/directory" + std::to_string(i);
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    make_tree(path, width, depth - 1, files);
  }
}

listing listed(directory_walk walk, const std::string& root) {
  listing entries;
  for (const walk_entry& entry : walk) {
    REQUIRE(entry.path.starts_with(root + "/"));
    CHECK(entry.path.ends_with(entry.name));
    const std::string name(entry.path.substr(root.size() + 1));
    CHECK(entries.emplace(name, seen{entry.type, entry.size, entry.depth}).second);
    CHECK((entry.depth == 0 || entries.contains(fs::path(name).parent_path())));
  }
  return entries;
}

/// What std::filesystem and lstat(2) find.
listing expected(const std::string& root) {
  listing entries;
  for (auto position = fs::recursive_directory_iterator(root); position != fs::end(position);
       ++position) {
    struct stat about{};
    REQUIRE(::lstat(position->path().c_str(), &about) == 0);
    entries.emplace(position->path().lexically_relative(root).string(),
                    seen{static_cast<unsigned char>(IFTODT(about.st_mode)),
                         static_cast<std::uint64_t>(about.st_size),
                         static_cast<std::size_t>(position.depth())});
  }
  return entries;
}

std::set<std::string> names_of(directory_walk walk) {
  std::set<std::string> entries;
  for (const walk_entry& entry : walk) entries.emplace(entry.name);
  return entries;
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

TEST_CASE("directory_walk lists types, sizes and depths, a directory before its contents",
          "[directory_walk]") {
  run([] {
    const scratch_directory root;
    CHECK(listed(directory_walk(root.name()), root.name()).empty());
    make_tree(root.name(), 3, 3, 4);
    REQUIRE(::symlinkat("file1", root.get(), "link") == 0);
    REQUIRE(::symlinkat("..", root.get(), "circle") == 0);
    REQUIRE(::mkfifoat(root.get(), "fifo", 0600) == 0);
    const listing tree = expected(root.name());
    CHECK(listed(directory_walk(root.name()), root.name()) == tree);
    CHECK(tree.at("circle") == seen{DT_LNK, 2, 0});
    CHECK(tree.at("directory0/file3") == seen{DT_REG, 3'000, 1});
    REQUIRE(tree.size() == 4 * 40 + 39 + 3);
  });
}

TEST_CASE("walk_options::max_depth limits the levels of a directory_walk", "[directory_walk]") {
  run([] {
    const scratch_directory root;
    make_tree(root.name(), 2, 3, 1);
    const listing tree = expected(root.name());
    for (std::size_t depth = 0; depth < 5; ++depth) {
      listing shallow = tree;
      std::erase_if(shallow, [&](const auto& entry) { return entry.second.depth > depth; });
      CHECK(listed(directory_walk(root.name(), {.max_depth = depth}), root.name()) == shallow);
    }
  });
}

TEST_CASE("directory_walk follows a symbolic link or a slash in its own path only",
          "[directory_walk]") {
  run([] {
    const scratch_directory root;
    REQUIRE(::mkdirat(root.get(), "target", 0700) == 0);
    make_tree(root.name() + "/target", 0, 0, 3);
    REQUIRE(::symlinkat("target", root.get(), "link") == 0);
    const std::string link = root.name() + "/link";
    CHECK(listed(directory_walk(link), link) == expected(root.name() + "/target"));
    CHECK(listed(directory_walk(link + "/"), link).size() == 3);
    CHECK(directory_walk("/", {.max_depth = 0}).next()->path.rfind('/') == 0);
  });
}

TEST_CASE("directory_walk lets other fibers run while a large tree is walked", "[directory_walk]") {
  run([] {
    const scratch_directory root;
    make_tree(root.name(), 3, 2, 200);
    int turns = 0;
    bool done = false;
    auto counter = spin([&] {
      while (!done) {
        ++turns;
        snooze();
      }
    });
    CHECK(listed(directory_walk(root.name()), root.name()).size() == 200 * 13 + 12);
    done = true;
    counter.await();
    CHECK(turns > 3);
  });
}

TEST_CASE("directory_walk goes on after an interruption, and leaves out no entry",
          "[directory_walk]") {
  run([] {
    const scratch_directory root;
    make_tree(root.name(), 2, 3, 100);
    directory_walk walk(root.name());
    std::vector<std::string> paths;
    const int interruptions = testing::read_while_interrupted([&] {
      const auto entry = walk.next();
      if (entry) paths.emplace_back(entry->path);
      return entry.has_value();
    });
    CHECK(paths.size() == 15 * 100 + 14);
    CHECK(std::set<std::string>(paths.begin(), paths.end()).size() == paths.size());
    CHECK(interruptions > 0);
  });
}

TEST_CASE("directory_walk does not follow links that replace directories meanwhile",
          "[directory_walk]") {
  run([] {
    const scratch_directory elsewhere;
    write_file(elsewhere.name() + "/secret", 1);
    const scratch_directory root;
    make_tree(root.name(), 4, 2, 100);
    std::set<std::string> replaced;
    directory_walk walk(root.name());
    while (auto entry = walk.next()) {
      CHECK(entry->name != "secret");
      const std::string path(entry->path);
      if (entry->type != DT_DIR || replaced.contains(fs::path(path).parent_path())) continue;
      fs::remove_all(path);
      fs::create_symlink(elsewhere.name(), path);
      replaced.insert(path);
    }
    CHECK_FALSE(walk.next());
    CHECK(replaced.size() == 4);
    CHECK(fs::exists(elsewhere.name() + "/secret"));
  });
}

TEST_CASE("directory_walk throws for a directory that it may not enter, and goes on",
          "[directory_walk]") {
  run([] {
    const scratch_directory root;
    make_tree(root.name(), 3, 2, 2);
    const listing tree = expected(root.name());
    for (const auto& [name, entry] : tree) ::chmod((root.name() + "/" + name).c_str(), 0755);
    ::chmod(root.name().c_str(), 0755);
    const std::string secret = root.name() + "/directory1";
    ::chmod(secret.c_str(), 0000);
    listing rest = tree;
    std::erase_if(rest, [](const auto& entry) { return entry.first.starts_with("directory1/"); });

    std::vector<std::string> refusals;
    std::set<std::string> names;
    {
      const unprivileged process;
      if (!process.can_reach(root.name())) return;
      directory_walk walk(root.name());
      for (bool has_more = true; has_more;) {
        try {
          const auto entry = walk.next();
          has_more = entry.has_value();
          if (has_more) names.emplace(entry->path.substr(root.name().size() + 1));
        } catch (const std::system_error& error) {
          CHECK(error.code() == std::errc::permission_denied);
          refusals.emplace_back(error.what());
        }
      }
    }
    ::chmod(secret.c_str(), 0755);
    REQUIRE(refusals.size() == 1);
    CHECK(refusals[0] == "openat of \"" + secret + "\": Permission denied");
    CHECK(names.contains("directory1"));
    CHECK(names.size() == rest.size());
  });
}

TEST_CASE("directory_walk throws an error with the name of what is no directory",
          "[directory_walk]") {
  run([] {
    const scratch_directory root;
    make_tree(root.name(), 0, 0, 1);
    const std::string path = root.name() + "/gone";
    CHECK_THROWS_WITH(directory_walk(path), Catch::Contains("\"" + path + "\""));
    CHECK(error_of([&] { directory_walk{path}; }) == std::errc::no_such_file_or_directory);
    CHECK(error_of([&] { directory_walk(root.name() + "/file0"); }) == std::errc::not_a_directory);
    CHECK(error_of([&] { directory_walk(""); }) == std::errc::no_such_file_or_directory);
    CHECK_THROWS_AS(directory_walk(std::string_view("a\0b", 3)), std::invalid_argument);
    directory_walk walk(root.name());
    directory_walk target = std::move(walk);
    CHECK(error_of([&] { walk.next(); }) == std::errc::bad_file_descriptor);
    CHECK(names_of(std::move(target)) == std::set<std::string>{"file0"});
  });
}
