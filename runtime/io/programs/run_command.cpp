// SPDX-License-Identifier: MIT
// See motet/io/process.hpp: run_command().
#include <array>
#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/fibers/group.hpp>
#include <motet/io/process.hpp>
#include <span>
#include <system_error>

namespace motet { inline namespace MOTET_ABI {

namespace {

/// A program need not read what it is given.
void give(pipe& target, std::string_view input) {
  std::error_code error;
  target.write_all(std::as_bytes(std::span(input)), error);
  if (error && error != std::errc::broken_pipe) {
    if (error == std::errc::operation_canceled)
      target.write_all("");  // throws a pending interruption
    throw std::system_error(error, "run_command: write");
  }
  target.shutdown(SHUT_WR);
}

std::string gather(pipe& source, std::size_t limit) {
  std::string text;
  std::array<std::byte, 4096> buffer;
  while (const std::size_t size = source.read(buffer)) {
    if (size > limit - text.size()) throw limit_exceeded(text.size() + size, limit);
    text.append(reinterpret_cast<const char*>(buffer.data()), size);
  }
  return text;
}

void gather_by_default(standard_stream& stream) {
  if (stream.what() == standard_stream::inherit) stream = standard_stream::pipe;
}

}  // namespace

command_result run_command(process_options options, std::string_view input, std::size_t limit) {
  for (standard_stream* stream : {&options.in, &options.out, &options.err})
    gather_by_default(*stream);
  process command = process::start(options);
  command_result result;
  group streams;
  if (options.in.what() == standard_stream::pipe) {
    streams.spin({.name = "input"}, [&] { give(command.in(), input); });
  }
  if (options.out.what() == standard_stream::pipe) {
    streams.spin({.name = "output"}, [&] { result.out = gather(command.out(), limit); });
  }
  if (options.err.what() == standard_stream::pipe) {
    streams.spin({.name = "errors"}, [&] { result.err = gather(command.err(), limit); });
  }
  streams.await_all();
  result.status = command.wait();
  return result;
}

}}  // namespace motet::MOTET_ABI
