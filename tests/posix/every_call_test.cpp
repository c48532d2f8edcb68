// SPDX-License-Identifier: MIT
// See posix/every_call.hpp.
#include "posix/every_call.hpp"

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/uio.h>

#include <cstring>
#include <utility>

namespace {

using namespace testing;
using namespace std::chrono_literals;

using buffer = std::array<char, 16>;

void note_data(journal& log, ssize_t count, const buffer& bytes) {
  std::string text;
  for (std::size_t i = 0;
       i < static_cast<std::size_t>(std::max<ssize_t>(count, 0)) && i < bytes.size(); ++i)
    text += std::to_string(static_cast<int>(bytes[i])) + " ";
  if (!text.empty()) log.text("data", text);
}

named_call immediate(named_call call) {
  call.never_waits = true;
  return call;
}

named_call reading(const char* name, std::function<ssize_t(int, void*, std::size_t)> read,
                   std::size_t size = 8) {
  return {name, [size, read = std::move(read)](journal& log, int fd) {
            buffer bytes{};
            const ssize_t count = read(fd, bytes.data(), size);
            const int error = errno;
            note_data(log, count, bytes);
            errno = error;
            log.call("result", count);
          }};
}

named_call receiving(const char* name, int flags, std::size_t size = 8) {
  return reading(
      name,
      [flags](int fd, void* bytes, std::size_t count) { return ::recv(fd, bytes, count, flags); },
      size);
}

ssize_t receive_message(int fd, void* bytes, std::size_t size, journal& log) {
  iovec part{bytes, size};
  sockaddr_storage address{};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t count = ::recvmsg(fd, &message, 0);
  const int error = errno;
  if (count >= 0) {
    log.number("flags", message.msg_flags);
    log.number("length of the address", message.msg_namelen);
  }
  errno = error;
  return count;
}

/// Reads from both halves of the buffer.
ssize_t read_parts(int fd, void* bytes, std::size_t size) {
  auto* const begin = static_cast<char*>(bytes);
  const std::array<iovec, 2> parts{{{begin, 3}, {begin + 3, size - 3}}};
  return ::readv(fd, parts.data(), 2);
}

/// For recvmmsg(2) and sendmmsg(2), which use the first one only.
std::array<mmsghdr, 2> two_messages(iovec& part) {
  std::array<mmsghdr, 2> messages{};
  for (mmsghdr& message : messages) {
    message.msg_hdr.msg_iov = &part;
    message.msg_hdr.msg_iovlen = 1;
  }
  return messages;
}

ssize_t receive_several(int fd, void* bytes, std::size_t size) {
  iovec part{bytes, size};
  auto messages = two_messages(part);
  const int count = ::recvmmsg(fd, messages.data(), 2, MSG_WAITFORONE, nullptr);
  return count > 0 ? static_cast<ssize_t>(messages[0].msg_len) : count;
}

void accept_any(journal& log, int fd) {
  log.call("result", ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
}

std::vector<named_call> reading_calls() {
  return {
      reading("read", ::read),
      reading("read of no byte", ::read, 0),
      reading("read of three bytes", ::read, 3),
      reading("readv", read_parts),
      receiving("recv", 0),
      receiving("recv of three bytes", 0, 3),
      receiving("recv with MSG_PEEK", MSG_PEEK),
      immediate(receiving("recv with MSG_DONTWAIT", MSG_DONTWAIT)),
      receiving("recv with MSG_WAITALL", MSG_WAITALL),
      receiving("recv with MSG_TRUNC", MSG_TRUNC, 3),
      {"recvfrom",
       [](journal& log, int fd) {
         buffer bytes{};
         sockaddr_storage address{};
         socklen_t length = sizeof address;
         const ssize_t count =
             ::recvfrom(fd, bytes.data(), 8, 0, reinterpret_cast<sockaddr*>(&address), &length);
         const int error = errno;
         note_data(log, count, bytes);
         log.number("length of the address", static_cast<long>(length));
         errno = error;
         log.call("result", count);
       }},
      reading("recvmmsg", receive_several),
      {"accept4", accept_any},
      {"recvmsg",
       [](journal& log, int fd) {
         buffer bytes{};
         log.call("result", receive_message(fd, bytes.data(), bytes.size(), log));
       }},
  };
}

/// To a port where nobody listens.
void connect_again(journal& log, int fd) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  log.call("result", ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address));
}

named_call writing(const char* name, std::function<ssize_t(int, const void*, std::size_t)> write,
                   std::size_t size = payload.size()) {
  return {name, [size, write = std::move(write)](journal& log, int fd) {
            log.call("result", write(fd, payload.data(), size));
          }};
}

named_call sending(const char* name, int flags, std::size_t size = payload.size()) {
  return writing(
      name,
      [flags](int fd, const void* bytes, std::size_t count) {
        return ::send(fd, bytes, count, flags);
      },
      size);
}

ssize_t write_parts(int fd, const void* bytes, std::size_t size) {
  auto* const begin = const_cast<char*>(static_cast<const char*>(bytes));
  const std::array<iovec, 2> parts{{{begin, 3}, {begin + 3, size - 3}}};
  return ::writev(fd, parts.data(), 2);
}

ssize_t send_message(int fd, const void* bytes, std::size_t size) {
  iovec part{const_cast<void*>(bytes), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return ::sendmsg(fd, &message, 0);
}

ssize_t send_several(int fd, const void* bytes, std::size_t size) {
  iovec part{const_cast<void*>(bytes), size};
  auto messages = two_messages(part);
  return ::sendmmsg(fd, messages.data(), 1, 0);
}

std::vector<named_call> writing_calls() {
  return {
      writing("write", ::write),
      writing("write of no byte", ::write, 0),
      writing("writev", write_parts),
      sending("send", 0),
      sending("send of no byte", 0, 0),
      sending("send with MSG_NOSIGNAL", MSG_NOSIGNAL),
      immediate(sending("send with MSG_DONTWAIT", MSG_DONTWAIT)),
      writing("sendto", [](int fd, const void* bytes,
                           std::size_t size) { return ::sendto(fd, bytes, size, 0, nullptr, 0); }),
      writing("sendmsg", send_message),
      writing("sendmmsg", send_several),
      {"connect", connect_again},
  };
}

int poll_for(journal& log, int fd, short events, int milliseconds) {
  pollfd look{fd, events, 0};
  const int count = ::poll(&look, 1, milliseconds);
  const int error = errno;
  log.number("events", look.revents);
  errno = error;
  return count;
}

int select_for(journal& log, int fd, timeval* span) {
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(fd, &readable);
  const int count = ::select(fd + 1, &readable, nullptr, nullptr, span);
  const int error = errno;
  log.number("readable", FD_ISSET(fd, &readable));
  errno = error;
  return count;
}

int epoll_for(journal& log, int fd, std::uint32_t events, int milliseconds) {
  const motet::fd set(::epoll_create1(0));
  epoll_event wanted{events, {.u64 = 7}};
  epoll_event found{};
  if (log.call("epoll_ctl", ::epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &wanted)) < 0) return 0;
  const int count = ::epoll_wait(set.get(), &found, 1, milliseconds);
  const int error = errno;
  log.number("events", found.events);
  errno = error;
  return count;
}

std::vector<named_call> readiness_calls() {
  constexpr int milliseconds = 1;
  std::vector<named_call> calls;
  for (const int span : {0, milliseconds}) {
    const bool at_once = span == 0;
    calls.push_back({at_once ? "poll at once" : "poll", [span](journal& log, int fd) {
                       log.call("result", poll_for(log, fd, POLLIN | POLLRDHUP, span));
                     }});
    calls.push_back(
        {at_once ? "poll for room at once" : "poll for room",
         [span](journal& log, int fd) { log.call("result", poll_for(log, fd, POLLOUT, span)); }});
    calls.push_back({at_once ? "select at once" : "select", [span](journal& log, int fd) {
                       timeval time{0, span * 1'000};
                       log.call("result", select_for(log, fd, &time));
                     }});
    calls.push_back({at_once ? "epoll_wait at once" : "epoll_wait", [span](journal& log, int fd) {
                       log.call("result", epoll_for(log, fd, EPOLLIN | EPOLLRDHUP, span));
                     }});
  }
  calls.push_back({"ppoll", [](journal& log, int fd) {
                     pollfd look{fd, POLLIN | POLLPRI, 0};
                     const timespec span{0, 1'000'000L * milliseconds};
                     log.call("result", ::ppoll(&look, 1, &span, nullptr));
                     log.number("events", look.revents);
                   }});
  return calls;
}

}  // namespace

TEST_CASE("read() and recv() in a fiber do what they do on a thread, on every kind of descriptor") {
  const case_table table{reading_states, reading_calls(),
                         [](const pair& ends) { return ends.reader.get(); }, POLLIN, put_payload};
  CHECK(compare_every_case(table) >= 900);
}

TEST_CASE(
    "write() and send() in a fiber do what they do on a thread, on every kind of descriptor") {
  const case_table table{writing_states, writing_calls(),
                         [](const pair& ends) { return ends.writer.get(); }, POLLOUT, drain};
  CHECK(compare_every_case(table) >= 600);
}

TEST_CASE(
    "poll(), select() and epoll_wait() in a fiber do what they do on a thread, in every state") {
  std::map<std::string, preparation> states = reading_states;
  states.erase("empty, with a limit");
  states.erase("until data comes");
  const case_table table{states, readiness_calls(),
                         [](const pair& ends) { return ends.reader.get(); }, 0, nullptr};
  CHECK(compare_every_case(table) >= 450);
}
