// SPDX-License-Identifier: MIT
// The directions of a socket_stream, for calls that keep their turn.
#include <motet/detail/io/stream_direction.hpp>

#include "io/net/socket_stream.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <bool Writes>
struct socket_stream::moving {
  static stream_queue& turn(state& used) noexcept { return Writes ? used.writing : used.reading; }
  static void* take(void* stream, std::error_code& error) noexcept {
    state* used = static_cast<socket_stream*>(stream)->state_.get();
    quietly(error, [&] {
      constexpr const char* what = Writes ? "turn to write on fd" : "turn to read on fd";
      return used == nullptr ? -EBADF : net::take_turn(turn(*used), what, used->socket.get());
    });
    if (!error) turn(*used).keep();
    return used;
  }
  static void pass(void* held) noexcept {
    auto* used = static_cast<state*>(held);
    state::pass(used, turn(*used));
  }
  static std::size_t move(void* held, std::span<std::byte> bytes, std::error_code& error) noexcept {
    constexpr verb kind = Writes ? verb::send : verb::recv;
    auto& used = *static_cast<state*>(held);
    return quietly(error, [&] { return used.move(kind, turn(used), bytes.data(), bytes.size()); });
  }
  static int descriptor(void* held) noexcept { return static_cast<state*>(held)->socket.get(); }

  static constexpr direction_calls calls{take, pass, move, descriptor};
};

stream_direction socket_stream::input_direction() noexcept {
  return {this, &moving<false>::calls};
}

stream_direction socket_stream::output_direction() noexcept {
  return {this, &moving<true>::calls};
}

}}}  // namespace motet::MOTET_ABI::detail
