// SPDX-License-Identifier: MIT
// The directions of a socket_stream, for calls that keep their turn.
#include <motet/detail/io/stream_direction.hpp>

#include "io/net/socket_stream.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

template <bool Writes>
struct socket_stream::moving {
  static stream_queue& turn(state& stream) noexcept {
    return Writes ? stream.write_queue : stream.read_queue;
  }
  static void* take(void* stream, std::error_code& error) noexcept {
    state* stream_state = static_cast<socket_stream*>(stream)->state_.get();
    quietly(error, [&] {
      constexpr const char* turn_name = Writes ? "turn to write on fd" : "turn to read on fd";
      return stream_state == nullptr
                 ? -EBADF
                 : net::take_turn(turn(*stream_state), turn_name, stream_state->socket.get());
    });
    if (!error) turn(*stream_state).keep();
    return stream_state;
  }
  static void pass(void* object) noexcept {
    auto* stream_state = static_cast<state*>(object);
    state::pass(stream_state, turn(*stream_state));
  }
  static std::size_t move(void* object, std::span<std::byte> bytes,
                          std::error_code& error) noexcept {
    constexpr verb kind = Writes ? verb::send : verb::recv;
    auto& stream_state = *static_cast<state*>(object);
    return quietly(error, [&] {
      return stream_state.move(kind, turn(stream_state), bytes.data(), bytes.size());
    });
  }
  static int descriptor(void* object) noexcept { return static_cast<state*>(object)->socket.get(); }

  static constexpr direction_calls calls{take, pass, move, descriptor};
};

stream_direction socket_stream::input_direction() noexcept {
  return {this, &moving<false>::calls};
}

stream_direction socket_stream::output_direction() noexcept {
  return {this, &moving<true>::calls};
}

}}}  // namespace motet::MOTET_ABI::detail
