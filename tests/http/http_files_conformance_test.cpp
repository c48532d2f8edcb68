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
  explicit old_file(std::time_t time = 784'111'777) {  // Sun, 06 Nov 1994 08:49:37 GMT
    std::ofstream(path()) << "0123456789";
    const timespec times[2] = {{time, 0}, {time, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path().c_str(), times, 0) == 0);
    const std::string answer = ask("");
    const std::size_t begin = answer.find("ETag: ") + 6;
    tag = answer.substr(begin, answer.find("\r\n", begin) - begin);
  }
  std::string ask(const std::string& fields, const std::string& method = "GET") const {
    return answer_to(method + " / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n",
                     [this](request& request, response& answer) {
                       answer.header("Cache-Control", "no-cache").header("Vary", "Accept");
                       answer.header("Content-Location", "/f").header("Expires", "0");
                       http::send_file(request, answer, path());
                     });
  }
  /// Returns: the status of the answer.
  std::string judge(const std::string& fields) const { return status_of(ask(fields)); }

  std::string tag;

 private:
  std::string path() const { return directory_.name() + "/f"; }

  scratch_directory directory_;
};

const std::string earlier_date = "Sun, 06 Nov 1994 08:49:36 GMT\r\n";
const std::string same_date = "Sun, 06 Nov 1994 08:49:37 GMT\r\n";

TEST_CASE("http::send_file() evaluates preconditions in their order, each by its comparison") {
  const old_file file;
  const std::string match = "If-Match: " + file.tag + "\r\n";
  const std::string none_match = "If-None-Match: " + file.tag + "\r\n";
  CHECK(file.judge(match) == "200");
  CHECK(file.judge("If-Match: *\r\n") == "200");
  CHECK(file.judge("If-Match: , \"x\", " + file.tag + "\r\n") == "200");
  CHECK(file.judge("If-Match: \"x\"\r\n" + match) == "200");
  CHECK(file.judge("If-Match: \"x\"\r\n") == "412");
  CHECK(file.judge("If-Match: W/" + file.tag + "\r\n") == "412");
  CHECK(file.judge("If-None-Match: W/" + file.tag + "\r\n") == "304");
  CHECK(file.judge("If-None-Match: ,," + file.tag + "\r\n") == "304");
  CHECK(file.judge("If-Unmodified-Since: " + same_date) == "200");
  CHECK(file.judge("If-Unmodified-Since: " + earlier_date) == "412");
  CHECK(file.judge("If-Unmodified-Since: yesterday\r\n") == "200");
  CHECK(file.judge("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT, " + earlier_date) == "200");
  CHECK(file.judge(match + "If-Unmodified-Since: " + earlier_date) == "200");
  CHECK(file.judge("If-Match: \"x\"\r\n" + none_match) == "412");
  CHECK(file.judge("If-Unmodified-Since: " + earlier_date + none_match) == "412");
  CHECK(file.judge(match + none_match) == "304");
  CHECK(file.judge("If-Match: \"x\"\r\nRange: bytes=0-1\r\n") == "412");
  CHECK(status_of(file.ask("If-Match: \"x\"\r\n", "POST")) == "405");
}

TEST_CASE("http::send_file() accepts a date in each of its three formats") {
  const old_file file;
  const std::string field = "If-Modified-Since: ";
  CHECK(file.judge(field + same_date) == "304");
  CHECK(file.judge(field + earlier_date) == "200");
  CHECK(file.judge(field + "Sunday, 06-Nov-94 08:49:37 GMT\r\n") == "304");
  CHECK(file.judge(field + "Sunday, 06-Nov-94 08:49:36 GMT\r\n") == "200");
  CHECK(file.judge(field + "Sun Nov  6 08:49:37 1994\r\n") == "304");
  CHECK(file.judge(field + "Sun Nov  6 08:49:36 1994\r\n") == "200");
  // More than 50 years ahead until 2040, and so of 1990.
  CHECK(file.judge(field + "Thursday, 08-Nov-90 08:49:37 GMT\r\n") == "200");
}

TEST_CASE("http::send_file() applies Range to GET only, and compares If-Range strongly") {
  const old_file file;
  const std::string range = "Range: bytes=0-1\r\n";
  CHECK(file.judge(range) == "206");
  CHECK(status_of(file.ask(range, "HEAD")) == "200");
  CHECK(file.judge("If-Range: " + file.tag + "\r\n") == "200");
  CHECK(file.judge(range + "If-Range: W/" + file.tag + "\r\n") == "200");
  CHECK(file.judge(range + "If-Range: " + same_date) == "206");
  CHECK(file.judge(range + "If-Range: " + earlier_date) == "200");
  CHECK(file.judge("Range: bytes=18446744073709551616-18446744073709551617\r\n") == "200");
}

TEST_CASE("http::send_file() sends the headers of 200 with 206 and 304") {
  const old_file file;
  const std::string part = file.ask("Range: bytes=0-1\r\n");
  const std::string not_modified = file.ask("If-None-Match: *\r\n");
  for (const std::string line :
       {"Cache-Control: no-cache", "Vary: Accept", "Content-Location: /f", "Expires: 0"}) {
    CAPTURE(line);
    CHECK(contains(part, "\r\n" + line + "\r\n"));
    CHECK(contains(not_modified, "\r\n" + line + "\r\n"));
  }
  CHECK(contains(part, "\r\nETag: " + file.tag + "\r\n"));
  CHECK(contains(not_modified, "\r\nETag: " + file.tag + "\r\n"));
  CHECK(contains(part, "\r\nLast-Modified: " + same_date));
  CHECK(contains(part, "\r\nContent-Type: application/octet-stream\r\n"));
  CHECK(contains(file.ask("", "POST"), "\r\nAllow: GET, HEAD\r\n"));
}

TEST_CASE("http::send_file() ignores an invalid date, and one of two") {
  const old_file file;
  for (const std::string date : {"Sun, 99 Nov 2094 08:49:37 GMT", "Sun, 06 Nov 2094 24:00:00 GMT",
                                 "Sun, 06 Nov 2094 08:60:37 GMT", "Sun, 00 Nov 2094 08:49:37 GMT",
                                 "Sun,  6 Nov 2094 08:49:37 GMT", "Sun, +6 Nov 2094 08:49:37 GMT",
                                 "S9n, 06 Nov 2094 08:49:37 GMT", "Sun, 06 Nov 2094 08:49:37 UTC",
                                 "Sun, 06 Nov 2094 08:49:37 GMT ;", "Sunday, 6-Nov-30 08:49:37 GMT",
                                 "Sun Nov 06 08:49:99 2094"}) {
    CAPTURE(date);
    CHECK(file.judge("If-Modified-Since: " + date + "\r\n") == "200");
  }
  CHECK(file.judge("If-Modified-Since: " + same_date + "If-Modified-Since: " + same_date) == "200");
  CHECK(file.judge("If-Unmodified-Since: " + earlier_date + "If-Unmodified-Since: " + same_date) ==
        "200");
}

TEST_CASE("http::send_file() reads a year of two digits in the nearer century") {
  const old_file file;
  const std::time_t time = std::time(nullptr);
  const auto status_in = [&](int years, int days) {
    std::tm parts{};
    const std::time_t shifted_time = time + days * 86'400;
    ::gmtime_r(&shifted_time, &parts);
    parts.tm_year += years;
    char text[64];
    std::strftime(text, sizeof text, "Sunday, %d-%b-%y %H:%M:%S GMT", &parts);
    return file.judge("If-Modified-Since: " + std::string(text) + "\r\n");
  };
  CHECK(status_in(50, -2) == "304");  // so it is after the change
  CHECK(status_in(50, 2) == "200");   // 50 years ago
}

TEST_CASE("http::send_file() sends no Last-Modified for a file of the future") {
  const old_file file(std::time(nullptr) + 3'600);
  CHECK_FALSE(contains(file.ask(""), "Last-Modified"));
}

TEST_CASE("http::send_file() gives a file that has just changed a weak tag") {
  const old_file young(std::time(nullptr) + 60);
  REQUIRE(young.tag.starts_with("W/\""));
  const std::string range = "Range: bytes=0-1\r\n";
  CHECK(young.judge("If-None-Match: " + young.tag + "\r\n") == "304");
  CHECK(young.judge("If-None-Match: " + young.tag.substr(2) + "\r\n") == "304");
  CHECK(young.judge(range + "If-Range: " + young.tag + "\r\n") == "200");
  CHECK(young.judge("If-Match: " + young.tag + "\r\n") == "412");
}

TEST_CASE("http::send_file() accepts no If-Range with a date that the file may have had twice") {
  const std::time_t time = std::time(nullptr);
  const old_file young(time);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  CHECK(young.judge("Range: bytes=0-1\r\nIf-Range: " + std::string(text) + "\r\n") == "200");
}

}  // namespace
