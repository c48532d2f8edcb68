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
  int id;
  std::string name;
  std::shared_ptr<lines> output;
};
struct said {
  int id;
  std::string text;
};
struct left {
  int id;
};
using news = std::variant<joined, said, left>;

/// Everybody who is there. Only the room's own fiber touches it, so it needs no lock.
class room {
 public:
  void hear(joined member) {
    const std::string name = member.name;
    members_.emplace(member.id, guest{std::move(member.name), std::move(member.output)});
    tell_all("* " + name + " joins\n");
  }
  void hear(const said& message) {
    const auto speaker = members_.find(message.id);
    if (speaker != members_.end()) tell_all(speaker->second.name + ": " + message.text + "\n");
  }
  void hear(const left& message) {
    const auto member = members_.extract(message.id);
    if (member) tell_all("* " + member.mapped().name + " leaves\n");
  }

 private:
  struct guest {
    std::string name;
    std::shared_ptr<lines> output;
    std::size_t missed = 0;
  };

  void tell_all(const std::string& line) {
    for (auto& [id, member] : members_) tell(member, line);
  }

  /// Never waits.
  static void tell(guest& member, const std::string& line) {
    if (member.missed > 0) {
      if (!member.output->try_push("* you missed " + std::to_string(member.missed) + "\n")) {
        ++member.missed;
        return;
      }
      member.missed = 0;
    }
    if (!member.output->try_push(line)) ++member.missed;
  }

  std::map<int, guest> members_;
};

using room_actor = motet::actor<news>;

room_actor open_room() {
  return room_actor({.name = "room"}, [](room_actor::inbox& inbox) {
    room chat;
    for (;;) {
      std::visit([&](auto&& message) { chat.hear(std::forward<decltype(message)>(message)); },
                 inbox.receive());
    }
  });
}

/// Cuts what comes from a client into lines.
class line_reader {
 public:
  explicit line_reader(motet::net::tcp_stream& peer) : peer_(peer) {}

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
      std::array<char, longest_line> buffer;
      const std::size_t size = peer_.read(std::as_writable_bytes(std::span(buffer)));
      if (size == 0) return std::nullopt;
      text_.append(buffer.data(), size);
    }
  }

 private:
  motet::net::tcp_stream& peer_;
  std::string text_;
};

/// Leaves however the conversation ends; the room takes it without waiting.
struct membership {
  const room_actor& chat;
  int id;
  ~membership() { chat.try_send(left{id}); }
};

void converse(const room_actor& chat, motet::net::tcp_stream peer, int id) {
  line_reader input(peer);
  const auto name = input.next();
  if (!name || name->empty()) return;
  const auto output = std::make_shared<lines>(lines_waiting);
  motet::group writers;
  writers.spin([&] {
    for (const std::string& line : *output) peer.write_all(std::as_bytes(std::span(line)));
  });
  chat.send(joined{id, *name, output});
  const membership presence{chat, id};
  while (auto line = input.next()) chat.send(said{id, std::move(*line)});
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
  const std::string_view argument = count > 1 ? words[1] : "0";
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(argument.begin(), argument.end(), port);
  if (count > 2 || error != std::errc() || end != argument.end()) {
    std::fprintf(stderr, "usage: chat_server [PORT]\n");
    return 2;
  }
  serve(port);
}
