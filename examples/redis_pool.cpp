// SPDX-License-Identifier: MIT
// A pool of connections to Redis, with hiredis's blocking calls in fibers: pipelines, transactions,
// time limits and reconnection. Linked with motet-posix.
//
// usage: redis_pool PORT
#include <hiredis/hiredis.h>
#include <poll.h>

#include <chrono>
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

class connection {
 public:
  explicit connection(int port) : context_(redisConnect("127.0.0.1", port)) {
    if (context_ == nullptr || context_->err != 0)
      throw std::runtime_error(context_ == nullptr ? "out of memory" : context_->errstr);
  }
  /// Whether it can be lent again. A server that has something to say is about to hang up.
  bool is_usable() const noexcept {
    pollfd entry{context_->fd, POLLIN, 0};
    return context_->err == 0 && !in_transaction_ && unanswered_ == 0 && poll(&entry, 1, 0) == 0;
  }
  reply execute(const command& words) { return std::move(pipeline({words}).front()); }
  /// Sends the commands together.
  std::vector<reply> pipeline(const std::vector<command>& commands) {
    for (const command& words : commands) {
      std::vector<const char*> texts;
      for (const std::string& word : words) texts.push_back(word.c_str());
      if (redisAppendCommandArgv(context_.get(), static_cast<int>(texts.size()), texts.data(),
                                 nullptr) != REDIS_OK)
        throw std::runtime_error(context_->errstr);
      ++unanswered_;
    }
    std::vector<reply> replies;
    while (unanswered_ > 0) replies.push_back(next_reply());
    return replies;
  }
  /// The commands of `f` take effect together; those before an exception have no effect.
  template <typename F>
  reply in_transaction(F f) {
    execute({"MULTI"});
    in_transaction_ = true;
    f();
    reply results = execute({"EXEC"});
    in_transaction_ = false;
    return results;
  }

 private:
  /// A time limit ends the call, not the command: its reply would be taken for that of the next
  /// one, so the connection, on which it is still to come, is not lent again.
  reply next_reply() {
    void* received = nullptr;
    if (redisGetReply(context_.get(), &received) != REDIS_OK) {
      const std::string message = context_->errstr;
      motet::checkpoint();  // throws what has ended the call, if that is the reason
      throw std::runtime_error(message);
    }
    --unanswered_;
    reply owned(static_cast<redisReply*>(received));
    if (owned->type == REDIS_REPLY_ERROR) throw std::runtime_error(owned->str);
    return owned;
  }

  std::unique_ptr<redisContext, free_by_hiredis> context_;
  int unanswered_ = 0;
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
    std::cout << ", a: " << pool.acquire()->execute({"GET", "a"})->str << '\n';
    try {
      auto leased = pool.acquire();
      leased->in_transaction([&] {
        leased->execute({"SET", "a", "100"});
        throw std::runtime_error("given up");
      });
    } catch (const std::runtime_error& error) {
      std::cout << error.what() << ", a: " << pool.acquire()->execute({"GET", "a"})->str << '\n';
    }
    if (!motet::move_on_after(100ms, [&] { pool.acquire()->execute({"BLPOP", "nothing", "60"}); }))
      std::cout << "too slow; next reply: " << pool.acquire()->execute({"PING"})->str << '\n';
    pool.acquire()->execute({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"});
    motet::sleep_for(50ms);
    std::cout << "reconnected: " << pool.acquire()->execute({"PING"})->str << '\n';
  });
}
