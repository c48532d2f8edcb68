// SPDX-License-Identifier: MIT
// Which handler a request gets, and files as answers.
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "http/talk.hpp"
#include "io/scratch.hpp"

namespace {

using namespace testing;

/// Returns: the body, or the status if that is not 200.
std::string result(const std::string& answer) {
  if (!contains(answer, "HTTP/1.1 200")) return answer.substr(9, 3);
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

http::handler says(const std::string& word) {
  return [word](request& request, response& answer) {
    answer.write(word + std::string(request.parameter("name")) +
                 std::string(request.parameter("rest")));
  };
}

TEST_CASE("http::router finds a handler by method and path") {
  http::router routes;
  routes.get("/", says("root"));
  routes.get("/users/{name}", says("user "));
  routes.get("/users/me", says("me"));
  routes.get("/users/{name}/posts", says("posts of "));
  routes.get("/files/{rest...}", says("file "));
  routes.get("/files/secret", says("secret"));
  routes.post("/users", says("new user"));
  routes.put("/users/{name}", says("changed "));
  routes.del("/users/{name}", says("deleted "));
  routes.on("PATCH", "/users/{name}", says("patched "));
  routes.get("/end/", says("with a slash"));
  const auto result_of = [&](const std::string& method, const std::string& target) {
    return result(answer_to(method + " " + target + " HTTP/1.1\r\nHost: a\r\n\r\n", routes));
  };
  CHECK(result_of("GET", "/") == "root");
  CHECK(result_of("GET", "/users/ada") == "user ada");
  CHECK(result_of("GET", "/users/a%2Fb") == "user a/b");
  CHECK(result_of("GET", "/users/a%20b?x=1") == "user a b");
  CHECK(result_of("GET", "/users/me") == "me");
  CHECK(result_of("GET", "/users/ada/posts") == "posts of ada");
  CHECK(result_of("GET", "/users/") == "404");
  CHECK(result_of("GET", "/users") == "405");
  CHECK(result_of("GET", "/files/a/b/c") == "file a/b/c");
  CHECK(result_of("GET", "/files/") == "file ");
  CHECK(result_of("GET", "/files/secret") == "secret");
  CHECK(result_of("POST", "/users") == "new user");
  CHECK(result_of("PUT", "/users/ada") == "changed ada");
  CHECK(result_of("DELETE", "/users/ada") == "deleted ada");
  CHECK(result_of("PATCH", "/users/ada") == "patched ada");
  CHECK(result_of("get", "/") == "405");
  CHECK(result_of("GET", "/end/") == "with a slash");
  CHECK(result_of("GET", "/end") == "404");
  CHECK(result_of("GET", "/nowhere") == "404");
  CHECK(result_of("OPTIONS", "*") == "404");
  CHECK(result_of("HEAD", "/").empty());
  const std::string not_allowed = answer_to("DELETE /users HTTP/1.1\r\nHost: a\r\n\r\n", routes);
  CHECK(contains(not_allowed, "Allow: POST\r\n"));
}

TEST_CASE("http::router rejects a pattern without a slash, or with a name that is no whole part") {
  http::router routes;
  for (const char* pattern :
       {"", "a", "/a{b}", "/{}", "/{...}", "/{a...}/b", "/{a", "/a}", "/{a}{b}"}) {
    CAPTURE(pattern);
    CHECK_THROWS_AS(routes.get(pattern, says("")), std::invalid_argument);
  }
}

class web_directory {
 public:
  web_directory() {
    ::mkdir((outside_.name() + "/web").c_str(), 0755);
    std::ofstream(outside_.name() + "/secret") << "secret";
    write("page.html", "<p>a page</p>");
    std::string large(300'000, 'x');
    large += "end";
    write("large.bin", large);
    ::mkdir((place() + "/below").c_str(), 0755);
    write("below/index.html", "an index");
    write("empty.txt", "");
  }
  void write(const std::string& name, const std::string& text) const {
    const std::string path = place() + "/" + name;
    std::ofstream(path) << text;
    const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0) == 0);
  }
  void rename(const std::string& old_name, const std::string& new_name) const {
    CHECK(::rename((place() + "/" + old_name).c_str(), (place() + "/" + new_name).c_str()) == 0);
  }
  std::string get(const std::string& target, const std::string& fields = {}) const {
    return answer_to(testing::get(target, fields), routes_);
  }
  const http::router& routes() const { return routes_; }

 private:
  std::string place() const { return outside_.name() + "/web"; }

  scratch_directory outside_;
  http::router routes_ = [this] {
    http::router router;
    router.get("/{path...}", http::files(place()));
    return router;
  }();
};

/// Returns: the value of a header in an answer.
std::string value_of(const std::string& answer, const std::string& name) {
  const std::size_t position = answer.find("\r\n" + name + ": ");
  if (position == std::string::npos) return {};
  const std::size_t begin = position + name.size() + 4;
  return answer.substr(begin, answer.find("\r\n", begin) - begin);
}

TEST_CASE("http::files() answers with the type, the length and the content of a file") {
  const web_directory web;
  const std::string page = web.get("/page.html");
  CHECK(result(page) == "<p>a page</p>");
  CHECK(value_of(page, "Content-Type") == "text/html; charset=utf-8");
  CHECK(value_of(page, "Content-Length") == "13");
  const std::string large = result(web.get("/large.bin"));
  CHECK(large.size() == 300'003);
  CHECK(large.ends_with("xend"));
  CHECK(result(web.get("/below/")) == "an index");
  CHECK(result(web.get("/empty.txt")).empty());
  CHECK(value_of(web.get("/empty.txt"), "Content-Length") == "0");
  const std::string head = answer_to("HEAD /large.bin HTTP/1.1\r\nHost: a\r\n\r\n", web.routes());
  CHECK(value_of(head, "Content-Length") == "300003");
  CHECK(head.ends_with("\r\n\r\n"));
}

TEST_CASE("http::files() redirects a directory without its slash") {
  const web_directory web;
  const std::string answer = web.get("/below?x=1");
  CHECK(result(answer) == "308");
  CHECK(value_of(answer, "Location") == "/below/?x=1");
}

TEST_CASE("http::files() does not leave its directory") {
  const web_directory web;
  for (const char* target :
       {"/../secret", "/%2e%2e/secret", "/below/../../secret", "/none", "/below/../page.html",
        "/%2e%2e/x", "/page.html/x", "/..", "//etc/passwd/../x"}) {
    CAPTURE(target);
    CHECK(result(web.get(target)) == "404");
  }
}

TEST_CASE("http::files() answers 304 to a client that has the file") {
  const web_directory web;
  const std::string page = web.get("/page.html");
  const std::string tag = value_of(page, "ETag");
  const std::string date = value_of(page, "Last-Modified");
  CHECK(result(web.get("/page.html", "If-None-Match: " + tag + "\r\n")) == "304");
  CHECK(result(web.get("/page.html", "If-None-Match: \"x\", W/" + tag + "\r\n")) == "304");
  CHECK(result(web.get("/page.html", "If-None-Match: *\r\n")) == "304");
  CHECK(result(web.get("/page.html", "If-Modified-Since: " + date + "\r\n")) == "304");
  CHECK(result(web.get("/page.html", "If-None-Match: \"x\"\r\nIf-Modified-Since: " + date +
                                         "\r\n")) == "<p>a page</p>");
  CHECK(result(web.get("/page.html", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n")) ==
        "<p>a page</p>");
  CHECK(result(web.get("/page.html", "If-Modified-Since: yesterday\r\n")) == "<p>a page</p>");
}

TEST_CASE("http::files() answers with a changed, replaced or removed file as it is now") {
  const web_directory web;
  CHECK(result(web.get("/page.html")) == "<p>a page</p>");
  web.write("page.html", "changed, and longer than before");
  CHECK(result(web.get("/page.html")) == "changed, and longer than before");
  web.write("new.html", "new");
  web.rename("new.html", "page.html");
  CHECK(result(web.get("/page.html")) == "new");
  web.rename("page.html", "moved.html");
  CHECK(result(web.get("/page.html")) == "404");
  CHECK(result(web.get("/moved.html")) == "new");
  for (int index = 0; index < 100; ++index) {
    const std::string name = std::to_string(index) + ".txt";
    web.write(name, name);
    CHECK(result(web.get("/" + name)) == name);
  }
  CHECK(result(web.get("/0.txt")) == "0.txt");
}

TEST_CASE("http::files() answers 206 to a valid range, and 416 to one beyond the file") {
  const web_directory web;
  web.write("digits", "0123456789");
  const auto part = [&](const std::string& range, const std::string& fields = {}) {
    const std::string answer = web.get("/digits", "Range: " + range + "\r\n" + fields);
    const std::string status = answer.substr(9, 3);
    return status + ' ' + value_of(answer, "Content-Range") + ' ' +
           answer.substr(answer.find("\r\n\r\n") + 4);
  };
  CHECK(part("bytes=0-0") == "206 bytes 0-0/10 0");
  CHECK(part("bytes=2-4") == "206 bytes 2-4/10 234");
  CHECK(part("bytes=7-") == "206 bytes 7-9/10 789");
  CHECK(part("bytes=7-100") == "206 bytes 7-9/10 789");
  CHECK(part("bytes=-3") == "206 bytes 7-9/10 789");
  CHECK(part("bytes=-100") == "206 bytes 0-9/10 0123456789");
  CHECK(part("bytes=10-") == "416 bytes */10 ");
  CHECK(part("bytes=-0") == "416 bytes */10 ");
  for (const char* invalid_range :
       {"bytes=4-2", "bytes=a-b", "bytes=-", "bytes=0-1,3-4", "lines=1-2"}) {
    CAPTURE(invalid_range);
    CHECK(part(invalid_range) == "200  0123456789");
  }
  const std::string tag = value_of(web.get("/digits"), "ETag");
  CHECK(part("bytes=0-0", "If-Range: " + tag + "\r\n") == "206 bytes 0-0/10 0");
  CHECK(part("bytes=0-0", "If-Range: \"other\"\r\n") == "200  0123456789");
}

TEST_CASE("http::send_file() answers 405 to other methods than GET and HEAD") {
  const web_directory web;
  http::router routes;
  routes.post("/{path...}", [](request& request, response& answer) {
    http::send_file(request, answer, "/etc/hostname");
  });
  CHECK(contains(answer_to("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", routes),
                 "405"));
}

}  // namespace
