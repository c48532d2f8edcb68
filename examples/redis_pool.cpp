// SPDX-License-Identifier: MIT
// A pool of connections to Redis, with hiredis's blocking calls in fibers: pipelines, transactions,
// time limits and reconnection. Linked with motet-posix.
//
// usage: redis_pool PORT
#include <hiredis/hiredis.h>
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <iostream>
#include <memory>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

struct free_by_hiredis {
  void operator()(redisContext* context) const noexcept { redisFree(context); }
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using reply = std::unique_ptr<redisReply, free_by_hiredis>;
using command = std::vector<std::string>;

const char* text(const reply& answer) {
  return answer->str != nullptr ? answer->str : "(nil)";
}

class connection {
 public:
  explicit connection(int port) : context_(redisConnect("127.0.0.1", port)) {
    if (context_ == nullptr || context_->err != 0) fail();
  }
  /// Whether it can be lent again. A server that has something to say is about to hang up.
  bool is_usable() const noexcept {
    pollfd entry{context_->fd, POLLIN, 0};
    return !is_busy_ && !in_transaction_ && poll(&entry, 1, 0) == 0;
  }
  reply execute(const command& words) { return std::move(pipeline({words}).front()); }
  /// Sends the commands together. Throws after the last reply if one of them is an error.
  std::vector<reply> pipeline(const std::vector<command>& commands) {
    if (std::exchange(is_busy_, true)) throw std::logic_error("replies are still to come");
    for (const command& words : commands) {
      std::vector<const char*> texts;
      std::vector<std::size_t> sizes;
      for (const std::string& word : words) {
        texts.push_back(word.data());
        sizes.push_back(word.size());
      }
      const auto count = static_cast<int>(words.size());
      if (redisAppendCommandArgv(context_.get(), count, texts.data(), sizes.data()) != REDIS_OK)
        fail();
    }
    std::vector<reply> replies;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      void* received = nullptr;
      if (redisGetReply(context_.get(), &received) != REDIS_OK) fail();
      replies.emplace_back(static_cast<redisReply*>(received));
    }
    is_busy_ = false;
    for (const reply& answer : replies)
      if (answer->type == REDIS_REPLY_ERROR) throw std::runtime_error(answer->str);
    return replies;
  }
  /// The commands of `f` take effect together; after an exception, none does.
  template <typename F>
  reply in_transaction(F f) {
    execute({"MULTI"});
    in_transaction_ = true;
    try {
      f();
    } catch (...) {
      motet::shield([&] {
        motet::move_on_after(std::chrono::seconds(1), [&] { in_transaction_ = !is_discarded(); });
      });
      throw;
    }
    reply results = execute({"EXEC"});
    in_transaction_ = false;
    return results;
  }

 private:
  /// Otherwise the pool drops the connection, and the server the commands.
  bool is_discarded() {
    if (is_busy_) return false;
    execute({"DISCARD"});
    return true;
  }
  /// The connection stays busy, and the pool drops it: so a reply that was not awaited is never
  /// taken for another's. Throws: a pending interruption.
  [[noreturn]] void fail() const {
    const std::string message = context_ == nullptr ? "out of memory" : context_->errstr;
    motet::checkpoint();
    throw std::runtime_error(message);
  }

  std::unique_ptr<redisContext, free_by_hiredis> context_;
  bool is_busy_ = false;
  bool in_transaction_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  if (argc != 2) return std::cerr << "usage: redis_pool PORT\n", 2;
  motet::run([&] {
    motet::resource_pool<connection> pool(
        5, [&] { return connection(std::stoi(argv[1])); },
        [](connection& idle) { return idle.is_usable(); });
    const auto start = motet::clock::now();
    motet::group waiters;
    for (int i = 0; i < 20; ++i)
      waiters.spin([&, i] { pool.acquire()->execute({"BLPOP", std::to_string(i), "0.1"}); });
    waiters.await_all();
    std::cout << "20 waits of 0.1 s: " << (motet::clock::now() - start) / 1ms << " ms\n";
    std::cout << "replies: "
              << pool.acquire()->pipeline({{"SET", "a", "1"}, {"INCR", "a"}, {"GET", "a"}}).size();
    std::cout << ", a: " << text(pool.acquire()->execute({"GET", "a"})) << '\n';
    try {
      auto leased = pool.acquire();
      leased->in_transaction([&] {
        leased->execute({"SET", "a", "100"});
        throw std::runtime_error("given up");
      });
    } catch (const std::runtime_error& error) {
      std::cout << error.what() << ", a: " << text(pool.acquire()->execute({"GET", "a"})) << '\n';
    }
    if (!motet::move_on_after(100ms, [&] { pool.acquire()->execute({"BLPOP", "nothing", "60"}); }))
      std::cout << "too slow; next reply: " << text(pool.acquire()->execute({"PING"})) << '\n';
    pool.acquire()->execute({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"});
    motet::sleep_for(50ms);
    std::cout << "reconnected: " << text(pool.acquire()->execute({"PING"})) << '\n';
  });
}
