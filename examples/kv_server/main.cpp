// SPDX-License-Identifier: MIT
// A store of keys and values that speaks the protocol of Redis: GET SET DEL INCR EXPIRE MGET LPUSH
// LRANGE PUBLISH SUBSCRIBE PING. What has been answered is in the log, and there again after a
// crash.
//
// usage: kv_server [--port PORT] [--log FILE] [--no-sync]
//        redis-cli -p 6380 set greeting hello
#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <motet/motet.hpp>
#include <optional>
#include <set>

#include "append_log.hpp"
#include "commands.hpp"
#include "resp.hpp"

namespace {

using messages = motet::local::channel<std::string>;

std::optional<append_log> file_of_changes;
std::map<std::string, std::set<messages*>, std::less<>> subscribers;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A client: what it has asked is answered in order, all that has come at once.
class session {
 public:
  explicit session(motet::net::tcp_stream peer) : peer_(std::move(peer)) {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() {
    for (auto& [topic, group] : subscribers) group.erase(&messages_);
  }

  void serve() {
    motet::reader input(peer_, resp::longest_word * 2);
    for (std::size_t size_needed = 1;;) {
      const std::string_view bytes = text_of(input.peek(size_needed));
      if (bytes.size() < size_needed) return;
      std::size_t size_used = 0;
      try {
        while (const std::size_t size = resp::take_command(bytes.substr(size_used), words_)) {
          execute();
          size_used += size;
          if (answer_.size() > much) answer();
        }
      } catch (const resp::protocol_error& error) {
        peer_.write_all("-ERR Protocol error: " + std::string(error.what()) + "\r\n");
        return;
      }
      size_needed = bytes.size() - size_used + 1;
      input.skip(size_used);
      answer();
    }
  }

 private:
  static constexpr std::size_t much = std::size_t{1} << 20;  // to hold for a client

  void execute() {
    if (words_.empty()) return;
    std::string name(words_[0]);
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    words_[0] = name;
    try {
      if (name == "SUBSCRIBE") return subscribe();
      if (name == "PUBLISH" && words_.size() == 3) return publish();
      const std::string change = carry_out(words_, answer_);
      if (file_of_changes.has_value()) log_end_ = file_of_changes->add(change);
    } catch (const command_error& error) {
      answer_.append("-").append(error.what()).append("\r\n");
    }
  }

  /// No answer goes out before what it tells of is in the log.
  void answer() {
    if (file_of_changes.has_value()) file_of_changes->await(log_end_);
    peer_.write_all(std::exchange(answer_, {}));
  }

  void subscribe() {
    for (auto topic = words_.begin() + 1; topic != words_.end(); ++topic) {
      subscribers[std::string(*topic)].insert(&messages_);
      ++topics_;
      answer_ += "*3\r\n";
      resp::add_text(answer_, "subscribe");
      resp::add_text(answer_, *topic);
      resp::add_number(answer_, ':', topics_);
    }
    if (!forwards_) forwarding_.spin([this] { forward(); });
    forwards_ = true;
  }

  void forward() {
    while (const std::optional<std::string> next = messages_.pop()) peer_.write_all(*next);
    peer_.shutdown(SHUT_RDWR);
  }

  /// A subscriber that is far behind is left.
  void publish() {
    std::string message;
    resp::add_command(message, {"message", words_[1], words_[2]});
    const auto topic = subscribers.find(words_[1]);
    const std::set<messages*> receivers =
        topic == subscribers.end() ? std::set<messages*>() : topic->second;
    for (messages* receiver : receivers) {
      if (!receiver->try_push(message)) receiver->close();
    }
    resp::add_number(answer_, ':', static_cast<long long>(receivers.size()));
  }

  motet::net::tcp_stream peer_;
  words words_;
  std::string answer_;
  std::uint64_t log_end_ = 0;
  int topics_ = 0;
  bool forwards_ = false;
  messages messages_{1024};
  motet::group forwarding_;
};

/// Does again what is in the log; a command that was being written when all ended is cut off.
void read_log() {
  motet::reader input(file_of_changes->file(), resp::longest_word * 2);
  std::uint64_t size = 0;
  words command;
  for (std::size_t size_needed = 1;;) {
    const std::string_view bytes = text_of(input.peek(size_needed));
    const std::size_t size_used = resp::take_command(bytes, command);
    if (size_used == 0 && bytes.size() < size_needed) break;
    if (size_used > 0) carry_out_again(command);
    size_needed = size_used > 0 ? 1 : bytes.size() + 1;
    size += size_used;
    input.skip(size_used);
  }
  file_of_changes->cut(size);
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string_view> options(arguments + 1, arguments + count);
  const auto value_of = [&](std::string_view name) {
    const auto position = std::find(options.begin(), options.end(), name);
    return position == options.end() || position + 1 == options.end() ? std::string()
                                                                      : std::string(position[1]);
  };
  const std::string port = value_of("--port");
  const bool syncs = std::find(options.begin(), options.end(), "--no-sync") == options.end();
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(
      port.empty() ? 6380 : static_cast<std::uint16_t>(std::stoi(port))));
  return motet::run_until_signal([&](const std::stop_token& stop) {
    if (!value_of("--log").empty()) {
      file_of_changes.emplace(value_of("--log"), syncs);
      read_log();
    }
    std::cout << "listening on " << listener.local_endpoint().to_string() << std::endl;
    listener.serve({.drain = stop, .grace = std::chrono::seconds(1)},
                   [](motet::net::tcp_stream peer) { session(std::move(peer)).serve(); });
  });
}
