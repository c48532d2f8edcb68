// SPDX-License-Identifier: MIT
// A chat: the first line that a client sends is its name, every other one is told to all. The room
// is an actor, each connection a fiber that reads and one that writes. Whoever reads slowly delays
// nobody: what does not fit into its queue it misses, and is told how much that was.
// Run: chat_server [PORT], then: socat - TCP:127.0.0.1:PORT
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace {

constexpr std::size_t longest_line = 1024;
constexpr std::size_t lines_waiting = 64;

using lines = motet::channel<std::string>;

struct joined {
  int who;
  std::string name;
  std::shared_ptr<lines> to;
};
struct said {
  int who;
  std::string text;
};
struct left {
  int who;
};
using news = std::variant<joined, said, left>;

/// Everybody who is there. Only the room's own fiber touches it, so it needs no lock.
class room {
 public:
  void hear(joined member) {
    const std::string name = member.name;
    members_.emplace(member.who, guest{std::move(member.name), std::move(member.to)});
    tell_all("* " + name + " joins\n");
  }
  void hear(const said& what) {
    const auto speaker = members_.find(what.who);
    if (speaker != members_.end()) tell_all(speaker->second.name + ": " + what.text + "\n");
  }
  void hear(const left& gone) {
    const auto absent = members_.extract(gone.who);
    if (absent) tell_all("* " + absent.mapped().name + " leaves\n");
  }

 private:
  struct guest {
    std::string name;
    std::shared_ptr<lines> to;
    std::size_t missed = 0;
  };

  void tell_all(const std::string& line) {
    for (auto& [who, each] : members_) tell(each, line);
  }

  /// Never waits.
  static void tell(guest& to, const std::string& line) {
    if (to.missed > 0) {
      if (!to.to->try_push("* you missed " + std::to_string(to.missed) + "\n")) {
        ++to.missed;
        return;
      }
      to.missed = 0;
    }
    if (!to.to->try_push(line)) ++to.missed;
  }

  std::map<int, guest> members_;
};

using room_actor = motet::actor<news>;

room_actor open_room() {
  return room_actor({.name = "room"}, [](room_actor::inbox& inbox) {
    room here;
    for (;;) {
      std::visit([&](auto&& what) { here.hear(std::forward<decltype(what)>(what)); },
                 inbox.receive());
    }
  });
}

/// Cuts what comes from a client into lines.
class line_reader {
 public:
  explicit line_reader(motet::net::tcp_stream& from) : from_(from) {}

  /// Returns: the next line without its end; nothing at the end, or if a line is too long.
  std::optional<std::string> next() {
    for (;;) {
      if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
        std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        if (!line.empty() && line.back() == '\r') line.pop_back();
        return line;
      }
      if (text_.size() > longest_line) return std::nullopt;
      std::array<char, longest_line> more;
      const std::size_t size = from_.read(std::as_writable_bytes(std::span(more)));
      if (size == 0) return std::nullopt;
      text_.append(more.data(), size);
    }
  }

 private:
  motet::net::tcp_stream& from_;
  std::string text_;
};

/// Leaves however the conversation ends; the room takes it without waiting.
struct membership {
  const room_actor& in;
  int who;
  ~membership() { in.try_send(left{who}); }
};

void converse(const room_actor& in, motet::net::tcp_stream peer, int who) {
  line_reader from(peer);
  const auto name = from.next();
  if (!name || name->empty()) return;
  const auto to = std::make_shared<lines>(lines_waiting);
  motet::group writing;
  writing.spin([&] {
    for (const std::string& line : *to) peer.write_all(std::as_bytes(std::span(line)));
  });
  in.send(joined{who, *name, to});
  const membership until_the_end{in, who};
  while (auto line = from.next()) in.send(said{who, std::move(*line)});
}

void serve(std::uint16_t port) {
  const room_actor room = open_room();
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(port));
  std::printf("listening on %s\n", listener.local_endpoint().to_string().c_str());
  std::fflush(stdout);
  int clients = 0;
  listener.serve([&](motet::net::tcp_stream peer) { converse(room, std::move(peer), ++clients); });
}

}  // namespace

int main(int count, char** words) {
  const std::string_view wanted = count > 1 ? words[1] : "0";
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(wanted.begin(), wanted.end(), port);
  if (count > 2 || error != std::errc() || end != wanted.end()) {
    std::fprintf(stderr, "usage: chat_server [PORT]\n");
    return 2;
  }
  serve(port);
}
