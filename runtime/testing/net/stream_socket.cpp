// SPDX-License-Identifier: MIT
// See testing/net/stream_socket.hpp.
#include "testing/net/stream_socket.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "testing/net/handshake.hpp"
#include "testing/net/network.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

void stream_socket::adopt(std::shared_ptr<connection> link, int side) {
  set_name(link->name(side));
  connection_ = std::move(link);
  side_ = side;
}

bool stream_socket::admit(const std::shared_ptr<connection>& link) {
  if (pending_.size() >= static_cast<std::size_t>(backlog_)) return false;
  pending_.push_back(link);
  inside().note_change();
  return true;
}

int stream_socket::kind() const noexcept {
  return SOCK_STREAM;
}

std::int32_t stream_socket::listen(int backlog) {
  if (connection_ != nullptr || attempt_ != nullptr) return -EINVAL;
  backlog_ = std::max(backlog, 1);
  return inside().bind_to_any(*this);
}

std::int32_t stream_socket::shutdown(int direction) {
  if (connection_ != nullptr) {
    connection_->shutdown(side_, direction);
    return 0;
  }
  if (!listens()) return -ENOTCONN;
  stop_listening(true);
  inside().note_change();
  return 0;
}

std::optional<place> stream_socket::peer() const {
  if (connection_ == nullptr) return std::nullopt;
  return connection_->name(1 - side_);
}

short stream_socket::readiness() const {
  if (connection_ != nullptr) return connection_->readiness(side_);
  if (listens()) return pending_.empty() ? short{0} : short{POLLIN};
  return attempt_ != nullptr ? short{0} : short{POLLOUT | POLLHUP};
}

std::optional<std::int32_t> stream_socket::attempt(operation& op) {
  switch (op.kind) {
    case verb::connect:
      return connect(op);
    case verb::accept:
      return accept(op);
    case verb::read:
    case verb::readv:
    case verb::recv:
    case verb::recvmsg:
      if (connection_ == nullptr) return -ENOTCONN;
      if (op.kind == verb::recvmsg) {
        op.message->msg_controllen = 0;
        op.message->msg_namelen = 0;
      }
      return connection_->receive(side_, op);
    case verb::write:
    case verb::writev:
    case verb::send:
    case verb::sendmsg:
      if (connection_ == nullptr) return -ENOTCONN;
      return connection_->send(side_, op);
    default:
      return -EINVAL;
  }
}

std::optional<std::int32_t> stream_socket::connect(const operation& op) {
  if (connection_ != nullptr) return -EISCONN;
  if (attempt_ == nullptr) {
    const std::optional<place> target = place_of(op.address, op.length);
    if (!target.has_value()) return -EAFNOSUPPORT;
    if (listens()) return -EISCONN;
    if (const std::int32_t error = inside().bind_to_any(*this); error != 0) return error;
    attempt_ = std::make_shared<connecting>();
    attempt_->home = home();
    attempt_->name = name_for(*target);
    attempt_->target = *target;
    begin_handshake(inside(), attempt_);
  }
  if (!attempt_->result.has_value()) return std::nullopt;
  const std::shared_ptr<connecting> over = std::exchange(attempt_, nullptr);
  if (*over->result == 0) connection_ = over->link;
  return over->result;
}

std::optional<std::int32_t> stream_socket::accept(const operation& op) {
  if (!listens()) return -EINVAL;
  if (pending_.empty()) return std::nullopt;
  const std::shared_ptr<connection> link = pending_.front();
  const std::int32_t number = inside().open(home(), [&] {
    auto result = std::make_unique<stream_socket>(inside(), home(), spawn_site());
    result->adopt(link, 1);
    return result;
  });
  if (number < 0) return number;
  pending_.pop_front();
  write_name(link->name(0), op.address, op.address_length);
  return number;
}

/// A connect() that was cancelled is undone.
void stream_socket::leave(const operation& op) {
  if (op.kind == verb::connect) abandon_attempt(true);
}

namespace {

void drop(connection& dropped, int side, bool resets) {
  if (resets) {
    dropped.abort(side);
  } else {
    dropped.vanish(side);
  }
}

}  // namespace

void stream_socket::abandon_attempt(bool resets) {
  if (attempt_ == nullptr) return;
  attempt_->is_abandoned = true;
  if (attempt_->link != nullptr) drop(*attempt_->link, 0, resets);
  attempt_ = nullptr;
}

void stream_socket::close() {
  abandon_attempt(true);
  stop_listening(true);
  if (connection_ != nullptr) connection_->close(side_);
}

void stream_socket::crash(bool resets) {
  abandon_attempt(resets);
  stop_listening(resets);
  if (connection_ != nullptr) drop(*connection_, side_, resets);
}

void stream_socket::stop_listening(bool resets) {
  for (const auto& each : pending_) drop(*each, 1, resets);
  pending_.clear();
  backlog_ = 0;
}

}}}  // namespace motet::MOTET_ABI::testing
