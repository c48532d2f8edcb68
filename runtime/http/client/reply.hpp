// SPDX-License-Identifier: MIT
// What a reply keeps: a connection, until the body has been read.
#pragma once

#include <cstdint>
#include <motet/http/client.hpp>
#include <span>
#include <string>
#include <utility>

#include "http/body_reader.hpp"
#include "http/client/connection_pool.hpp"
#include "http/parser.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

class reply::state {
 public:
  /// `options` outlives this.
  state(client::pool::lease lease, const client_options& options)
      : lease_(std::move(lease)), options_(options), body_(lease_->input, lease_->parser) {}

  /// Waits for the head of the response; the request may not have been sent completely yet.
  /// Returns: false if the connection ended before the first byte of a head.
  bool read_head(bool to_head);
  /// Buffers the body for read() as it arrives, up to the limit of text().
  void read_ahead();
  /// `reusable`: the connection may be used for another request, because this one was sent
  /// completely and the caller has not asked to close it.
  void end_sending(bool reusable);
  /// As reply's.
  std::size_t read(std::span<std::byte> buffer);
  std::string text();

  message_head head;
  std::string address;

 private:
  void begin_body(bool to_head);
  std::size_t read_body(std::span<std::byte> buffer);
  void settle();

  client::pool::lease lease_;
  const client_options& options_;
  body_reader body_;
  std::string ahead_;       // of the body
  std::size_t offset_ = 0;  // of that
  /// What end_sending() has said of the request.
  enum class request_state : std::uint8_t { sending, sent, sent_and_reusable };
  request_state request_ = request_state::sending;
  bool has_head_ = false;
  bool keeps_alive_ = false;
  bool is_settled_ = false;
};

}}}  // namespace motet::MOTET_ABI::http
