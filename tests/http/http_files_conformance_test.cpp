// SPDX-License-Identifier: MIT
// What RFC 9110 demands of a server that sends files: see docs/http_conformance.md.
#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>
#include <string>

#include "http/talk.hpp"
#include "io/scratch.hpp"

namespace {

using namespace testing;

std::string status_of(const std::string& answer) {
  return answer.substr(9, 3);
}

/// A file that was changed at a known time, long ago if nothing else is said.
class old_file {
 public:
  explicit old_file(std::time_t changed = 784'111'777) {  // Sun, 06 Nov 1994 08:49:37 GMT
    std::ofstream(path()) << "0123456789";
    const timespec times[2] = {{changed, 0}, {changed, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path().c_str(), times, 0) == 0);
    const std::string answer = ask("");
    const std::size_t begin = answer.find("ETag: ") + 6;
    tag = answer.substr(begin, answer.find("\r\n", begin) - begin);
  }
  std::string ask(const std::string& fields, const std::string& method = "GET") const {
    return answer_to(method + " / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n",
                     [this](request& asked, response& answer) {
                       answer.header("Cache-Control", "no-cache").header("Vary", "Accept");
                       answer.header("Content-Location", "/f").header("Expires", "0");
                       http::send_file(asked, answer, path());
                     });
  }
  /// Returns: the status of the answer.
  std::string judge(const std::string& fields) const { return status_of(ask(fields)); }

  std::string tag;

 private:
  std::string path() const { return directory_.name() + "/f"; }

  scratch_directory directory_;
};

const std::string before = "Sun, 06 Nov 1994 08:49:36 GMT\r\n";
const std::string same = "Sun, 06 Nov 1994 08:49:37 GMT\r\n";

TEST_CASE("preconditions are evaluated in their order, each by its comparison") {
  const old_file one;
  const std::string match = "If-Match: " + one.tag + "\r\n";
  const std::string none_match = "If-None-Match: " + one.tag + "\r\n";
  CHECK(one.judge(match) == "200");
  CHECK(one.judge("If-Match: *\r\n") == "200");
  CHECK(one.judge("If-Match: , \"x\", " + one.tag + "\r\n") == "200");
  CHECK(one.judge("If-Match: \"x\"\r\n" + match) == "200");
  CHECK(one.judge("If-Match: \"x\"\r\n") == "412");
  CHECK(one.judge("If-Match: W/" + one.tag + "\r\n") == "412");
  CHECK(one.judge("If-None-Match: W/" + one.tag + "\r\n") == "304");
  CHECK(one.judge("If-None-Match: ,," + one.tag + "\r\n") == "304");
  CHECK(one.judge("If-Unmodified-Since: " + same) == "200");
  CHECK(one.judge("If-Unmodified-Since: " + before) == "412");
  CHECK(one.judge("If-Unmodified-Since: yesterday\r\n") == "200");
  CHECK(one.judge("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT, " + before) == "200");
  CHECK(one.judge(match + "If-Unmodified-Since: " + before) == "200");
  CHECK(one.judge("If-Match: \"x\"\r\n" + none_match) == "412");
  CHECK(one.judge("If-Unmodified-Since: " + before + none_match) == "412");
  CHECK(one.judge(match + none_match) == "304");
  CHECK(one.judge("If-Match: \"x\"\r\nRange: bytes=0-1\r\n") == "412");
  CHECK(status_of(one.ask("If-Match: \"x\"\r\n", "POST")) == "405");
}

TEST_CASE("a date is understood in each of its three formats") {
  const old_file one;
  const std::string since = "If-Modified-Since: ";
  CHECK(one.judge(since + same) == "304");
  CHECK(one.judge(since + before) == "200");
  CHECK(one.judge(since + "Sunday, 06-Nov-94 08:49:37 GMT\r\n") == "304");
  CHECK(one.judge(since + "Sunday, 06-Nov-94 08:49:36 GMT\r\n") == "200");
  CHECK(one.judge(since + "Sun Nov  6 08:49:37 1994\r\n") == "304");
  CHECK(one.judge(since + "Sun Nov  6 08:49:36 1994\r\n") == "200");
  // More than 50 years ahead until 2040, and so of 1990.
  CHECK(one.judge(since + "Thursday, 08-Nov-90 08:49:37 GMT\r\n") == "200");
}

TEST_CASE("Range is heeded for GET only, and If-Range by the strong comparison") {
  const old_file one;
  const std::string range = "Range: bytes=0-1\r\n";
  CHECK(one.judge(range) == "206");
  CHECK(status_of(one.ask(range, "HEAD")) == "200");
  CHECK(one.judge("If-Range: " + one.tag + "\r\n") == "200");
  CHECK(one.judge(range + "If-Range: W/" + one.tag + "\r\n") == "200");
  CHECK(one.judge(range + "If-Range: " + same) == "206");
  CHECK(one.judge(range + "If-Range: " + before) == "200");
  CHECK(one.judge("Range: bytes=18446744073709551616-18446744073709551617\r\n") == "200");
}

TEST_CASE("206 and 304 have the headers that 200 would have") {
  const old_file one;
  const std::string part = one.ask("Range: bytes=0-1\r\n");
  const std::string known = one.ask("If-None-Match: *\r\n");
  for (const std::string line :
       {"Cache-Control: no-cache", "Vary: Accept", "Content-Location: /f", "Expires: 0"}) {
    CAPTURE(line);
    CHECK(contains(part, "\r\n" + line + "\r\n"));
    CHECK(contains(known, "\r\n" + line + "\r\n"));
  }
  CHECK(contains(part, "\r\nETag: " + one.tag + "\r\n"));
  CHECK(contains(known, "\r\nETag: " + one.tag + "\r\n"));
  CHECK(contains(part, "\r\nLast-Modified: " + same));
  CHECK(contains(part, "\r\nContent-Type: application/octet-stream\r\n"));
  CHECK(contains(one.ask("", "POST"), "\r\nAllow: GET, HEAD\r\n"));
}

TEST_CASE("what is no date, or one of two, does not count") {
  const old_file one;
  for (const std::string date : {"Sun, 99 Nov 2094 08:49:37 GMT", "Sun, 06 Nov 2094 24:00:00 GMT",
                                 "Sun, 06 Nov 2094 08:60:37 GMT", "Sun, 00 Nov 2094 08:49:37 GMT",
                                 "Sun,  6 Nov 2094 08:49:37 GMT", "Sun, +6 Nov 2094 08:49:37 GMT",
                                 "S9n, 06 Nov 2094 08:49:37 GMT", "Sun, 06 Nov 2094 08:49:37 UTC",
                                 "Sun, 06 Nov 2094 08:49:37 GMT ;", "Sunday, 6-Nov-30 08:49:37 GMT",
                                 "Sun Nov 06 08:49:99 2094"}) {
    CAPTURE(date);
    CHECK(one.judge("If-Modified-Since: " + date + "\r\n") == "200");
  }
  CHECK(one.judge("If-Modified-Since: " + same + "If-Modified-Since: " + same) == "200");
  CHECK(one.judge("If-Unmodified-Since: " + before + "If-Unmodified-Since: " + same) == "200");
}

TEST_CASE("a date of two digits is in the century that is nearer") {
  const old_file one;
  const std::time_t now = std::time(nullptr);
  const auto status_in = [&](int years, int days) {
    std::tm parts{};
    const std::time_t moved = now + days * 86'400;
    ::gmtime_r(&moved, &parts);
    parts.tm_year += years;
    char text[64];
    std::strftime(text, sizeof text, "Sunday, %d-%b-%y %H:%M:%S GMT", &parts);
    return one.judge("If-Modified-Since: " + std::string(text) + "\r\n");
  };
  CHECK(status_in(50, -2) == "304");  // so it is after the change
  CHECK(status_in(50, 2) == "200");   // 50 years ago
}

TEST_CASE("a file of the future has no Last-Modified") {
  const old_file one(std::time(nullptr) + 3'600);
  CHECK_FALSE(contains(one.ask(""), "Last-Modified"));
}

TEST_CASE("a file that has just been changed has a weak tag") {
  const old_file young(std::time(nullptr) + 60);
  REQUIRE(young.tag.starts_with("W/\""));
  const std::string range = "Range: bytes=0-1\r\n";
  CHECK(young.judge("If-None-Match: " + young.tag + "\r\n") == "304");
  CHECK(young.judge("If-None-Match: " + young.tag.substr(2) + "\r\n") == "304");
  CHECK(young.judge(range + "If-Range: " + young.tag + "\r\n") == "200");
  CHECK(young.judge("If-Match: " + young.tag + "\r\n") == "412");
}

TEST_CASE("a date that the file may have had twice is no validator for a part") {
  const std::time_t now = std::time(nullptr);
  const old_file young(now);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  CHECK(young.judge("Range: bytes=0-1\r\nIf-Range: " + std::string(text) + "\r\n") == "200");
}

}  // namespace
