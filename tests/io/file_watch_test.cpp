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
  const fd target(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  REQUIRE(::write(target.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

/// What has happened, as text: the name of the file behind `in`, and a letter for each event.
std::string told(const file_event& event, const scratch_directory& root) {
  constexpr std::pair<std::uint32_t, char> letters[] = {
      {IN_MODIFY, 'm'},     {IN_ATTRIB, 'a'},     {IN_CREATE, 'c'}, {IN_DELETE, 'd'},
      {IN_MOVED_FROM, '<'}, {IN_MOVED_TO, '>'},   {IN_ISDIR, '/'},  {IN_DELETE_SELF, 'D'},
      {IN_MOVE_SELF, 'M'},  {IN_Q_OVERFLOW, '?'},
  };
  std::string text = event.path.substr(std::min(event.path.size(), root.name().size())) + " ";
  for (const auto& [mask, letter] : letters) {
    if ((event.what & mask) != 0) text += letter;
  }
  return text;
}

/// Returns: how many events the kernel keeps; nothing if these are too many for a quick test.
std::optional<std::size_t> kept_events() {
  file limit = file::open("/proc/sys/fs/inotify/max_queued_events");
  std::byte text[16];
  const std::size_t count = std::stoul(testing::text_of(std::span(text).first(limit.read(text))));
  return count > 100'000 ? std::nullopt : std::optional(count);
}

/// Writes to two watched files until more than `limit` events have come.
void overflow(const fd& first, const fd& second, std::size_t limit) {
  for (std::size_t i = 0; i < limit / 2 + 10; ++i) {  // by turns: the same event twice is one
    REQUIRE(::pwrite(first.get(), "x", 1, 0) == 1);
    REQUIRE(::pwrite(second.get(), "x", 1, 0) == 1);
  }
}

}  // namespace

TEST_CASE("file_watch::next() returns the changes in a directory in order", "[file_watch]") {
  run([] {
    const scratch_directory root;
    file_watch changes(root.name());
    append(root.name() + "/one", "text");
    ::mkdir((root.name() + "/two").c_str(), 0700);
    ::rename((root.name() + "/one").c_str(), (root.name() + "/three").c_str());
    ::unlink((root.name() + "/three").c_str());
    std::vector<std::string> texts;
    std::vector<std::uint32_t> cookies;
    for (const file_event& event : changes) {
      texts.push_back(told(event, root));
      if (event.cookie != 0) cookies.push_back(event.cookie);
      if (texts.size() == 6) break;
    }
    CHECK(texts == std::vector<std::string>{"/one c", "/one m", "/two c/", "/one <", "/three >",
                                            "/three d"});
    REQUIRE(cookies.size() == 2);
    CHECK(cookies[0] == cookies[1]);
  });
}

TEST_CASE("file_watch::next() waits for a change while other fibers run", "[file_watch]") {
  run([] {
    const scratch_directory root;
    const std::string path = root.name() + "/file";
    append(path, "begin");
    file_watch changes(path, IN_MODIFY);
    CHECK_FALSE(move_on_after(5ms, [&] { changes.next(); }));
    auto waiter = spin([&] { return changes.next(); });
    until_waiting(waiter);
    append(path, "more");
    CHECK(told(*waiter.await(), root) == "/file m");

    // What comes while a wait is interrupted is kept.
    auto second = spin([&] { changes.next(); });
    until_waiting(second);
    append(path, "more");
    second.cancel();
    CHECK_THROWS_AS(second.await(), fiber_cancelled);
    CHECK(told(*changes.next(), root) == "/file m");
  });
}

TEST_CASE("file_watch ends its range when nothing is left to watch", "[file_watch]") {
  run([] {
    CHECK_FALSE(file_watch().next().has_value());
    const scratch_directory root;
    const std::string first = root.name() + "/first";
    const std::string second = root.name() + "/second";
    append(first, "");
    append(second, "");
    file_watch changes;
    changes.watch(first);
    changes.watch(second);
    auto reader = spin([&] {
      std::string text;
      for (const file_event& event : changes) text += told(event, root) + ", ";
      return text;
    });
    until_waiting(reader);
    CHECK(changes.ignore(second));
    CHECK_FALSE(changes.ignore("second"));
    append(second, "is not told");
    ::unlink(first.c_str());
    CHECK(reader.await() == "/first a, /first D, ");  // its number of links has changed
  });
}

TEST_CASE("file_watch::watch() of a watched file takes its newest path and events",
          "[file_watch]") {
  run([] {
    const scratch_directory root;
    const std::string path = root.name() + "/file";
    append(path, "");
    file_watch changes(path, IN_ATTRIB);
    changes.watch(root.name() + "/./file", IN_MODIFY);
    ::chmod(path.c_str(), 0600);
    append(path, "text");
    CHECK(told(*changes.next(), root) == "/./file m");
  });
}

TEST_CASE("file_watch::ignore() works again for a path that is watched anew", "[file_watch]") {
  run([] {
    const scratch_directory root;
    const std::string path = root.name() + "/file";
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

TEST_CASE("file_watch::ignore() ignores the new file of a path", "[file_watch]") {
  run([] {
    const scratch_directory root;
    const std::string path = root.name() + "/file";
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

TEST_CASE("file_watch::watch() loses no change of a file that is being added", "[file_watch]") {
  run([] {
    const scratch_directory root;
    const std::string busy = root.name() + "/busy";
    append(busy, "");
    file_watch changes(root.name(), IN_CREATE);
    auto first = spin([&] { return changes.next(); });
    until_waiting(first);
    auto adder = spin([&] { changes.watch(busy, IN_MODIFY); });
    until_waiting(adder);
    append(busy, "more");
    adder.await();
    append(busy, "more");
    CHECK(told(*first.await(), root) == "/busy m");
  });
}

TEST_CASE("file_watch::watch() throws an error with the name of what it cannot watch",
          "[file_watch]") {
  run([] {
    file_watch changes;
    CHECK(error_of([&] { changes.watch("/missing/file"); }) ==
          std::errc::no_such_file_or_directory);
    CHECK_THROWS_WITH(changes.watch("/missing/file"), Catch::Contains("/missing/file"));
    CHECK_THROWS_AS(changes.watch(std::string_view("a\0b", 3)), std::invalid_argument);
    CHECK(error_of([&] { changes.watch("/", 0); }) == std::errc::invalid_argument);
    file_watch target = std::move(changes);
    CHECK(error_of([&] { changes.next(); }) == std::errc::bad_file_descriptor);
    CHECK(changes.native_handle() == -1);
    CHECK(target.native_handle() >= 0);
  });
}

TEST_CASE("file_watch::next() reports an overflow of the kernel's queue", "[file_watch]") {
  run([] {
    const scratch_directory root;
    const fd first(::open((root.name() + "/one").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const fd second(::open((root.name() + "/two").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    file_watch changes(root.name(), IN_MODIFY);
    const std::optional<std::size_t> limit = kept_events();
    if (!limit) return;
    overflow(first, second, *limit);
    std::size_t count = 0;
    for (const file_event& event : changes) {
      if (told(event, root) == " ?") break;
      ++count;
    }
    CHECK(count == *limit);
  });
}

TEST_CASE("file_watch ends its range after an overflow when nothing is left to watch",
          "[file_watch]") {
  run([] {
    const scratch_directory root;
    const std::string names[] = {root.name() + "/one", root.name() + "/two",
                                 root.name() + "/three"};
    fd first(::open(names[0].c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    fd second(::open(names[1].c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    append(names[2], "");
    file_watch changes;
    for (const std::string& name : names) changes.watch(name, IN_MODIFY);
    const std::optional<std::size_t> limit = kept_events();
    if (!limit) return;
    overflow(first, second, *limit);
    // The kernel keeps no event of the end of these two.
    first.close();
    CHECK(::unlink(names[0].c_str()) == 0);
    CHECK(changes.ignore(names[1]));
    while (told(changes.next().value(), root) != " ?") {
    }
    append(names[2], "is watched as before");
    CHECK(told(changes.next().value(), root) == "/three m");
    CHECK(changes.ignore(names[2]));
    std::optional<file_event> event;
    CHECK(move_on_after(1s, [&] { event = changes.next(); }));
    CHECK_FALSE(event.has_value());
  });
}
