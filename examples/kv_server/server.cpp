// SPDX-License-Identifier: MIT
// See server.hpp.
#include "server.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "append_log.hpp"
#include "commands.hpp"
#include "resp.hpp"

namespace {

using messages = motet::local::channel<std::string>;

std::optional<append_log> file_of_changes;  // while serve_store() runs
std::map<std::string, std::set<messages*>, std::less<>> subscribers;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A client: its commands are answered in order; those that arrive together, by one write.
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

  /// Answers are sent after the changes that they confirm are in the log.
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

/// Replays the log. A command that was written in part, because the program ended, is cut off.
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

void serve_store(motet::net::tcp_listener& listener, const std::string& path_of_log, bool syncs,
                 const motet::net::serve_options& how) {
  struct end_of_log {
    ~end_of_log() { file_of_changes.reset(); }
  } guard;
  forget_all();
  if (!path_of_log.empty()) {
    file_of_changes.emplace(path_of_log, syncs);
    read_log();
  }
  listener.serve(how, [](motet::net::tcp_stream peer) { session(std::move(peer)).serve(); });
}
