// SPDX-License-Identifier: MIT
// Changes of files, as a range.
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::error_of;
using testing::scratch_directory;
using testing::until_waiting;

namespace {

/// Not a switchpoint.
void append(const std::string& path, std::string_view text) {
  const fd to(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  REQUIRE(::write(to.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

/// What has happened, as text: the name of the file behind `in`, and a letter for each event.
std::string told(const file_event& event, const scratch_directory& in) {
  constexpr std::pair<std::uint32_t, char> letters[] = {
      {IN_MODIFY, 'm'},     {IN_ATTRIB, 'a'},     {IN_CREATE, 'c'}, {IN_DELETE, 'd'},
      {IN_MOVED_FROM, '<'}, {IN_MOVED_TO, '>'},   {IN_ISDIR, '/'},  {IN_DELETE_SELF, 'D'},
      {IN_MOVE_SELF, 'M'},  {IN_Q_OVERFLOW, '?'},
  };
  std::string text = event.path.substr(std::min(event.path.size(), in.name().size())) + " ";
  for (const auto& [mask, letter] : letters) {
    if ((event.what & mask) != 0) text += letter;
  }
  return text;
}

/// Returns: how many events the kernel keeps; nothing if these are too many for a quick test.
std::optional<std::size_t> kept_events() {
  file limit = file::open("/proc/sys/fs/inotify/max_queued_events");
  std::byte text[16];
  const std::size_t most = std::stoul(testing::text_of(std::span(text).first(limit.read(text))));
  return most > 100'000 ? std::nullopt : std::optional(most);
}

/// Writes to two watched files until more than `most` events have come.
void overflow(const fd& one, const fd& two, std::size_t most) {
  for (std::size_t i = 0; i < most / 2 + 10; ++i) {  // by turns: the same event twice is one
    REQUIRE(::pwrite(one.get(), "x", 1, 0) == 1);
    REQUIRE(::pwrite(two.get(), "x", 1, 0) == 1);
  }
}

}  // namespace

TEST_CASE("what happens in a directory is told in order", "[file_watch]") {
  run([] {
    const scratch_directory in;
    file_watch changes(in.name());
    append(in.name() + "/one", "text");
    ::mkdir((in.name() + "/two").c_str(), 0700);
    ::rename((in.name() + "/one").c_str(), (in.name() + "/three").c_str());
    ::unlink((in.name() + "/three").c_str());
    std::vector<std::string> all;
    std::vector<std::uint32_t> cookies;
    for (const file_event& each : changes) {
      all.push_back(told(each, in));
      if (each.cookie != 0) cookies.push_back(each.cookie);
      if (all.size() == 6) break;
    }
    CHECK(all == std::vector<std::string>{"/one c", "/one m", "/two c/", "/one <", "/three >",
                                          "/three d"});
    REQUIRE(cookies.size() == 2);
    CHECK(cookies[0] == cookies[1]);
  });
}

TEST_CASE("a fiber waits for a change, and others run", "[file_watch]") {
  run([] {
    const scratch_directory in;
    const std::string path = in.name() + "/file";
    append(path, "begin");
    file_watch changes(path, IN_MODIFY);
    CHECK_FALSE(move_on_after(5ms, [&] { changes.next(); }));
    auto waiting = spin([&] { return changes.next(); });
    until_waiting(waiting);
    append(path, "more");
    CHECK(told(*waiting.await(), in) == "/file m");

    // What comes while a wait is interrupted is kept.
    auto interrupted = spin([&] { changes.next(); });
    until_waiting(interrupted);
    append(path, "more");
    interrupted.cancel();
    CHECK_THROWS_AS(interrupted.await(), fiber_cancelled);
    CHECK(told(*changes.next(), in) == "/file m");
  });
}

TEST_CASE("the range ends when nothing is left to watch", "[file_watch]") {
  run([] {
    CHECK_FALSE(file_watch().next().has_value());
    const scratch_directory in;
    const std::string first = in.name() + "/first";
    const std::string second = in.name() + "/second";
    append(first, "");
    append(second, "");
    file_watch changes;
    changes.watch(first);
    changes.watch(second);
    auto all = spin([&] {
      std::string text;
      for (const file_event& each : changes) text += told(each, in) + ", ";
      return text;
    });
    until_waiting(all);
    CHECK(changes.ignore(second));
    CHECK_FALSE(changes.ignore("second"));
    append(second, "is not told");
    ::unlink(first.c_str());
    CHECK(all.await() == "/first a, /first D, ");  // its number of links has changed
  });
}

TEST_CASE("a file is watched by its newest path, for the newest events", "[file_watch]") {
  run([] {
    const scratch_directory in;
    const std::string path = in.name() + "/file";
    append(path, "");
    file_watch changes(path, IN_ATTRIB);
    changes.watch(in.name() + "/./file", IN_MODIFY);
    ::chmod(path.c_str(), 0600);
    append(path, "text");
    CHECK(told(*changes.next(), in) == "/./file m");
  });
}

TEST_CASE("a path that is watched anew can be ignored anew", "[file_watch]") {
  run([] {
    const scratch_directory in;
    const std::string path = in.name() + "/file";
    append(path, "");
    file_watch changes;
    for (int i = 0; i < 2; ++i) {
      changes.watch(path, IN_MODIFY);
      CHECK(changes.ignore(path));
      CHECK_FALSE(changes.ignore(path));
    }
    append(path, "is not told");
    CHECK_FALSE(changes.next().has_value());
  });
}

TEST_CASE("a path whose file is a new one is ignored with its new file", "[file_watch]") {
  run([] {
    const scratch_directory in;
    const std::string path = in.name() + "/file";
    append(path, "");
    file_watch changes(path, IN_MODIFY);
    ::unlink(path.c_str());
    append(path, "");
    changes.watch(path, IN_MODIFY);
    CHECK(changes.ignore(path));
    append(path, "is not told");
    changes.watch(path, IN_MODIFY);
    ::unlink(path.c_str());
    CHECK_FALSE(changes.ignore(path));  // the kernel watches it no longer
    CHECK_FALSE(changes.next().has_value());
  });
}

TEST_CASE("a change in a file that is being added to the watch is not lost", "[file_watch]") {
  run([] {
    const scratch_directory in;
    const std::string busy = in.name() + "/busy";
    append(busy, "");
    file_watch changes(in.name(), IN_CREATE);
    auto first = spin([&] { return changes.next(); });
    until_waiting(first);
    auto adding = spin([&] { changes.watch(busy, IN_MODIFY); });
    until_waiting(adding);
    append(busy, "more");
    adding.await();
    append(busy, "more");
    CHECK(told(*first.await(), in) == "/busy m");
  });
}

TEST_CASE("what cannot be watched is refused by name", "[file_watch]") {
  run([] {
    file_watch changes;
    CHECK(error_of([&] { changes.watch("/missing/file"); }) ==
          std::errc::no_such_file_or_directory);
    CHECK_THROWS_WITH(changes.watch("/missing/file"), Catch::Contains("/missing/file"));
    CHECK_THROWS_AS(changes.watch(std::string_view("a\0b", 3)), std::invalid_argument);
    CHECK(error_of([&] { changes.watch("/", 0); }) == std::errc::invalid_argument);
    file_watch moved = std::move(changes);
    CHECK(error_of([&] { changes.next(); }) == std::errc::bad_file_descriptor);
    CHECK(changes.native_handle() == -1);
    CHECK(moved.native_handle() >= 0);
  });
}

TEST_CASE("a watch that is left behind says so", "[file_watch]") {
  run([] {
    const scratch_directory in;
    const fd one(::open((in.name() + "/one").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const fd two(::open((in.name() + "/two").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    file_watch changes(in.name(), IN_MODIFY);
    const std::optional<std::size_t> most = kept_events();
    if (!most) return;
    overflow(one, two, *most);
    std::size_t count = 0;
    for (const file_event& each : changes) {
      if (told(each, in) == " ?") break;
      ++count;
    }
    CHECK(count == *most);
  });
}

TEST_CASE("a watch that is left behind ends when nothing is left to watch", "[file_watch]") {
  run([] {
    const scratch_directory in;
    const std::string names[] = {in.name() + "/one", in.name() + "/two", in.name() + "/three"};
    fd one(::open(names[0].c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    fd two(::open(names[1].c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    append(names[2], "");
    file_watch changes;
    for (const std::string& each : names) changes.watch(each, IN_MODIFY);
    const std::optional<std::size_t> most = kept_events();
    if (!most) return;
    overflow(one, two, *most);
    // The kernel keeps no event of the end of these two.
    one.close();
    CHECK(::unlink(names[0].c_str()) == 0);
    CHECK(changes.ignore(names[1]));
    while (told(changes.next().value(), in) != " ?") {
    }
    append(names[2], "is watched as before");
    CHECK(told(changes.next().value(), in) == "/three m");
    CHECK(changes.ignore(names[2]));
    std::optional<file_event> more;
    CHECK(move_on_after(1s, [&] { more = changes.next(); }));
    CHECK_FALSE(more.has_value());
  });
}
