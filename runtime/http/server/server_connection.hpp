// SPDX-License-Identifier: MIT
// A server's side of a connection: one request and its answer after another.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <motet/base/clock.hpp>
#include <motet/detail/io/any_stream.hpp>
#include <motet/detail/io/read_buffer.hpp>
#include <motet/http/request.hpp>
#include <motet/http/serve.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/body_reader.hpp"
#include "http/parser.hpp"
#include "http/server/response_writer.hpp"
#include "http/server/target.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

class server_connection {
 public:
  server_connection(detail::any_stream stream, const serve_options& options,
                    const handler& function);
  server_connection(const server_connection&) = delete;
  server_connection& operator=(const server_connection&) = delete;

  /// Answers until the connection ends, or is to end. Throws: as serve_connection().
  void serve();

  // What request and response show.
  const message_head& asked() const noexcept { return head_; }
  const std::string& path() const noexcept { return path_; }
  std::string_view encoded_path() const noexcept { return encoded_path_; }
  /// Returns: the host of an absolute-form target; else empty.
  std::string_view authority() const noexcept { return authority_; }
  std::string_view query() const noexcept { return query_; }
  std::vector<std::pair<std::string, std::string>>& parameters() noexcept { return parameters_; }
  std::size_t read_body(std::span<std::byte> buffer);
  response_writer& answer() noexcept { return answer_; }
  int native_handle() const noexcept { return stream_.native_handle(); }

  // For the protocol that follows HTTP on this connection; see response_writer::hand_over().
  detail::read_buffer& input() noexcept { return input_; }
  detail::any_stream& stream() noexcept { return stream_; }

 private:
  bool await_head();
  bool await_first_byte();
  bool has_come(clock::duration limit);
  bool read_head();
  int read_target();
  std::exception_ptr answer_one();
  std::exception_ptr handle();
  void call_handler(request& request, response& answer);
  void admit(request& request, response& answer);
  void refuse_overload();
  void skip_empty_lines(std::size_t size);
  std::optional<clock::duration> limit_of_handler() const;
  void fail(int status, std::string_view text);
  bool awaits_100_continue();
  void drain_body();
  void refuse(int status);
  void end_connection() noexcept;

  detail::any_stream stream_;
  const serve_options& options_;
  const handler& function_;
  detail::read_buffer input_;
  message_parser parser_;
  body_reader body_;
  response_writer answer_;
  message_head head_;
  std::string path_;
  std::string_view encoded_path_;
  std::string_view query_;
  std::string_view authority_;
  std::vector<std::pair<std::string, std::string>> parameters_;
  int empty_lines_ = 0;  // before this request
  bool is_first_ = true;
  bool is_over_ = false;
};

}}}  // namespace motet::MOTET_ABI::http
