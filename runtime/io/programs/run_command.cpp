// SPDX-License-Identifier: MIT
// See motet/io/process.hpp: run_command().
#include <algorithm>
#include <array>
#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/fibers/group.hpp>
#include <motet/io/process.hpp>
#include <span>
#include <system_error>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace {

/// A program need not read what it is given.
void give(pipe& to, std::string_view input) {
  std::error_code error;
  to.write_all(std::as_bytes(std::span(input)), error);
  if (error && error != std::errc::broken_pipe) {
    if (error == std::errc::operation_canceled) to.write_all("");  // throws a pending interruption
    throw std::system_error(error, "run_command: write");
  }
  to.shutdown(SHUT_WR);
}

std::string gather(pipe& from, std::size_t limit) {
  std::string text;
  std::array<std::byte, 4096> room;
  while (const std::size_t size = from.read(room)) {
    if (size > limit - text.size()) throw limit_exceeded(text.size() + size, limit);
    text.append(reinterpret_cast<const char*>(room.data()), size);
  }
  return text;
}

void gather_by_default(standard_stream& chosen) {
  if (chosen.what() == standard_stream::inherit) chosen = standard_stream::pipe;
}

}  // namespace

command_result run_command(process_options what, std::string_view input, std::size_t limit) {
  for (standard_stream* each : {&what.in, &what.out, &what.err}) gather_by_default(*each);
  process command = process::start(what);
  command_result result;
  group streams;
  if (what.in.what() == standard_stream::pipe) {
    streams.spin({.name = "input"}, [&] { give(command.in(), input); });
  }
  if (what.out.what() == standard_stream::pipe) {
    streams.spin({.name = "output"}, [&] { result.out = gather(command.out(), limit); });
  }
  if (what.err.what() == standard_stream::pipe) {
    streams.spin({.name = "errors"}, [&] { result.err = gather(command.err(), limit); });
  }
  streams.await_all();
  result.status = command.wait();
  return result;
}

}}  // namespace motet::MOTET_ABI
