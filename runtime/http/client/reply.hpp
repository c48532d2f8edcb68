// SPDX-License-Identifier: MIT
// What a reply keeps: a connection, until the body has been read.
#pragma once

#include <cstdint>
#include <motet/http/client.hpp>
#include <span>
#include <string>
#include <utility>

#include "http/client/connection_pool.hpp"
#include "http/incoming_body.hpp"
#include "http/parser.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

class reply::kept {
 public:
  /// `how` outlives this. `asked_whole`: the server has got all of the request, so the connection
  /// may be used for another.
  kept(client::pool::lease by, const client_options& how, bool asked_whole)
      : by_(std::move(by)), how_(how), body_(by_->in, by_->parser), asked_whole_(asked_whole) {}

  /// Waits for the head of an answer.
  /// Returns: false if the connection has ended before any of that had come.
  bool take_head(bool to_head);
  /// As reply's.
  std::size_t read(std::span<std::byte> room);
  std::string text();

  message_head head;
  std::string address;

 private:
  void begin_body(bool to_head);
  void settle();

  client::pool::lease by_;
  const client_options& how_;
  incoming_body body_;
  const bool asked_whole_;
  bool keeps_alive_ = false;
  bool is_settled_ = false;
};

}}}  // namespace motet::MOTET_ABI::http
