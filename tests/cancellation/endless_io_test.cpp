// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: motet/io/io.hpp.
#include "cancellation/endless_io.hpp"

#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdio>
#include <system_error>

#include "cancellation/endless_loop.hpp"

namespace {

using namespace testing;

iovec vector_of_one() {
  return {single.data(), single.size()};
}

msghdr message_in(iovec& vector) {
  msghdr made{};
  made.msg_iov = &vector;
  made.msg_iovlen = 1;
  return made;
}

/// A child that has ended, and that is reaped in the end.
struct ended_child {
  pid_t child = ::fork();
  ended_child() {
    if (child == 0) ::_exit(0);
    pidfd = fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  }
  ended_child(const ended_child&) = delete;
  ended_child& operator=(const ended_child&) = delete;
  ~ended_child() { ::waitpid(child, nullptr, 0); }
  fd pidfd;
};

const switchpoint_table table = {
    {"io::read",
     [](endless_loop& again) { again([from = zeros()] { io::read(from.get(), single); }); }},
    {"io::read, nothing",
     [](endless_loop& again) { again([from = zeros()] { io::read(from.get(), no_room); }); }},
    {"io::read, with a code",
     [](endless_loop& again) {
       again([from = zeros()] {
         std::error_code error;
         io::read(from.get(), single, error);
         return error;
       });
     }},
    {"io::read, nothing, with a code",
     [](endless_loop& again) {
       again([from = zeros()] {
         std::error_code error;
         io::read(from.get(), no_room, error);
         return error;
       });
     }},
    {"io::write",
     [](endless_loop& again) { again([to = zeros()] { io::write(to.get(), single); }); }},
    {"io::write, nothing",
     [](endless_loop& again) { again([to = zeros()] { io::write(to.get(), no_bytes); }); }},
    {"io::readv",
     [](endless_loop& again) {
       const iovec vector = vector_of_one();
       again([&, from = zeros()] { io::readv(from.get(), std::span(&vector, 1)); });
     }},
    {"io::readv, nothing",
     [](endless_loop& again) { again([from = zeros()] { io::readv(from.get(), {}); }); }},
    {"io::writev",
     [](endless_loop& again) {
       const iovec vector = vector_of_one();
       again([&, to = zeros()] { io::writev(to.get(), std::span(&vector, 1)); });
     }},
    {"io::writev, nothing",
     [](endless_loop& again) { again([to = zeros()] { io::writev(to.get(), {}); }); }},
    {"io::read_exactly",
     [](endless_loop& again) {
       again([from = zeros()] { io::read_exactly(from.get(), single); });
     }},
    {"io::read_exactly, nothing",
     [](endless_loop& again) {
       again([from = zeros()] { io::read_exactly(from.get(), no_room); });
     }},
    {"io::read_exactly, nothing, with a code",
     [](endless_loop& again) {
       again([from = zeros()] {
         std::error_code error;
         io::read_exactly(from.get(), no_room, error);
         return error;
       });
     }},
    {"io::write_all",
     [](endless_loop& again) { again([to = zeros()] { io::write_all(to.get(), single); }); }},
    {"io::write_all, nothing",
     [](endless_loop& again) { again([to = zeros()] { io::write_all(to.get(), no_bytes); }); }},
    {"io::write_all, nothing, with a code",
     [](endless_loop& again) {
       again([to = zeros()] {
         std::error_code error;
         io::write_all(to.get(), no_bytes, error);
         return error;
       });
     }},
    {"io::recv",
     [](endless_loop& again) {
       const auto ends = ended_socket();
       again([&] { io::recv(ends.first(), single); });
     }},
    {"io::recv, nothing",
     [](endless_loop& again) {
       const auto ends = ended_socket();
       again([&] { io::recv(ends.first(), no_room); });
     }},
    {"io::recv, would block, with a code",
     [](endless_loop& again) {
       const auto ends = make_socket_pair();
       again([&] {
         std::error_code error;
         io::recv(ends.first(), single, MSG_DONTWAIT, error);
         return error;
       });
     }},
    {"io::recvmsg",
     [](endless_loop& again) {
       const auto ends = ended_socket();
       iovec vector = vector_of_one();
       msghdr message = message_in(vector);
       again([&] { io::recvmsg(ends.first(), message); });
     }},
    {"io::send",
     [](endless_loop& again) {
       const auto ends = make_socket_pair();
       again([&] {
         io::send(ends.first(), single);
         ::recv(ends.second(), single.data(), single.size(), 0);
       });
     }},
    {"io::send, nothing",
     [](endless_loop& again) {
       const auto ends = make_socket_pair();
       again([&] { io::send(ends.first(), no_bytes); });
     }},
    {"io::sendmsg",
     [](endless_loop& again) {
       const auto ends = make_socket_pair();
       iovec vector = vector_of_one();
       const msghdr message = message_in(vector);
       again([&] {
         io::sendmsg(ends.first(), message);
         ::recv(ends.second(), single.data(), single.size(), 0);
       });
     }},
    {"io::accept",
     [](endless_loop& again) {
       unix_listening listens;
       again([&] {
         const fd comes = listens.knock();
         const fd taken(io::accept(listens.get()));
       });
     }},
    {"io::connect",
     [](endless_loop& again) {
       unix_listening listens;
       again([&] {
         const fd comes = unix_listening::make();
         io::connect(comes.get(), listens.address(), listens.size());
         listens.answer();
       });
     }},
    {"io::wait_fd",
     [](endless_loop& again) {
       const auto ends = make_pipe();
       again([&] { io::wait_fd(ends.second(), POLLOUT); });
     }},
    {"io::splice",
     [](endless_loop& again) {
       auto from = make_pipe();
       const auto to = make_pipe();
       from.close_second();
       again([&] { io::splice(from.first(), to.second(), 1); });
     }},
    {"io::splice, nothing",
     [](endless_loop& again) {
       const auto from = make_pipe();
       const auto to = make_pipe();
       again([&] { io::splice(from.first(), to.second(), 0); });
     }},
    {"io::tee",
     [](endless_loop& again) {
       auto from = make_pipe();
       const auto to = make_pipe();
       from.close_second();
       again([&] { io::tee(from.first(), to.second(), 1); });
     }},
    {"io::tee, nothing",
     [](endless_loop& again) {
       const auto from = make_pipe();
       const auto to = make_pipe();
       again([&] { io::tee(from.first(), to.second(), 0); });
     }},
    {"io::waitid",
     [](endless_loop& again) {
       const ended_child over;
       again([&] { io::waitid(over.pidfd.get(), WEXITED | WNOWAIT); });
     }},
    {"io::waitid, with a code",
     [](endless_loop& again) {
       const ended_child over;
       again([&] {
         std::error_code error;
         io::waitid(over.pidfd.get(), WEXITED | WNOWAIT, error);
         return error;
       });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
