// SPDX-License-Identifier: MIT
// hiredis.
#include <fcntl.h>
#include <hiredis/hiredis.h>

#include <stdexcept>

#include "posix/clients/client.hpp"

namespace clients { namespace {

class redis_client final : public polled_client {
 public:
  explicit redis_client(const std::string& server)
      : port_(std::stoi(server.substr(server.rfind(':') + 1))) {}
  ~redis_client() override { ::redisFree(context_); }
  void connect() override {
    context_ = ::redisConnect("127.0.0.1", port_);
    if (context_ == nullptr || context_->err != 0) throw std::runtime_error("redisConnect");
  }
  bool call() override { return is_nil(::redisCommand(context_, "BLPOP %d 1", context_->fd)); }

  void begin() override {
    const int flags = ::fcntl(context_->fd, F_GETFL);
    ::fcntl(context_->fd, F_SETFL, flags | O_NONBLOCK);
    int is_sent = 0;
    ::redisAppendCommand(context_, "BLPOP %d 1", context_->fd);
    while (is_sent == 0) {
      if (::redisBufferWrite(context_, &is_sent) != REDIS_OK)
        throw std::runtime_error("redisBufferWrite");
    }
  }
  int descriptor() override { return context_->fd; }
  std::optional<bool> proceed() override {
    void* reply = nullptr;
    if (::redisBufferRead(context_) != REDIS_OK) return false;
    if (::redisGetReplyFromReader(context_, &reply) != REDIS_OK) return false;
    if (reply == nullptr) return std::nullopt;
    return is_nil(reply);
  }

 private:
  static bool is_nil(void* reply) {
    const bool result =
        reply != nullptr && static_cast<redisReply*>(reply)->type == REDIS_REPLY_NIL;
    if (reply != nullptr) ::freeReplyObject(reply);
    return result;
  }

  const int port_;
  redisContext* context_ = nullptr;
};

const registered redis("redis", {[](const std::string& server) -> std::unique_ptr<client> {
                                   return std::make_unique<redis_client>(server);
                                 },
                                 &call_all_polled});

}}  // namespace clients
